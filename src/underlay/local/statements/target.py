"""Finds the table that a statement changes."""

from __future__ import annotations

from underlay.errors import InvalidRequest
from underlay.local.clauses.reader import NamedTable
from underlay.local.sql.duckdb_errors import no_table
from underlay.local.sql.tables import SYSTEM
from underlay.local.statements.lake import StatementLake


def find_target(target: NamedTable, lake: StatementLake) -> str:
    """The name of the table, ignoring case. Raises TableNotFound, InvalidRequest for a system view."""
    names = lake.names()
    found = known_as(target, names)
    if found is None:
        refuse_system(target)
        raise no_table(target.name, names).at(target.piece.place)
    return found


def known_as(target: NamedTable, names: list[str]) -> str | None:
    """The lake's spelling of a table's name, ignoring case; None when there is no such table."""
    return next((one for one in names if one.lower() == target.name.lower()), None)


def refuse_system(target: NamedTable) -> None:
    """Raise InvalidRequest for names in the dataset of system views."""
    if target.dataset.lower() == SYSTEM:
        raise InvalidRequest(
            f"{target.name} is not a table: system views are read-only",
            place=target.piece.place,
            hint="They follow the tables of the lake by themselves.",
        )
