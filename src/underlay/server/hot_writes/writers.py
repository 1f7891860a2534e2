"""The one writer of each hot table of a server, opened when its first rows come and closed with the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from underlay.api.hot_writer import HotTableWriter
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import (
    InvalidRequest,
    NotFound,
    RevisionClosed,
    SchemaMismatch,
    TableExists,
    TableNotFound,
    UnderlayError,
)
from underlay.hot.txn.identity import HotIdentity
from underlay.runtime.locks import ProcessLock
from underlay.runtime.threads import side_by_side
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.server.common.hot_settings import HotSettings

T = TypeVar("T")
_AT_ONCE = 8


@dataclass(slots=True)
class OpenHotTable:
    """A table and its writer."""

    table: Table
    writer: HotTableWriter
    staleness_seconds: float

    def schema(self, staleness_seconds: float | None = None) -> TableSchema:
        """The table's columns. Raises NotFound and RevisionClosed when it was dropped."""
        staleness = self.staleness_seconds if staleness_seconds is None else staleness_seconds
        return from_record(self.table.writable().head(staleness).root.definition.schema)

    @property
    def time_name(self) -> str:
        """The column by whose time partitions are cut."""
        identity: HotIdentity = self.writer.writer.identity
        return next(field.name for field in self.schema().fields if field.id == identity.column)


class HotWriters:
    """Writers by table name. Thread-safe; every method may wait for the disk."""

    def __init__(self, lake: Lake, settings: HotSettings) -> None:
        self._lake = lake
        self._settings = settings
        self._opened: dict[str, OpenHotTable] = {}
        self._lock = ProcessLock()
        self._is_closed = False

    def open(self, name: str) -> OpenHotTable | None:
        """A table with its writer, None if there is no such table. Raises LeaseHeld when another process writes it."""
        with self._lock:
            self._check_open()
            known = self._opened.get(name)
            if known is not None:
                try:
                    known.schema()
                except (NotFound, RevisionClosed):
                    _close(self._opened.pop(name))
                else:
                    return known
            try:
                table = self._lake.table(name)
                table.snapshot()
            except TableNotFound:
                return None
            self._opened[name] = self._with_writer(table, self._writer(table))
            return self._opened[name]

    def create(self, name: str, columns: pa.Schema) -> OpenHotTable:
        """Create a table whose first column is its time. If another process was first, its table is opened."""
        time_name = columns.names[0]
        with self._lock:
            self._check_open()
            try:
                self._lake.create_table(name, columns, sort_by=(time_name,))
            except TableExists:
                pass
            else:
                table = self._lake.table(name)
                writer = table.hot(self._settings.partition, column=time_name)
                self._opened[name] = self._with_writer(table, writer)
                return self._opened[name]
        found = self.open(name)
        if found is None:
            raise TableNotFound(f"there is no table {name}", hint="It was dropped a moment ago.")
        return found

    def add_columns(self, opened: OpenHotTable, columns: pa.Schema) -> TableSchema:
        """Add those of the columns that the table still lacks. Returns its columns."""
        with self._lock:
            known = {name.casefold() for name in opened.schema(0.0).names}
            if new := [field for field in columns if field.name.casefold() not in known]:
                with opened.table.evolve() as change:
                    for field in new:
                        change.add_column(field.name, field.type)
        return opened.schema(0.0)

    def append(self, rows: Sequence[tuple[OpenHotTable, pa.Table]]) -> list[UnderlayError | None]:
        """Commit rows to each table, all or none for each. What failed, in their order."""

        def one(item: tuple[OpenHotTable, pa.Table]) -> UnderlayError | None:
            opened, table = item
            try:
                opened.writer.append(table)
            except UnderlayError as error:
                if not isinstance(error, SchemaMismatch):
                    self.forget(opened)
                return error
            return None

        return side_by_side(one, rows, _AT_ONCE)

    def forget(self, opened: OpenHotTable) -> None:
        """Close a writer that failed; the next rows open another one, which recovers what it must."""
        with self._lock:
            if self._opened.get(opened.table.name) is opened:
                del self._opened[opened.table.name]
        _close(opened)

    def close(self) -> None:
        """Commit what waits, and close all writers."""
        with self._lock:
            self._is_closed = True
            opened, self._opened = list(self._opened.values()), {}
        side_by_side(_close, opened, _AT_ONCE)

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvalidRequest("the server is stopping")

    def _with_writer(self, table: Table, writer: HotTableWriter) -> OpenHotTable:
        return OpenHotTable(table, writer, self._settings.staleness_seconds)

    def _writer(self, table: Table) -> HotTableWriter:
        """The writer, by the configured name of the time where the table leaves a choice."""
        try:
            return table.hot()
        except InvalidRequest:
            if self._settings.time_column not in table.schema.names:
                raise
        return table.hot(column=self._settings.time_column)


def _close(opened: OpenHotTable) -> None:
    _quietly(opened.writer.close)


def _quietly(work: Callable[[], T]) -> None:
    """Do it; each append that failed has told its caller."""
    try:
        work()
    except UnderlayError:
        return
