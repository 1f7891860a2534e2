"""A table of each system whose rows are changed: made anew, then upserted, deleted and updated by ranges of ids."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Protocol

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from bench.changes.rows import SCHEMA, Scale
from bench.systems.ducklake import find_extension
from underlay.api.lake import connect
from underlay.api.table import Table
from underlay.change.update.result import Changed

TABLE = "bench.rows"


class Changing(Protocol):
    """A table that is changed. Ranges of ids are half-open."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None: ...

    def create(self, scale: Scale, files: Iterable[pa.Table]) -> None:
        """A table with one file for each of these, in blocks of the scale."""

    def upsert(self, rows: pa.Table) -> object:
        """Replace rows with the same id, and add the others."""

    def delete(self, first: int, end: int) -> object:
        """Delete rows by their ids."""

    def update(self, first: int, end: int) -> object:
        """Add 1 to `d0` of rows by their ids."""

    def total(self) -> tuple[int, float]:
        """How many rows there are, and the sum of `d0`."""


class Ours:
    """Underlay, through the methods of a table."""

    name: ClassVar[str] = "underlay"

    def __init__(self, folder: Path) -> None:
        self.lake = connect(folder / "lake")

    def create(self, scale: Scale, files: Iterable[pa.Table]) -> None:
        """See Changing."""
        properties = {"block_rows": scale.block_rows}
        table = self.lake.create_table(TABLE, SCHEMA, key=["id"], properties=properties)
        for rows in files:
            table.append(rows)

    @property
    def table(self) -> Table:
        """The table."""
        return self.lake.table(TABLE)

    def upsert(self, rows: pa.Table) -> Changed:
        """See Changing."""
        return self.table.upsert(rows)

    def delete(self, first: int, end: int) -> Changed:
        """See Changing."""
        return self.table.delete(f"id >= {first} and id < {end}")

    def update(self, first: int, end: int) -> Changed:
        """See Changing."""
        return self.table.update({"d0": "d0 + 1"}, where=f"id >= {first} and id < {end}")

    def total(self) -> tuple[int, float]:
        """See Changing."""
        return _total(self.lake.sql(f"select count(*), sum(d0) from {TABLE}").to_arrow())


class Delta:
    """Delta Lake by delta-rs."""

    name: ClassVar[str] = "deltalake"

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "rows")

    def create(self, scale: Scale, files: Iterable[pa.Table]) -> None:
        """See Changing."""
        from deltalake import WriterProperties, write_deltalake

        for rows in files:
            properties = WriterProperties(max_row_group_size=scale.block_rows, compression="ZSTD", compression_level=1)
            write_deltalake(self._path, rows, mode="append", writer_properties=properties)

    def upsert(self, rows: pa.Table) -> object:
        """See Changing."""
        from deltalake import DeltaTable

        merge = DeltaTable(self._path).merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
        return merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def delete(self, first: int, end: int) -> object:
        """See Changing."""
        from deltalake import DeltaTable

        return DeltaTable(self._path).delete(f"id >= {first} and id < {end}")

    def update(self, first: int, end: int) -> object:
        """See Changing."""
        from deltalake import DeltaTable

        return DeltaTable(self._path).update({"d0": "d0 + 1"}, predicate=f"id >= {first} and id < {end}")

    def total(self) -> tuple[int, float]:
        """See Changing."""
        from deltalake import DeltaTable, QueryBuilder

        query = QueryBuilder().register("rows", DeltaTable(self._path))
        return _total(pa.table(query.execute("select count(*), sum(d0) from rows").read_all()))


class DuckLake:
    """DuckLake, its catalog in a DuckDB file."""

    name: ClassVar[str] = "ducklake"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._connection = duckdb.connect()
        self._connection.execute(f"load '{find_extension('ducklake')}'")
        self._connection.execute(f"attach 'ducklake:{folder}/rows.ducklake' as lake (data_path '{folder}/data')")

    def create(self, scale: Scale, files: Iterable[pa.Table]) -> None:
        """See Changing."""
        run = self._connection.execute
        self._connection.register("empty", SCHEMA.empty_table())
        run("create table lake.rows as from empty")
        run(f"call lake.set_option('parquet_row_group_size', {scale.block_rows})")
        run("call lake.set_option('parquet_compression', 'zstd')")
        run("call lake.set_option('data_inlining_row_limit', 0)")
        for rows in files:
            self._connection.register("new_rows", rows)
            run("insert into lake.rows from new_rows")

    def upsert(self, rows: pa.Table) -> object:
        """See Changing."""
        self._connection.register("changes", rows)
        return self._connection.execute(
            "merge into lake.rows t using changes s on t.id = s.id "
            "when matched then update when not matched then insert"
        ).fetchall()

    def delete(self, first: int, end: int) -> object:
        """See Changing."""
        return self._connection.execute(f"delete from lake.rows where id >= {first} and id < {end}").fetchall()

    def update(self, first: int, end: int) -> object:
        """See Changing."""
        statement = f"update lake.rows set d0 = d0 + 1 where id >= {first} and id < {end}"
        return self._connection.execute(statement).fetchall()

    def total(self) -> tuple[int, float]:
        """See Changing."""
        return _total(self._connection.execute("select count(*), sum(d0) from lake.rows").to_arrow_table())


class Iceberg:
    """Iceberg by PyIceberg, its catalog on SQLite. It has no update by expression: that is an overwrite of rows."""

    name: ClassVar[str] = "pyiceberg"

    def __init__(self, folder: Path) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        folder.mkdir(parents=True, exist_ok=True)
        self._catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")

    def create(self, scale: Scale, files: Iterable[pa.Table]) -> None:
        """See Changing."""
        self._catalog.create_namespace("bench")
        properties = {"write.parquet.row-group-limit": str(scale.block_rows)}
        table = self._catalog.create_table(TABLE, SCHEMA, properties=properties)
        for rows in files:
            table.append(rows)

    def upsert(self, rows: pa.Table) -> object:
        """See Changing."""
        return self._catalog.load_table(TABLE).upsert(rows, join_cols=["id"])

    def delete(self, first: int, end: int) -> object:
        """See Changing."""
        self._catalog.load_table(TABLE).delete(f"id >= {first} and id < {end}")
        return None

    def update(self, first: int, end: int) -> object:
        """See Changing."""
        table = self._catalog.load_table(TABLE)
        where = f"id >= {first} and id < {end}"
        rows = table.scan(row_filter=where).to_arrow().cast(SCHEMA)
        raised = pc.add(rows["d0"], pa.scalar(1.0))
        table.overwrite(rows.set_column(rows.schema.names.index("d0"), "d0", raised), where)
        return None

    def total(self) -> tuple[int, float]:
        """See Changing."""
        found = self._catalog.load_table(TABLE).scan(selected_fields=("d0",)).to_arrow()
        return found.num_rows, float(pc.sum(found["d0"]).as_py() or 0)


CHANGING: tuple[type[Changing], ...] = (Ours, Delta, DuckLake, Iceberg)


def _total(answer: pa.Table) -> tuple[int, float]:
    return int(answer.column(0)[0].as_py()), float(answer.column(1)[0].as_py())
