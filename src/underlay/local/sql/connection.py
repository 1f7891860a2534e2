"""A DuckDB connection of the user's own, in which the tables of a lake are views."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.errors import Unsupported
from underlay.index.catalog import split_name
from underlay.local.dataset.scanner import DEFAULT_BATCH_ROWS, Columns, TableScanner
from underlay.local.dataset.source import SnapshotSource
from underlay.local.text.time_travel import quoted
from underlay.prune.parse.arrow import is_true_inside
from underlay.runtime.fork import leave_to_parent, start_afresh_after_fork
from underlay.runtime.locks import ProcessLock

Open = Callable[[str], SnapshotSource]
"""Returns the newest version of a table. Raises TableNotFound."""


class LakeConnection:
    """A connection like `duckdb.DuckDBPyConnection`, with the tables of a lake as `dataset.table`.

    Each use of the connection (`sql`, `execute`, `table` …) takes the newest version of each table, and keeps it until
    the next use, so that one query reads one version of a table. Queries that run at the same time, through cursors in
    other threads, may therefore see a table change; give each thread its own connection. Call `refresh` to see tables
    that were created since. `connection` is DuckDB's own object.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, open_table: Open, list_tables: Callable[[], Iterable[str]]
    ) -> None:
        self._connection = connection
        self._pins = _Pins(open_table)
        self._list_tables = list_tables
        start_afresh_after_fork(self)
        self.refresh()

    def start_afresh(self) -> None:
        """Leave the database alone when a forked child ends: its threads are the parent's."""
        leave_to_parent(self._connection)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401  # whatever DuckDB's connections have
    else:

        def __getattr__(self, name: str) -> object:
            # DuckDB's own method looks for variables in its caller's frame
            self._pins.release()
            return getattr(self._connection, name)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's own object. Its queries read the versions taken by the last use."""
        return self._connection

    def cursor(self) -> LakeConnection:
        """Another connection to the same database."""
        other = LakeConnection.__new__(LakeConnection)
        other._connection = self._connection.cursor()
        other._pins, other._list_tables = self._pins, self._list_tables
        return other

    duplicate = cursor

    def refresh(self) -> None:
        """Create a view for each table that exists now, with its current columns."""
        self._pins.release()
        ((catalog, schema),) = self._connection.execute("SELECT current_database(), current_schema()").fetchall()
        for name in self._list_tables():
            dataset, table = split_name(name)
            within = f"memory.{quoted(dataset)}"
            live = _LiveDataset(name, self._pins)
            with suppress(duckdb.Error):  # a name that DuckDB reserves, such as information_schema
                self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {within}; USE {within}")
                self._connection.from_arrow(live).create_view(table, replace=True)
        self._connection.execute(f"USE {quoted(catalog)}.{quoted(schema)}")
        self._pins.release()

    def close(self) -> None:
        """Close it. The lake stays open."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LakeConnection({self._connection!r})"


class _Pins:
    """The version of each table that is read until the pins are released."""

    def __init__(self, open_table: Open) -> None:
        self._open = open_table
        self._lock = ProcessLock()
        self._held: dict[str, SnapshotSource] = {}

    def source(self, name: str) -> SnapshotSource:
        with self._lock:
            if name not in self._held:
                self._held[name] = self._open(name)
            return self._held[name]

    def release(self) -> None:
        with self._lock:
            self._held = {}


class _LiveDataset(ds.Dataset):
    """A table for DuckDB. It has no C++ object inside, but DuckDB passes it to nobody."""

    def __init__(self, name: str, pins: _Pins) -> None:
        self._name = name
        self._pins = pins
        self._schema = pins.source(name).schema

    @property
    def schema(self) -> pa.Schema:
        """The columns of the view."""
        return self._schema

    def scanner(  # type: ignore[override]  # what DuckDB asks for
        self,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = DEFAULT_BATCH_ROWS,
        **_: object,
    ) -> TableScanner:
        """A scan of the pinned version. Raises Unsupported for a filter that DuckDB pushes wrongly."""
        if filter is not None and "true" in str(filter) and is_true_inside(filter):
            raise Unsupported(
                "DuckDB hands a comparison with NaN to tables as true, also for nulls",
                place=self._name,
                hint="Write IS NOT NULL for <= 'NaN', or run the query with lake.sql.",
            )
        source = self._pins.source(self._name)
        wanted = self._schema.names if columns is None else columns
        if not source.schema.equals(self._schema):
            known = {field.name: field for field in source.schema}
            if any(field != known.get(field.name) for field in self._schema):
                raise Unsupported(
                    "the table's columns changed since the connection was made",
                    place=self._name,
                    hint="Call refresh() on the connection.",
                )
        return source.scan(wanted, filter, batch_rows=batch_size)
