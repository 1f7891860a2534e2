"""Finds columns of the changed table by the names in a statement."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from underlay.errors import InvalidRequest, UnknownColumn
from underlay.local.clauses.reader import Clause, WrittenName
from underlay.local.text.time_travel import quoted
from underlay.prune.parse.bind import resolve_path, unknown_column
from underlay.prune.predicates.operand import ColumnPath, format_column


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


def find_paths(chosen: Sequence[WrittenName], schema: pa.Schema, alias: str) -> list[ColumnPath]:
    """The columns and fields of structs that are set, as the table spells them. The table's alias may come first,
    unless a column has its name.

    Raises UnknownColumn, and InvalidRequest for a column that is set twice, itself or as part of another.
    """
    found: list[ColumnPath] = []
    for one in chosen:
        path = _resolved(one, schema, alias)
        if any(path[: len(other)] == other[: len(path)] for other in found):
            raise InvalidRequest("a column is named twice", place=one.piece.place, found=format_column(path))
        found.append(path)
    return found


def path_text(path: ColumnPath) -> str:
    """The path as verbs take it: a column's name as it is, a field's path in quotes."""
    return path[0] if len(path) == 1 else ".".join(map(quoted, path))


def _resolved(named: WrittenName, schema: pa.Schema, alias: str) -> ColumnPath:
    try:
        (name,) = resolve_path((named.name,), schema)
        written = (name, *named.fields)
    except UnknownColumn:
        is_alias = bool(named.fields) and named.name.lower() == alias.lower()
        written = named.fields if is_alias else (named.name, *named.fields)
    try:
        return resolve_path(written, schema)
    except UnknownColumn as error:
        raise error.at(named.piece.place) from None


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
