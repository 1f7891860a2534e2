"""What a token may read and change: datasets and tables by name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from underlay.errors import InvalidRequest

EVERYTHING = "*"
SYSTEM = "underlay"
_PATTERN = re.compile(r"\*|[^\s.*,]+(\.[^\s.*,]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Names are `taxi` for a dataset, `taxi.trips` for a table, `*` for all. The right to write includes reading.

    `is_admin`: may see and stop other callers' statements, but not read their rows.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    is_admin: bool = False

    def may_read(self, table: str) -> bool:
        """Whether a table's rows may be read."""
        return _covers(self.read, table) or _covers(self.write, table)

    def may_write(self, table: str) -> bool:
        """Whether a table may be changed, created or dropped."""
        return _covers(self.write, table)


def check_names(names: Iterable[str], option: str) -> tuple[str, ...]:
    """Check names of datasets and tables for rights. Raises InvalidRequest."""
    found = tuple(dict.fromkeys(names))
    wrong = next((name for name in found if _PATTERN.fullmatch(name) is None), None)
    if wrong is not None:
        raise InvalidRequest(f"{option} takes a dataset, a table or *", expected="taxi, taxi.trips or *", found=wrong)
    return found


def _covers(names: tuple[str, ...], table: str) -> bool:
    """Ignores case: no two tables' names differ only in case."""
    folded = table.lower()
    dataset = folded.partition(".")[0]
    return any(name == EVERYTHING or name.lower() in (dataset, folded) for name in names)
