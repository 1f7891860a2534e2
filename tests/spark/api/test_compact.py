"""A compaction in tasks of Spark does what one in process does, and Spark reads what either made."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.maintain.audit import audit
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.index.operation import Operation
from underlay.spark.api import compact as choosing
from underlay.spark.api.compact import compact
from underlay.spark.relation.relation import read_table
from underlay.store import open_store

NAME = "shop.sales"
ZONES = ("JFK", "LGA", "EWR")


def rows(begin: int, zone: str, count: int = 20) -> pa.Table:
    ids = range(begin, begin + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "zone": [zone] * count,
            "fare": pa.array([[0.5, float("nan"), -0.0, None][one % 4] for one in ids], pa.float32()),
            "gone": [f"g{one}" for one in ids],
            "old name": [f"w{one}" for one in ids],
            "box": [{"x": one, "y": f"y{one}"} if one % 3 else None for one in ids],
        }
    )


def make(place: Path) -> Table:
    """Partitions of small files with deleted rows, from before and after changes of the columns; one was imported."""
    lake = ul.connect(place / "lake", registry="none")
    table = lake.create_table(
        NAME, rows(0, "JFK").schema, partition_by=["zone"], sort_by=["id"], properties={"block_rows": 30}
    )
    for number in range(6):
        table.append(rows(100 * number, ZONES[number % 3]))
    with table.evolve() as change:
        change.widen_column("id", "bigint")
        change.widen_column("fare", "double")
        change.rename_column("old name", "word")
        change.drop_column("gone")
        change.add_column("gone", "bigint", default=7)
    table.append(pa.table({"id": [1 << 40], "zone": ["EWR"], "fare": [1e300], "word": ["new"], "gone": [8]}))
    pq.write_table(pa.table({"id": range(900, 960), "zone": ["LGA"] * 60, "fare": [2.5] * 60}), place / "more.parquet")
    table.register(place / "more.parquet")
    table.delete("id % 7 = 3")
    table.import_files()
    return table


def seen(table: Table) -> list[str]:
    return sorted(map(repr, table.to_arrow().to_pylist()))


def check_sound(lake: Lake) -> None:
    report = lake.verify(deep=True, registry=False)
    assert [one.findings for one in report.tables[0].revisions] == [()]
    assert audit(open_store(lake.url)).missing == set()


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return make(tmp_path)


@pytest.fixture
def in_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is too small for a task."""
    monkeypatch.setattr(choosing, "SMALL_BYTES", -1)
    monkeypatch.setattr(choosing, "TASK_BYTES", 0)


def test_tasks_compact_groups_which_are_committed_one_by_one_and_spark_reads_the_same_rows(
    spark: SparkSession, table: Table, tmp_path: Path, in_tasks: None
):
    before, version, told = seen(table), table.version, []
    dead = sum(entry.deleted_rows for entry in table.snapshot().files())
    lake = ul.connect(tmp_path / "lake", registry="none")
    planned = compact(table, spark=spark, dry_run=True)
    done = compact(NAME, lake=lake, spark=spark, progress=lambda *some: told.append(some))
    assert (done.files_before, done.files_after, done.task_count, done.given_up) == (8, 3, 3, 0)
    assert (planned.files_before, planned.task_count, planned.choice) == (8, 3, done.choice)
    assert done.choice.startswith("in 3 tasks: ")
    assert done.rows_dropped == dead > 0
    assert done.version == version + done.commit_count == version + 3
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert {one.operation for one in list(table.history())[:3]} == {Operation.COMPACT}
    assert seen(table) == before
    assert table.changes(version).to_arrow().num_rows == 0
    assert compact(table, spark=spark).files_before == 0
    check_sound(lake)
    read_table(spark, lake, NAME).createOrReplaceTempView("compacted")
    for columns, where in (
        ("count(*), cast(sum(id) as bigint), count(fare), max(word), cast(sum(gone) as bigint)", "true"),
        ("id, fare, word, gone, box.y", "zone = 'LGA' and id between 100 and 420"),
        ("id, fare", "isnan(fare) or fare > 1e200"),
        ("id, word", "gone = 8 or id = 901 or word = 'w205'"),
        ("zone, box.x", "gone is null and box is not null and id < 50"),
    ):
        query = f"select {columns} from {{}} where {where}"
        ours = lake.sql(query.format(NAME)).fetchall()
        found = [tuple(row) for row in spark.sql(query.format("compacted")).collect()]
        assert sorted(map(repr, found)) == sorted(map(repr, ours)), query


def test_little_is_done_by_this_process_which_says_so(spark: SparkSession, table: Table):
    done = compact(table, spark=spark)
    assert (done.files_after, done.task_count, done.commit_count) == (3, 0, 1)
    assert done.choice.startswith("in this process: 0.0 MiB to encode")


def test_tasks_write_rows_in_an_order(spark: SparkSession, table: Table, tmp_path: Path, in_tasks: None):
    before = seen(table)
    done = compact(table, order="zorder(id, word)", spark=spark)
    assert (done.task_count, done.blocks_copied) == (3, 0)
    assert seen(table) == before
    check_sound(ul.connect(tmp_path / "lake", registry="none"))


def test_a_file_that_is_lost_and_files_that_others_change_meanwhile_are_left(
    spark: SparkSession, table: Table, tmp_path: Path, in_tasks: None
):
    before = seen(table)
    entries = list(table.snapshot().files())
    lost = next((tmp_path / "lake").rglob(entries[0].location))
    data = lost.read_bytes()
    lost.unlink()

    def change(done: int, _: int) -> None:
        if done == 1:  # the lost file has no such row, and the update does not read it
            ul.connect(tmp_path / "lake", registry="none").table(NAME).update({"word": "'changed'"}, "word is null")

    done = compact(table, spark=spark, progress=change)
    lost.write_bytes(data)
    assert (len(done.failed), done.task_count) == (1, 3)
    assert seen(table) == [one.replace("'word': None", "'word': 'changed'") for one in before]
    check_sound(ul.connect(tmp_path / "lake", registry="none"))
