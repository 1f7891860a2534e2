"""Finds columns of the changed table by the names in a statement."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from underlay.errors import InvalidRequest
from underlay.local.clauses.reader import Clause, WrittenName
from underlay.prune.parse.bind import unknown_column


def find_column(named: WrittenName, schema: pa.Schema) -> str:
    """The table's spelling of a column's name, ignoring case. Raises UnknownColumn."""
    return _matched(named.name, schema, named.piece)


def find_columns(chosen: Sequence[WrittenName], schema: pa.Schema) -> list[str]:
    """The same for several columns; without names, all of the table. Raises UnknownColumn, and InvalidRequest for
    duplicates.
    """
    names = [find_column(one, schema) for one in chosen] if chosen else list(schema.names)
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InvalidRequest("a column is named twice", place=chosen[number].piece.place, found=name)
    return names


def columns_by_name(columns: Sequence[tuple[str, str]], schema: pa.Schema, rows: Clause) -> list[str]:
    """The table's columns that a query's columns match by name. Raises InvalidRequest, UnknownColumn."""
    names = [_matched(name, schema, rows) for name, _ in columns]
    again = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if again is not None:
        raise InvalidRequest("two columns of the query have the same name", place=rows.place, found=again)
    return names


def check_count(names: Sequence[str], count: int, place: str, *, are_chosen: bool) -> None:
    """Raise InvalidRequest unless there is a value for each column."""
    if count != len(names):
        raise InvalidRequest(
            "there are not as many values as columns",
            place=place,
            expected=f"{len(names)} ({', '.join(names)})",
            found=count,
            hint=None if are_chosen else "Name the columns: INSERT INTO t (a, b) …; others get their default, or null.",
        )


def _matched(name: str, schema: pa.Schema, piece: Clause) -> str:
    fold = name.encode().lower()  # of bytes: folds only A to Z, as DuckDB does
    found = next((one for one in schema.names if one.encode().lower() == fold), None)
    if found is None:
        raise unknown_column(name, list(schema.names)).at(piece.place)
    return found
