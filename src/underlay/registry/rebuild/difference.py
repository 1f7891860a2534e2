"""Compares a registry with the store, or with another registry, row by row, in all tables that mirror the store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Table, collate, select

from underlay.registry.database.database import Database, open_database
from underlay.registry.database.schema import COMPARED, LAKE, METADATA
from underlay.registry.rebuild.restore import OnProgress, fill
from underlay.store.store import Store

_FETCHED_AT_ONCE = 1000
_FOUND, _EXPECTED = 0, 1
_LOOKS = 3
_NOT_COMPARED = {LAKE.c.url}
"""Machines may access the same lake by different URLs, and a lake may be moved."""
Key = tuple[str | int, ...]
Row = tuple[object, ...]
_Look = dict[tuple[str, Key, Row | None], "Difference"]
"""Differences by table, key and found row."""


class DifferenceKind(StrEnum):
    """What is wrong with a row of the registry."""

    MISSING = "missing"
    SURPLUS = "surplus"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A row that differs. `fields` maps the columns that differ to the values found and expected."""

    table: str
    key: Key
    kind: DifferenceKind
    fields: dict[str, tuple[object, object]] = field(default_factory=dict)


def compare(database: Database, store: Store, *, progress: OnProgress | None = None) -> list[Difference]:
    """Where the registry differs from what a restore would make of it, except for jobs and leases, which are transient.

    Changes nothing. Reads what a restore reads, and again when there are differences: while somebody writes, the
    registry is ahead or behind for moments. Only a row that stayed the same from look to look, and differed each time,
    counts.
    """
    found = _look(database, store, progress)
    for _ in range(_LOOKS - 1):
        if found:
            again = _look(database, store, progress)
            found = {place: difference for place, difference in again.items() if place in found}
    return list(found.values())


def _look(database: Database, store: Store, progress: OnProgress | None) -> _Look:
    with TemporaryDirectory(prefix="underlay-registry-") as folder:
        truth = open_database(f"sqlite:///{Path(folder) / 'truth.sqlite'}")
        try:
            with truth.write() as connection:
                METADATA.create_all(connection)
                fill(connection, store, progress)
            with truth.read() as expected, database.read() as found:
                return _all_differences(found, expected)
        finally:
            truth.close()


def differences(found: Connection, expected: Connection) -> list[Difference]:
    """How `found` differs from `expected`. Reads both in key order, some rows at a time."""
    return list(_all_differences(found, expected).values())


def _all_differences(found: Connection, expected: Connection) -> _Look:
    return {
        (table.name, difference.key, row): difference
        for table in COMPARED
        for difference, row in _differences(table, found, expected)
    }


def _differences(table: Table, found: Connection, expected: Connection) -> Iterator[tuple[Difference, Row | None]]:
    names = [column.name for column in _columns(table)]
    both = merge(_rows(table, found, _FOUND), _rows(table, expected, _EXPECTED), key=itemgetter(0))
    for key, group in groupby(both, key=itemgetter(0)):
        rows = {side: row for _, side, row in group}
        if len(rows) == 1:
            kind = DifferenceKind.SURPLUS if _FOUND in rows else DifferenceKind.MISSING
            yield Difference(table=table.name, key=key, kind=kind), rows.get(_FOUND)
        elif rows[_FOUND] != rows[_EXPECTED]:
            pairs = zip(names, rows[_FOUND], rows[_EXPECTED], strict=True)
            fields = {name: (ours, theirs) for name, ours, theirs in pairs if ours != theirs}
            yield Difference(table=table.name, key=key, kind=DifferenceKind.DIFFERENT, fields=fields), rows[_FOUND]


def _columns(table: Table) -> list[Column[Any]]:  # of any type
    return [column for column in table.c if column not in _NOT_COMPARED]


def _rows(table: Table, connection: Connection, side: int) -> Iterator[tuple[Key, int, Row]]:
    """The rows with their keys, in Python's order of keys, and the side that they belong to."""
    columns = _columns(table)
    names = [column.name for column in columns]
    places = [names.index(column.name) for column in table.primary_key]
    order = [_ordered(column, connection) for column in table.primary_key]
    options = {"yield_per": _FETCHED_AT_ONCE}
    for row in connection.execute(select(*columns).order_by(*order), execution_options=options):
        yield tuple(row[place] for place in places), side, tuple(row)


def _ordered(column: Column[Any], connection: Connection) -> ColumnElement[Any]:  # of any type
    """Orders text by bytes, and so by code points; PostgreSQL would use the database's collation."""
    if column.type.python_type is str and connection.dialect.name == "postgresql":
        return collate(column, "C")
    return column
