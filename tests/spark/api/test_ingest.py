"""Sources into tables by Spark's tasks: each once, and none at all when there is nothing to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import underlay as ul
from tests.spark.bus import jobs_of, settle
from tests.spark.ingest_sources import BAD, COLUMNS, ROWS, check_once, write_sources
from underlay.api.lake import Lake
from underlay.ingest.work.progress import NoProgress
from underlay.spark import forget, ingest, session
from underlay.spark.tasks import collect as small
from underlay.spark.tasks.ingest_workers import SparkWorkers
from underlay.spark.tasks.store_address import StoreAddress

NAME = "some.rows"
COUNT = 6


@pytest.fixture
def own(tmp_path: Path) -> Lake:
    write_sources(tmp_path / "in", COUNT)
    return ul.connect(tmp_path / "lake")


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tasks do it, however little it is."""
    monkeypatch.setattr(small, "SMALL_SOURCE_BYTES", -1)


@pytest.mark.usefixtures("large")
def test_tasks_ingest_each_source_once_and_names_follow(spark: SparkSession, own: Lake, tmp_path: Path):
    session(own, spark)
    before = jobs_of(spark)
    done = ingest(NAME, f"{tmp_path}/in/*", lake=own, spark=spark, columns=COLUMNS)
    assert (done.ingested, done.row_count, done.rejected_count) == (COUNT, COUNT * ROWS, COUNT * BAD)
    assert done.is_created
    assert jobs_of(spark) - before
    check_once(own, NAME, COUNT)
    assert spark.sql(f"select count(*), sum(id) from {NAME}").first() == (COUNT * ROWS, sum(range(COUNT * ROWS)))
    forget(spark, own)


@pytest.mark.usefixtures("large")
def test_known_sources_make_no_job(spark: SparkSession, own: Lake, tmp_path: Path):
    table = own.create_table(NAME, COLUMNS)
    own.ingest(NAME, f"{tmp_path}/in/*")
    before, version = jobs_of(spark), table.version
    again = ingest(table, f"{tmp_path}/in/*", spark=spark)
    assert (again.known, again.ingested, again.versions) == (COUNT, 0, ())
    assert jobs_of(spark) == before
    assert table.version == version


def test_few_bytes_are_read_without_a_job(spark: SparkSession, own: Lake, tmp_path: Path):
    before = jobs_of(spark)
    assert ingest(NAME, f"{tmp_path}/in/*", lake=own, spark=spark, columns=COLUMNS).ingested == COUNT
    assert jobs_of(spark) == before
    check_once(own, NAME, COUNT)


class _Interrupted(NoProgress):
    """Somebody who presses Ctrl-C when the first work is done."""

    def advanced(self, *, sources: int = 0, rows: int = 0, rejected: int = 0, read_bytes: int = 0) -> None:
        raise KeyboardInterrupt


@pytest.mark.usefixtures("large")
def test_interrupted_ingest_leaves_no_job_and_its_sources_free(spark: SparkSession, own: Lake, tmp_path: Path):
    table = own.create_table(NAME, COLUMNS)
    with pytest.raises(KeyboardInterrupt):
        ingest(table, f"{tmp_path}/in/*", spark=spark, progress=_Interrupted())
    settle(spark)
    assert list(spark.sparkContext.statusTracker().getActiveJobsIds()) == []
    again = ingest(table, f"{tmp_path}/in/*", spark=spark, waits=False)
    assert again.claimed == 0
    check_once(own, NAME, COUNT)


@pytest.mark.usefixtures("large")
def test_error_of_every_attempt_fails_the_run_and_frees_its_sources(spark: SparkSession, own: Lake, tmp_path: Path):
    """Tasks reach no lake that is in the memory of this process: they must not seem to have written."""
    lake = ul.connect("memory://of-this-process")
    address = StoreAddress(url=lake.url)
    with pytest.raises(PythonException, match="tasks cannot reach it"):
        lake.ingest(NAME, f"{tmp_path}/in/*", columns=COLUMNS, workers=lambda *_: SparkWorkers(spark, address))
    assert ingest(NAME, f"{tmp_path}/in/*", lake=lake, spark=spark, waits=False).ingested == COUNT
    check_once(lake, NAME, COUNT)
