"""Errors of `parse_where`: the part that is not supported, where it is, and what is supported."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError

from underlay.errors import BadPredicate

SUPPORTED = (
    "Supported: column =, <>, <, <=, >, >= literal, [NOT] IN (literals), [NOT] BETWEEN, IS [NOT] NULL,"
    " IS [NOT] DISTINCT FROM, isnan(column), starts_with(column, 'x'), [NOT] LIKE, joined by AND, OR and NOT."
)
_SHOWN_CHARS = 80


def refuse(node: exp.Expr, problem: str = "not supported here", hint: str = SUPPORTED) -> BadPredicate:
    """The error for a part that parses but is not supported."""
    return BadPredicate(f"{shorten(node.sql(dialect='duckdb'))} is {problem}", place=_place(node), hint=hint)


def unparsed(text: str, error: ParseError) -> BadPredicate:
    """The error for text that is not a SQL condition, with line and column."""
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    found = details.get("highlight") or text
    return BadPredicate(
        "the predicate is not a SQL condition",
        place=f"line {line}, column {column}" if line else None,
        found=shorten(repr(found)),
        hint="Write what follows WHERE: zone = 'JFK' and fare > 10.",
    )


def shorten(text: str) -> str:
    """The text, cut to what fits in a message."""
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _place(node: exp.Expr) -> str | None:
    """The line and column where the first name or literal of the part ends, as sqlglot keeps them."""
    for part in node.walk():
        if "line" in part.meta:
            return f"line {part.meta['line']}, column {part.meta['col']}"
    return None
