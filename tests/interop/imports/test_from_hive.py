"""Folders of Parquet files with partitions in their paths come in as DuckDB and pyarrow read them."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

import underlay
from tests.end_to_end.lakes import memory, quick
from tests.interop.imports.rows import sorted_rows
from underlay.errors import InvalidRequest, NotFound, SourceChanged, Unsupported

NAME = "h.t"
NULL = "__HIVE_DEFAULT_PARTITION__"


@pytest.fixture
def lake() -> underlay.Lake:
    return quick(memory())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "year=1999" / "data"


def put(folder: Path, name: str, **columns: object) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path


def by_duckdb(folder: Path, types: str = "") -> pa.Table:
    options = f"hive_partitioning=true, union_by_name=true{f', hive_types={types}' if types else ''}"
    return duckdb.sql(f"select * exclude (year) from read_parquet('{folder}/**/*.parquet', {options})").to_arrow_table()


def test_values_in_paths_are_columns(lake: underlay.Lake, folder: Path) -> None:
    zones = ["JFK", "a/b", "%2F", None, "é ü", "07"]
    for at, zone in enumerate(zones):
        name = NULL if zone is None else quote(zone, safe="")
        put(folder, f"zone={name}/day=2024-01-0{at + 1}/n={at}/part-{at}.parquet", id=[at, at + 10])
    put(folder, "zone=JFK/day=2024-01-01/n=0/_hidden.parquet", id=[99])
    put(folder, f"zone={NULL}/day={NULL}/n={NULL}/x.parquet", id=[50])
    table = lake.import_table(NAME, f"hive:{folder}")
    types = {one.name: one.type for one in table.schema}
    assert types == {"id": pa.int64(), "zone": pa.string(), "day": pa.date32(), "n": pa.int64()}
    found = sorted_rows(table, ["id", "zone", "day", "n"])
    wanted = [(at + more, zone, date(2024, 1, at + 1), at) for at, zone in enumerate(zones) for more in (0, 10)]
    assert found == sorted([*wanted, (50, None, None, None)], key=repr)
    seen = by_duckdb(folder, "{'day': date, 'n': bigint, 'zone': varchar}")  # hidden files too
    assert found == sorted_rows(seen.filter(pa.compute.not_equal(seen["id"], 99)), ["id", "zone", "day", "n"])
    for where, count in (("zone = '%2F'", 2), ("zone is null", 3), ("n > 3 and day >= '2024-01-05'", 4)):
        assert table.scan(where=where).count() == count
        plan = table.plan(where=where)
        assert plan.kept.files == (count + 1) // 2
        assert plan.total.files == 7


def test_files_of_several_schemas_are_one_table(lake: underlay.Lake, folder: Path) -> None:
    put(folder, "a.parquet", id=pa.array([1, 2], pa.int32()), old=["x", None])
    put(folder, "b.parquet", id=pa.array([2**40], pa.int64()), nested=[{"a": [1]}])
    put(folder, "c.parquet", nested=pa.array([{"a": [2], "b": 1.5}]), id=pa.array([7], pa.int16()), none=pa.nulls(1))
    table = lake.import_table(NAME, f"hive:{folder}")
    assert table.schema.names == ["id", "old", "nested"]
    assert table.schema.field("id").type == pa.int64()
    rows = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert rows[7]["nested"] == {"a": [2], "b": 1.5}
    assert rows[2**40]["nested"] == {"a": [1], "b": None}
    assert rows[1] == {"id": 1, "old": "x", "nested": None}


def test_timestamps_of_hive_and_spark(lake: underlay.Lake, folder: Path) -> None:
    path = put(folder, "a.parquet", id=[1])
    moments = pa.table({"id": [1, 2], "at": pa.array([datetime(2020, 1, 1, 1, 2, 3, 4), None], pa.timestamp("us"))})
    pq.write_table(moments, path, use_deprecated_int96_timestamps=True)
    table = lake.import_table(NAME, f"hive:{folder}")
    assert table.schema.field("at").type == pa.timestamp("us")
    assert sorted_rows(table) == sorted_rows(moments)


def test_a_sync_follows_the_folder(lake: underlay.Lake, folder: Path) -> None:
    put(folder, "year=2020/a.parquet", id=[1, 2])
    gone = put(folder, "year=2021/b.parquet", id=[3])
    table = lake.import_table(NAME, f"hive:{folder}")
    assert not table.sync().is_new
    gone.unlink()
    put(folder, "year=2020/a.parquet", id=[1, 2, 20])
    put(folder, f"year={NULL}/c.parquet", id=[4], more=[1.5])
    done = table.sync()
    assert (done.files_added, done.files_removed) == (2, 2)
    assert sorted_rows(table, ["id", "year", "more"]) == sorted(
        [(1, 2020, None), (2, 2020, None), (20, 2020, None), (4, None, 1.5)], key=repr
    )
    assert not table.sync().is_new
    put(folder, "year=MMXX/d.parquet", id=[5])
    with pytest.raises(Unsupported, match="year is int64 in the table and 'MMXX' in a path"):
        table.sync()


def test_a_file_that_contradicts_its_path_is_refused(lake: underlay.Lake, folder: Path) -> None:
    put(folder, "n=1/a.parquet", id=[1], n=[1])
    put(folder, "n=2/a.parquet", id=[1], n=[3])
    with pytest.raises(Unsupported, match="n is 2 in the path and also in the file") as error:
        lake.import_table(NAME, f"hive:{folder}")
    assert "n=2" in str(error.value) or "n%3D2" in str(error.value)
    assert NAME not in lake


def test_what_cannot_be_a_table_is_listed(lake: underlay.Lake, folder: Path) -> None:
    put(folder, "n=1/a.parquet", id=[1])
    put(folder, "b.parquet", id=["text"])
    with pytest.raises(Unsupported) as error:
        lake.import_table(NAME, f"hive:{folder}")
    assert "Column id is " in str(error.value)
    assert "no folder for n" in str(error.value)
    with pytest.raises(NotFound, match="no Parquet file"):
        lake.import_table(NAME, f"hive:{folder}/nowhere")


@pytest.mark.parametrize("marker", ["_delta_log/00000000000000000000.json", "metadata/v1.metadata.json"])
def test_tables_of_other_formats_are_not_read_as_folders(lake: underlay.Lake, folder: Path, marker: str) -> None:
    put(folder, "a.parquet", id=[1])
    path = folder / marker
    path.parent.mkdir()
    path.write_text("{}")
    with pytest.raises(InvalidRequest, match="Import it as"):
        lake.import_table(NAME, f"hive:{folder}")


def test_files_of_our_own_tables_are_refused(tmp_path: Path) -> None:
    lake = quick(underlay.store.open_store(str(tmp_path / "lake")))
    lake.create_table("a.t", "id bigint").append([{"id": 1}])
    with pytest.raises(InvalidRequest, match="belong to tables of this lake"):
        lake.import_table(NAME, f"hive:{tmp_path / 'lake' / 'a'}")


def test_deleted_rows_here_are_not_brought_back(lake: underlay.Lake, folder: Path) -> None:
    put(folder, "a.parquet", id=[1, 2])
    table = lake.import_table(NAME, f"hive:{folder}")
    table.delete("id = 1")
    put(folder, "b.parquet", id=[3])
    with pytest.raises(SourceChanged, match="changed here"):
        table.sync()
