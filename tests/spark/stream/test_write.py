"""The sink `format("underlay")`."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

import underlay as ul
from tests.end_to_end.lakes import data_keys
from tests.spark.streams import Feed, forget_commit, ids, run, sink_of
from underlay.api.table import Table
from underlay.errors import Inconsistent, InvalidRequest, ReplayDiffers, SchemaMismatch, TableNotFound
from underlay.spark.api.data_source import UnderlayDataSource, register_source
from underlay.spark.api.session import forget, session
from underlay.spark.stream.query import read_offsets
from underlay.spark.stream.write import EpochFiles, StreamWriter
from underlay.spark.tasks.stage_rows import write_batches

NAME = "some.table"
SCHEMA = StructType([StructField("id", LongType()), StructField("name", StringType())])


@pytest.fixture(autouse=True)
def _registered(spark: SparkSession) -> None:
    register_source(spark)


def writer_of(table: Table, schema: StructType = SCHEMA, *, is_complete: bool = False, **options: str) -> StreamWriter:
    lake = table.writable().lake.store.url
    made = UnderlayDataSource({"lake": lake, "path": table.name, **options}).streamWriter(schema, is_complete)
    assert isinstance(made, StreamWriter)
    return made


def staged_by(writer: StreamWriter, *numbers: int, query: str = "a query") -> EpochFiles:
    """What a task hands back."""
    batch = pa.record_batch({"id": pa.array(numbers, pa.int64())})
    staged = write_batches(writer._options.lake, writer._staging, [batch] if numbers else [])
    return EpochFiles(query_id=query, pin=writer._pin, staged=staged, job=None)


def test_every_batch_is_a_version_and_a_restart_goes_on(spark: SparkSession, table: Table, feed: Feed, tmp_path: Path):
    lake = ul.connect(tmp_path / "a lake")
    session(lake, spark)
    for begin in (0, 100, 200):
        feed.put(range(begin, begin + 10))
    stream = feed.stream(spark)
    run(sink_of(stream, table, tmp_path / "checkpoint"))
    assert [version.operation for version in table.history()] == ["stream"] * 3 + ["create"]
    assert spark.table(NAME).count() == 30
    forget(spark, lake)
    feed.put(range(300, 305))
    feed.put([])
    run(sink_of(stream, table, tmp_path / "checkpoint"))
    assert ids(table) == [*range(10), *range(100, 110), *range(200, 210), *range(300, 305)]
    assert table.version == 4  # a batch without rows makes no version


def test_an_epoch_that_comes_again_adds_nothing_and_one_that_differs_fails(
    spark: SparkSession, table: Table, feed: Feed, tmp_path: Path
):
    feed.put(range(10))
    feed.put(range(10, 20))
    stream, checkpoint = feed.stream(spark), tmp_path / "checkpoint"
    run(sink_of(stream, table, checkpoint))
    forget_commit(checkpoint, 1)
    feed.put(range(20, 30))
    run(sink_of(stream, table, checkpoint))
    assert (ids(table), table.version) == (list(range(30)), 3)
    forget_commit(checkpoint, 2)
    feed.put(range(20, 31), file=2)
    with pytest.raises(StreamingQueryException, match=r"epoch 2 was replayed with different rows.*expected 10 rows"):
        run(sink_of(stream, table, checkpoint))
    assert (ids(table), table.version) == (list(range(30)), 3)


def test_an_epoch_of_other_offsets_fails_though_it_has_as_many_rows(spark: SparkSession, table: Table, tmp_path: Path):
    """Offsets that were shifted stand for a checkpoint that was brought back from a copy, and went on otherwise."""
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load().selectExpr("value as id")
    checkpoint = tmp_path / "checkpoint"
    for _ in range(2):
        run(sink_of(rate, table, checkpoint))
    assert ids(table) == list(range(20))
    for epoch in (0, 1):
        path = checkpoint / "offsets" / str(epoch)
        path.write_text(re.sub(r'"offset":(\d+)', lambda found: f'"offset":{int(found[1]) + 1000}', path.read_text()))
        path.with_name(f".{epoch}.crc").unlink()
    forget_commit(checkpoint, 1)
    with pytest.raises(StreamingQueryException, match=r"epoch 1 was replayed with different rows.*10 rows of offsets"):
        run(sink_of(rate, table, checkpoint))
    assert ids(table) == list(range(20))


def test_what_cannot_be_written_is_refused_before_any_task_runs(table: Table):
    with pytest.raises(InvalidRequest, match="can only append"):
        writer_of(table, is_complete=True)
    with pytest.raises(SchemaMismatch):
        writer_of(table, StructType([StructField("other", LongType())]))
    with pytest.raises(InvalidRequest, match="takes no token"):
        writer_of(table, token="a")
    with pytest.raises(InvalidRequest, match="apply to reads"):
        writer_of(table, version="0")
    with pytest.raises(TableNotFound, match="create_table"):
        writer_of(table, path="some.other")


def test_files_of_a_failed_task_are_deleted_and_those_of_a_tried_commit_are_not(table: Table):
    writer = writer_of(table)
    found = staged_by(writer, 1, 2)
    with pytest.raises(Inconsistent, match="returned no result"):
        writer.commit([found, None], 0)
    writer_of(table).abort([found, staged_by(writer, 3)], 0)  # all tasks were done: a commit may have been tried
    assert len(data_keys(table.stores.lake)) == 2
    writer_of(table).abort([found, None], 0)
    assert len(data_keys(table.stores.lake)) == 1
    assert table.version == 0


def test_an_epoch_without_rows_makes_no_version_and_is_known_to_differ(table: Table):
    writer = writer_of(table, sink="a")
    for epoch, numbers in ((0, []), (1, [1]), (2, [])):
        writer_of(table, sink="a").commit([staged_by(writer, *numbers)], epoch)
    assert (ids(table), table.version) == ([1], 1)
    with pytest.raises(ReplayDiffers):
        writer.commit([staged_by(writer)], 1)
    writer_of(table, sink="b").commit([staged_by(writer, 5)], 1)  # another sink of the same query
    writer.commit([staged_by(writer, 6, query="another")], 1)
    assert ids(table) == [1, 5, 6]
    writer.commit([], 7)
    assert table.version == 3


def test_offsets_are_read_of_local_checkpoints_only(tmp_path: Path):
    (tmp_path / "a b" / "offsets").mkdir(parents=True)
    (tmp_path / "a b" / "offsets" / "3").write_text('v1\n{"batchTimestampMs":1}\n{"x":1}\n-')
    for place in (str(tmp_path / "a b"), (tmp_path / "a b").as_uri(), f"file:{tmp_path}/a%20b"):
        assert read_offsets(place, 3) == '{"x":1}\n-'
    assert [read_offsets(place, 4) for place in (str(tmp_path / "a b"), "s3://bucket/c", None)] == [""] * 3
