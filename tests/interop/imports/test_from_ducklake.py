"""Tables of DuckLake come in as they are: rows equal those that DuckDB reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import duckdb_extension_ducklake
import pyarrow as pa
import pytest

import underlay
from tests.end_to_end.lakes import memory, quick
from tests.interop.imports.rows import sorted_rows
from underlay.errors import Damaged, InvalidRequest, NotFound, SourceChanged, TableNotFound, Unsupported

NAME = "k.t"


@pytest.fixture
def lake() -> underlay.Lake:
    return quick(memory())


@contextmanager
def opened(folder: Path, inlined: int = 0) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection whose default catalog is the DuckLake; the file is closed at its end."""
    folder.mkdir(exist_ok=True)
    path = next(Path(duckdb_extension_ducklake.__file__).parent.rglob("ducklake.duckdb_extension"))
    with duckdb.connect() as connection:
        connection.load_extension(os.fspath(path))
        options = f"data_path '{folder}/data', data_inlining_row_limit {inlined}"
        connection.execute(f"attach 'ducklake:{folder}/l.ducklake' as l ({options})")
        connection.execute("use l")
        yield connection
        connection.execute("use memory")
        connection.execute("detach l")


def run(folder: Path, *statements: str) -> pa.Table:
    with opened(folder) as connection:
        for statement in statements:
            connection.execute(statement)
        return connection.sql("from t").to_arrow_table()


def address(folder: Path) -> str:
    return f"ducklake:{folder}/l.ducklake#t"


def test_a_table_with_everything(lake: underlay.Lake, tmp_path: Path) -> None:
    folder = tmp_path / "duck"
    rows = run(
        folder,
        "create table t (id bigint, name varchar, s struct(a integer, b varchar[]), m map(varchar, double), "
        "p decimal(9, 2), d date, moment timestamptz, u uuid, f float, tiny utinyint)",
        "insert into t select i, 'n' || i, {'a': i, 'b': ['x', null]}, map {'k': i / 2}, i / 4, date '2024-01-01', "
        "timestamptz '2024-01-01 00:00:00+00', uuid(), 'nan'::float, 200 from range(100) r(i)",
        "delete from t where id in (3, 99)",
    )
    table = lake.import_table(NAME, address(folder))
    assert sorted_rows(table) == sorted_rows(rows)
    assert len(table) == 98
    rows = run(
        folder,
        "alter table t rename column name to label",
        "alter table t add column extra double default 1.5",
        "alter table t drop column m",
        "insert into t by name select 500 as id, 'x' as label, 2.5 as extra",
        "delete from t where id = 7",
    )
    done = table.sync()
    assert (done.files_added, done.files_removed, done.rows_deleted) == (1, 0, 1)
    assert sorted_rows(table) == sorted_rows(rows)
    assert table.scan(where="extra = 1.5").count() == 97
    assert not table.sync().is_new
    rows = run(folder, "create or replace table other as select 1 a", "update t set label = 'changed' where id = 500")
    table.sync()
    assert sorted_rows(table) == sorted_rows(rows)


def test_added_files_go_by_names_and_paths(lake: underlay.Lake, tmp_path: Path) -> None:
    folder = tmp_path / "duck"
    for year in (2023, 2024):
        part = tmp_path / "files" / f"year={year}"
        part.mkdir(parents=True)
        duckdb.sql(f"copy (select {year} * 10 + i as id, 'é' as label from range(3) r(i)) to '{part}/a.parquet'")
    rows = run(
        folder,
        "create table t (id bigint, label varchar, year bigint)",
        f"call ducklake_add_data_files('l', 't', '{tmp_path}/files/**/*.parquet', hive_partitioning => true)",
        "alter table t rename column label to name",
    )
    table = lake.import_table(NAME, address(folder))
    assert sorted_rows(table) == sorted_rows(rows)
    assert table.plan(where="year = 2023").kept.files == 1


def test_inlined_rows_and_lost_tables_are_refused(lake: underlay.Lake, tmp_path: Path) -> None:
    folder = tmp_path / "duck"
    with opened(folder, inlined=10) as connection:
        connection.execute("create table t (id bigint)")
        connection.execute("insert into t values (1)")
    with pytest.raises(Unsupported, match="flush"):
        lake.import_table(NAME, address(folder))
    assert NAME not in lake
    with pytest.raises(TableNotFound, match=r"main\.other"):
        lake.import_table(NAME, f"ducklake:{folder}/l.ducklake#other")
    with pytest.raises(NotFound, match="no such catalog"):
        lake.import_table(NAME, f"ducklake:{folder}/none#t")
    with pytest.raises(InvalidRequest, match="not the address"):
        lake.import_table(NAME, f"ducklake:{folder}/l.ducklake")
    (folder / "plain.sqlite").write_bytes(b"")
    with pytest.raises(Damaged, match="not a catalog"):
        lake.import_table(NAME, f"ducklake:sqlite:{folder}/plain.sqlite#t")


def test_another_table_of_the_name_is_refused(lake: underlay.Lake, tmp_path: Path) -> None:
    folder = tmp_path / "duck"
    run(folder, "create table t as select 1 as id")
    table = lake.import_table(NAME, address(folder))
    run(folder, "create or replace table t as select 2 as id")
    with pytest.raises(SourceChanged, match="another table"):
        table.sync()
