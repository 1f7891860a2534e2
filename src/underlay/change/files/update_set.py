"""The rows that change a table: read once and kept; the table's own rows are those of the version being changed."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import pyarrow as pa

from underlay.change.files.rows import read_rows
from underlay.runtime.locks import cached_property
from underlay.schema.convert.arrow import to_arrow
from underlay.table.versions.snapshot import Snapshot
from underlay.values.no_rows import no_rows


class RowsOfVersion(Protocol):
    """Rows that can be read."""

    def table(self) -> pa.Table:
        """All of them."""


@runtime_checkable
class TableRows(Protocol):
    """Rows of a table's newest version: a table, a scan of one, or an SQL query that names it."""

    def on_version(self, snapshot: Snapshot) -> RowsOfVersion | None:
        """The same rows of this version; None when they are of another table, or pinned to a version."""


class UpdateSet:
    """The rows of anything that `rows.read_rows` takes, in memory. For one thread."""

    def __init__(self, data: object) -> None:
        self._data = data

    def of_version(self, snapshot: Snapshot) -> tuple[pa.Table, bool]:
        """The rows for a change of this version, and whether they come from the same table, and so depend on the
        version."""
        again = self._data.on_version(snapshot) if isinstance(self._data, TableRows) else None
        return (or_no_rows_of(snapshot, self._rows), False) if again is None else (again.table(), True)

    @cached_property
    def _rows(self) -> pa.Table:
        return pa.concat_tables(list(read_rows(self._data)()))


def or_no_rows_of(snapshot: Snapshot, rows: pa.Table) -> pa.Table:
    """The rows; an empty list of dicts, which has no columns, becomes an empty table with this table's columns."""
    return rows if rows.num_columns or rows.num_rows else no_rows(to_arrow(snapshot.schema))
