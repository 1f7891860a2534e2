"""Small lakes with tables of few rows in many blocks, and DuckDB on the same rows as the judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import duckdb
import pyarrow as pa

from underlay.change.define.define import define
from underlay.change.rows.append import append
from underlay.local.dataset.dataset import TableDataset
from underlay.local.dataset.source import EngineDataset, SnapshotSource
from underlay.local.sql.result import SqlResult
from underlay.local.sql.run import Parameters, run_sql
from underlay.scan.read.file_stores import FileStores
from underlay.store import open_store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import create
from underlay.table.open_table import Head, OpenTable
from underlay.table.time_travel import at_time, at_version


@dataclass(frozen=True, kw_only=True, eq=False)
class SpySource(SnapshotSource):
    """Remembers what engines ask for."""

    asked: list[tuple[object, str]]

    def scan(self, columns=None, filter=None, **options):
        self.asked.append((columns, str(filter)))
        return super().scan(columns, filter, **options)


class SmallLake:
    """Tables by name; each query resolves them anew and remembers what it resolved and asked for."""

    def __init__(self, folder: Path | None, tables: Mapping[str, pa.Table] | None = None, block_rows: int = 2) -> None:
        self.store = open_store(f"memory://{uuid4()}" if folder is None else str(folder))
        self.lake = LakeCatalog(self.store)
        self.lake.initialise()
        self.stores = FileStores(self.store)
        self.opened: dict[str, OpenTable] = {}
        self.resolved: list[str] = []
        self.asked: list[tuple[object, str]] = []
        for name, rows in (tables or {}).items():
            self.create(name, rows, block_rows)

    def create(self, name: str, rows: pa.Table, block_rows: int = 2, **properties: str) -> None:
        create(self.lake, name, define(rows.schema, properties={"block_rows": str(block_rows), **properties}))
        self.opened[name] = OpenTable(self.lake, name)
        self.append(name, rows)

    def append(self, name: str, rows: pa.Table) -> None:
        append(self.opened[name], rows)

    def head(self, name: str) -> Head:
        return self.opened[name].head()

    def dataset(self, name: str, version: int | None = None, as_of: datetime | None = None) -> TableDataset:
        return TableDataset(self.source(name, version, as_of))

    def source(self, name: str, version: int | None = None, as_of: datetime | None = None) -> SpySource:
        head = self.head(name)
        if version is not None:
            head = Head(head.revision, at_version(head.revision, version))
        if as_of is not None:
            head = Head(head.revision, at_time(head.revision, int(as_of.timestamp() * 1_000_000)))
        return SpySource(snapshot=self.opened[name].snapshot(head), stores=self.stores, name=name, asked=self.asked)

    def sql(self, text: str, parameters: Parameters | None = None, **options: bool) -> SqlResult:
        self.resolved.clear()
        self.asked.clear()

        def resolve(name: str, version: int | None, as_of: datetime | None) -> EngineDataset | None:
            self.resolved.append(name)
            return EngineDataset(self.source(name, version, as_of))

        return run_sql(text, resolve, lambda: self.opened, parameters, **options)

    def rows(self, text: str, parameters: Parameters | None = None) -> list[tuple[object, ...]]:
        return self.sql(text, parameters).fetchall()


class Judge:
    """DuckDB's own tables, which hold the same rows: it pushes nothing into them that it does not apply itself."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._connection = duckdb.connect(":memory:")
        self._connection.execute("SET TimeZone = 'UTC'")
        for name, rows in tables.items():
            self._connection.register("given", rows)
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name.split('.')[0]}")
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            self._connection.unregister("given")

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def rows(self, text: str) -> list[tuple[object, ...]]:
        table = self._connection.sql(text).to_arrow_table()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
