"""Executors on hosts of their own, which are killed while they work. In a local session the executor is the driver."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import input_file_name

import underlay as ul
from tests.end_to_end.lakes import named_keys
from tests.spark.ingest_sources import check_once, write_sources
from tests.spark.own_jvm.cluster import HOSTS
from underlay.api.table import Table
from underlay.ingest.work.execute import do_work
from underlay.ingest.work.work_unit import WorkDone, WorkUnit
from underlay.maintain.compact.compact import Outcome
from underlay.spark import ingest
from underlay.spark.api import compact as choosing
from underlay.spark.api import compact_groups
from underlay.spark.api.compact import compact
from underlay.spark.api.compact_groups import GroupWork, do_groups
from underlay.spark.api.write import append
from underlay.spark.files.preferred_hosts import executor_hosts, preferred_hosts
from underlay.spark.relation.relation import read_table
from underlay.spark.tasks import collect as small
from underlay.spark.tasks import ingest_workers
from underlay.spark.tasks.map_in_arrow import map_in_arrow
from underlay.store import Store

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


def working_once(mark: Path) -> Callable[[WorkUnit, Store], WorkDone]:
    """Does a work; the first task that has done one kills its executor, before anybody knows of it."""

    def run(work: WorkUnit, store: Store) -> WorkDone:
        done = do_work(work, store)
        if _is_first(mark):
            os.kill(_executor(), signal.SIGKILL)
            signal.pause()
        return done

    return run


def compacting_once(mark: Path) -> Callable[[GroupWork], list[Outcome]]:
    """Does a work of a compaction; the first task that has done one kills its executor, before anybody knows of it."""

    def run(work: GroupWork) -> list[Outcome]:
        done = do_groups(work)
        if _is_first(mark):
            os.kill(_executor(), signal.SIGKILL)
            signal.pause()
        return done

    return run


def _executor() -> int:
    """The process of the executor: it started the daemon that this worker was forked from."""
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])


def _with_host(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Names, and behind each the host of the executor that has it."""
    started = Path(f"/proc/{_executor()}/cmdline").read_text().split("\0")
    host = started[started.index("--hostname") + 1]
    for batch in batches:
        yield pa.record_batch({"name": [f"{name} {host}" for name in batch.column("name").to_pylist()]})


def frame_of(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 4).selectExpr("id", "concat('name ', id) as name")


def test_rows_run_in_other_processes_than_the_driver(spark: SparkSession):
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"id": [_executor()]})

    found = {row.id for row in map_in_arrow(spark.range(0, 8, 1, 8), run, spark.range(1).schema).collect()}
    assert found
    assert all(b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in found)


def test_files_are_read_on_the_hosts_that_they_prefer(spark: SparkSession, table: Table, tmp_path: Path):
    for number in range(6):
        table.append(pa.table({"id": [number], "name": ["x"]}))
    until = time.monotonic() + 120
    while executor_hosts(spark.sparkContext) != dict.fromkeys(HOSTS, 1.0):
        assert time.monotonic() < until
        time.sleep(0.1)
    sizes = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    for name in sizes:  # a task for each file
        spark.conf.set(name, "64k")
    try:
        found = read_table(spark, ul.connect(tmp_path / "lake"), NAME).select(input_file_name().alias("name"))
        read = [sorted(map(tuple, map_in_arrow(found, _with_host, found.schema).collect())) for _ in range(2)]
    finally:
        for name in sizes:
            spark.conf.unset(name)
    assert read[0] == read[1]
    paths = [text.partition(" ")[0] for (text,) in read[0]]
    assert len(paths) == 6
    assert [text.partition(" ")[2] for (text,) in read[0]] == preferred_hosts(paths, dict.fromkeys(HOSTS, 1.0))


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


def test_ingest_whose_executor_is_killed_has_every_row_once(
    spark: SparkSession, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What it wrote is lost with it: other files with the same rows are committed."""
    mark, count = tmp_path / "killed", 12
    write_sources(tmp_path / "in", count)
    monkeypatch.setattr(small, "SMALL_SOURCE_BYTES", -1)
    monkeypatch.setattr(ingest_workers, "do_work", working_once(mark))
    done = ingest(table, f"{tmp_path}/in/*", spark=spark, batch_sources=count // 2)
    assert mark.exists()
    assert (done.ingested, done.failed) == (count, 0)
    check_once(ul.connect(tmp_path / "lake"), NAME, count)
    written = {path.name for path in (tmp_path / "lake" / "some" / "table").rglob("*.parquet")}
    assert len(written) > len(named_keys(table))


def test_compaction_whose_executor_is_killed_completes_and_has_every_row_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    table = ul.connect(tmp_path / "lake").create_table(NAME, "id bigint not null, part int", partition_by=["part"])
    for begin in range(0, 240, 10):
        table.append(pa.table({"id": range(begin, begin + 10), "part": [begin // 10 % 6] * 10}))
    table.delete("id % 9 = 0")
    before = table.to_arrow().sort_by("id")
    mark = tmp_path / "killed"
    monkeypatch.setattr(choosing, "SMALL_BYTES", -1)
    monkeypatch.setattr(choosing, "TASK_BYTES", 0)
    monkeypatch.setattr(compact_groups, "do_groups", compacting_once(mark))
    done = compact(table, spark=spark)
    assert mark.exists()
    assert (done.files_before, done.files_after, done.task_count, done.commit_count) == (24, 6, 6, 6)
    assert table.to_arrow().sort_by("id").equals(before)
    report = ul.connect(tmp_path / "lake", registry="none").verify(deep=True, registry=False)
    assert report.tables[0].revisions[0].findings == ()
    written = {path.name for path in (tmp_path / "lake" / "some" / "table").rglob("*.parquet")}
    assert len(written) > 24 + 6
