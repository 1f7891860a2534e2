"""Marks a Python value, where plain text would be read as SQL."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is not SQL text."""

    value: object

    def __str__(self) -> str:
        return f"lit({self.value!r})"


def lit(value: object) -> Literal:
    """A Python value for a column: `trips.update({"zone": ul.lit("JFK")})`. Plain text would be SQL."""
    return Literal(value)
