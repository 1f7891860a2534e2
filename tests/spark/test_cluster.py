"""Executors that are killed while they work. Only on a cluster: in a local session the executor is the driver."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import underlay as ul
from tests.end_to_end.lakes import named_keys
from underlay.api.table import Table
from underlay.spark import small
from underlay.spark.arrow_map import map_in_arrow
from underlay.spark.relation import read_table
from underlay.spark.write import append

pytestmark = pytest.mark.cluster_only
NAME = "some.table"
ROWS = 20_000


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return ul.connect(tmp_path / "lake").create_table(NAME, "id bigint not null, name string")


def killing(frame: DataFrame, number: int, mark: Path) -> DataFrame:
    """The same rows; the first task that comes to this id kills its executor, and leaves the mark."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if number in batch.column("id").to_pylist() and _is_first(mark):
                os.kill(_executor(), signal.SIGKILL)
                signal.pause()
            yield batch

    return map_in_arrow(frame, run, frame.schema)


def _is_first(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _executor() -> int:
    """The process of the executor: it started the daemon that this worker was forked from."""
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])


def frame_of(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 4).selectExpr("id", "concat('name ', id) as name")


def test_rows_run_in_other_processes_than_the_driver(spark: SparkSession):
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"id": [_executor()]})

    found = {row.id for row in map_in_arrow(spark.range(0, 8, 1, 8), run, spark.range(1).schema).collect()}
    assert found
    assert all(b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in found)


def test_append_whose_executor_is_killed_has_every_row_once(
    spark: SparkSession, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(small, "SMALL_BYTES", -1)
    mark = tmp_path / "killed"
    rows = killing(frame_of(spark), ROWS // 2 - 1, mark)
    append(rows, NAME, lake=ul.connect(tmp_path / "lake"))
    assert mark.exists()
    assert table.version == 1
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(ROWS))
    assert len(named_keys(table)) == 4


def test_read_whose_executor_is_killed_gives_the_right_answer(spark: SparkSession, table: Table, tmp_path: Path):
    for begin in range(0, ROWS, ROWS // 4):
        ids = range(begin, begin + ROWS // 4)
        table.append(pa.table({"id": ids, "name": [f"name {id_ % 7}" for id_ in ids]}))
    mark = tmp_path / "killed"
    found = read_table(spark, ul.connect(tmp_path / "lake"), NAME)
    counted = killing(found, ROWS // 2, mark).groupBy("name").count().collect()
    assert mark.exists()
    assert dict(map(tuple, counted)) == {f"name {k}": len(range(k, ROWS, 7)) for k in range(7)}


def test_executor_killed_after_it_shuffled_rows_is_made_good(spark: SparkSession, table: Table, tmp_path: Path):
    """What it had read is lost with it, and read again."""
    table.append(pa.table({"id": range(ROWS), "name": ["x"] * ROWS}))
    mark = tmp_path / "killed"
    found = read_table(spark, ul.connect(tmp_path / "lake"), NAME)
    shuffled = killing(found.repartition(4, "id"), ROWS // 3, mark)
    assert shuffled.selectExpr("count(*)", "sum(id)", "count(distinct id)").collect() == [
        (ROWS, ROWS * (ROWS - 1) // 2, ROWS)
    ]
    assert mark.exists()
