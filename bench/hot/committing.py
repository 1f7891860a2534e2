"""Systems that commit rows durably, and a reader of each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar, Protocol

import duckdb
import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as IcebergTable

import underlay as ul
from bench.systems.ducklake import find_extension

ROWS = 20
BULK = 100_000
_DAY = 1_700_006_400_000_000
_TYPES: dict[str, pa.DataType] = {
    "ts": pa.timestamp("us", "UTC"),
    "id": pa.int64(),
    "zone": pa.string(),
    "fare": pa.float64(),
    "n": pa.int32(),
}
SCHEMA = pa.schema(_TYPES)
_ZONES = [f"zone {number}" for number in range(200)]


def make_rows(first: int, count: int) -> pa.Table:
    """Rows in the order of their times, all of one day."""
    ids = np.arange(first, first + count)
    zones = pa.DictionaryArray.from_arrays(pa.array(ids % 200, pa.int32()), pa.array(_ZONES)).cast(pa.string())
    times = pa.array(_DAY + ids * 1000, pa.int64()).cast(SCHEMA.field("ts").type)
    return pa.table([times, pa.array(ids), zones, pa.array(ids / 7), pa.array(ids % 1000, pa.int32())], schema=SCHEMA)


class Committing(Protocol):
    """A table of a system, open for writing, and a second object that reads it."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None: ...

    def append(self, rows: pa.Table) -> None:
        """Commit rows, durably."""

    def count(self) -> int:
        """How many rows the reader sees now."""

    def close(self) -> None:
        """End."""


class NewFiles:
    """Syncs files that appeared or grew below some folders since the last call, and the folders."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._known: dict[str, int] = {}

    def sync(self) -> None:
        """Make them durable."""
        for folder in self._folders:
            for path, _, names in os.walk(folder):
                is_new = False
                for name in names:
                    place = os.path.join(path, name)
                    size = os.stat(place).st_size
                    if self._known.get(place) != size:
                        self._known[place] = size
                        is_new = True
                        _sync(place)
                if is_new:
                    _sync(path)


def _sync(place: str) -> None:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class UnderlayHot:
    """A hot partition of one day, which syncs by itself."""

    name: ClassVar[str] = "underlay"

    def __init__(self, folder: Path) -> None:
        self._lake = ul.connect(folder / "lake", registry="none", hot=folder / "hot")
        self._lake.initialise()
        table = self._lake.create_table("bench.rows", SCHEMA, sort_by=["ts"])
        self.writer = table.hot("day")
        self._reading = ul.connect(folder / "lake", registry="none", hot=folder / "hot")
        self.reader = self._reading.table("bench.rows")

    def append(self, rows: pa.Table) -> None:
        """See Committing."""
        self.writer.append(rows)

    def count(self) -> int:
        """See Committing."""
        return self.reader.scan().count()

    def close(self) -> None:
        """See Committing."""
        self.writer.close()
        self._reading.close()
        self._lake.close()


class Delta:
    """delta-rs."""

    name: ClassVar[str] = "deltalake"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "rows"
        self._table = DeltaTable.create(str(self._path), SCHEMA)
        self._reader = DeltaTable(str(self._path))
        self._files = NewFiles(self._path)

    def append(self, rows: pa.Table) -> None:
        """See Committing."""
        write_deltalake(self._table, rows, mode="append")
        self._files.sync()

    def count(self) -> int:
        """See Committing."""
        self._reader.update_incremental()
        return int(self._reader.count())

    def close(self) -> None:
        """See Committing."""


class Iceberg:
    """PyIceberg with a catalog on SQLite."""

    name: ClassVar[str] = "pyiceberg"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        catalog.create_namespace("bench")
        self._table: IcebergTable = catalog.create_table("bench.rows", SCHEMA)
        self._reader = catalog.load_table("bench.rows")
        self._files = NewFiles(folder)

    def append(self, rows: pa.Table) -> None:
        """See Committing."""
        self._table.append(rows)
        self._files.sync()

    def count(self) -> int:
        """See Committing."""
        return int(self._reader.refresh().scan().count())

    def close(self) -> None:
        """See Committing."""


class DuckLake:
    """DuckLake whose catalog, a DuckDB file that syncs by itself, takes small commits inline."""

    name: ClassVar[str] = "ducklake"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._connection = duckdb.connect()
        self._connection.execute(f"load '{find_extension('ducklake')}'")
        self._connection.execute(f"attach 'ducklake:{folder}/rows.ducklake' as lake (data_path '{folder}/data')")
        self._connection.register("empty", SCHEMA.empty_table())
        self._connection.execute("create table lake.rows as from empty")
        self._connection.execute(f"call lake.set_option('data_inlining_row_limit', {10 * ROWS})")
        self._reader = self._connection.cursor()
        self._files = NewFiles(folder / "data")

    def append(self, rows: pa.Table) -> None:
        """See Committing."""
        self._connection.register("new_rows", rows)
        self._connection.execute("insert into lake.rows from new_rows")
        self._files.sync()

    def count(self) -> int:
        """See Committing."""
        found = self._reader.execute("select count(*) from lake.rows").fetchone()
        return 0 if found is None else int(found[0])

    def close(self) -> None:
        """See Committing."""
        self._connection.close()


class DuckFiles:
    """DuckDB's own way to append Parquet: a new file each time. Others find files by listing the folder."""

    name: ClassVar[str] = "duckdb"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._connection = duckdb.connect()
        self._count = 0

    def append(self, rows: pa.Table) -> None:
        """See Committing."""
        self._count += 1
        place = self._folder / f"{self._count:06}.parquet"
        self._connection.register("new_rows", rows)
        self._connection.execute(f"copy new_rows to '{place}' (format parquet)")
        _sync(str(place))
        _sync(str(self._folder))

    def count(self) -> int:
        """See Committing."""
        found = self._connection.execute(f"select count(*) from '{self._folder}/*.parquet'").fetchone()
        return 0 if found is None else int(found[0])

    def close(self) -> None:
        """See Committing."""
        self._connection.close()


SYSTEMS: tuple[type[Committing], ...] = (UnderlayHot, Delta, Iceberg, DuckLake, DuckFiles)
NAMES = [system.name for system in SYSTEMS]
