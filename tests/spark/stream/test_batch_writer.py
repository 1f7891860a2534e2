"""`foreachBatch` with what `batch_writer` returns."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

import underlay as ul
from tests.end_to_end.lakes import data_keys
from tests.spark.streams import Feed, forget_commit, ids, run, sink_of
from underlay.api.table import Table
from underlay.errors import InvalidRequest
from underlay.spark.api.data_source import register_source
from underlay.spark.api.session import forget, session
from underlay.spark.stream.batch_writer import batch_writer
from underlay.spark.tasks import collect as small
from underlay.spark.tasks.collect import SeenRows, collect_batch
from underlay.store import open_store
from underlay.store.testing.faulty import Crashed, Fault, FaultyStore, on
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.coordination.intent import list_intents

NAME = "some.table"


def each_of(frame: DataFrame, write: Callable[[DataFrame, int], None], checkpoint: Path) -> DataStreamWriter:
    return frame.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))


def test_batches_are_added_once_and_the_sink_goes_on_with_the_same_record(
    spark: SparkSession, table: Table, feed: Feed, tmp_path: Path
):
    register_source(spark)
    feed.put(range(10))
    feed.put(range(10, 20))
    stream, checkpoint = feed.stream(spark), tmp_path / "checkpoint"
    run(each_of(stream, batch_writer(table), checkpoint))
    files = len(data_keys(table.stores.lake))
    forget_commit(checkpoint, 1)
    run(each_of(stream, batch_writer(table), checkpoint))
    assert (ids(table), table.version, len(data_keys(table.stores.lake))) == (
        list(range(20)),
        2,
        files,
    )  # not a file was written
    forget_commit(checkpoint, 1)
    feed.put(range(20, 30))
    run(sink_of(stream, table, checkpoint))
    assert (ids(table), table.version) == (list(range(30)), 3)
    forget_commit(checkpoint, 2)
    feed.put(range(20, 29), file=2)
    with pytest.raises(StreamingQueryException, match="epoch 2 was replayed with different rows"):
        run(each_of(stream, batch_writer(table), checkpoint))
    assert ids(table) == list(range(30))


def test_two_sinks_of_one_query_are_told_apart_by_name(spark: SparkSession, table: Table, feed: Feed, tmp_path: Path):
    lake = ul.connect(tmp_path / "a lake")
    session(lake, spark)
    feed.put(range(10))
    even, odd = batch_writer(NAME, sink="even", lake=lake), batch_writer(NAME, sink="odd", lake=lake)

    def write(batch: DataFrame, epoch: int) -> None:
        even(batch.where("id % 2 = 0"), epoch)
        odd(batch.where("id % 2 = 1"), epoch)

    run(each_of(feed.stream(spark), write, tmp_path / "checkpoint"))
    assert spark.table(NAME).count() == 10
    forget(spark, lake)
    forget_commit(tmp_path / "checkpoint", 0)
    run(each_of(feed.stream(spark), write, tmp_path / "checkpoint"))
    assert (ids(table), table.version) == (list(range(10)), 2)


def test_many_rows_are_written_by_tasks(
    spark: SparkSession, table: Table, feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(small, "SMALL_ROWS", 5)
    feed.put(range(10))
    feed.put(range(10, 12))
    run(each_of(feed.stream(spark).repartition(2), batch_writer(table), tmp_path / "checkpoint"))
    assert (ids(table), table.version) == (list(range(12)), 2)
    head = table.read_head()
    assert list(list_intents(head.revision.store, head.revision.keys)) == []


def test_rows_of_unknown_size_are_collected_when_those_before_were_few(spark: SparkSession, tmp_path: Path):
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).option("numPartitions", 3).load()
    seen: list[tuple[int | None, ...]] = []
    batches = (None, SeenRows(count=100, size_bytes=1600), SeenRows(count=99, size_bytes=1), few_of(50), many())

    def look(batch: DataFrame, _: int) -> None:
        found = [collect_batch(batch, before) for before in batches]
        seen.append(tuple(None if rows is None else rows.num_rows for rows in found))

    run(each_of(rate, look, tmp_path / "checkpoint"))
    assert seen == [(None, 100, 100, None, None)]


def few_of(most: int) -> SeenRows:
    """Rows so large that no more than `most` are few."""
    return SeenRows(count=1, size_bytes=small.SMALL_BYTES // most)


def many() -> SeenRows:
    return SeenRows(count=small.SMALL_ROWS + 1, size_bytes=1)


def test_a_driver_that_dies_before_or_after_any_write_adds_every_row_once(
    spark: SparkSession, table: Table, feed: Feed, tmp_path: Path
):
    """The query fails as the process would die, and is started again from its checkpoint, as a new process would."""
    stream, checkpoint = feed.stream(spark), tmp_path / "checkpoint"
    deaths = product(
        ((StoreMethod.PUT, ".parquet"), (StoreMethod.PUT, "/_pm/"), (StoreMethod.CREATE, ".root")),
        (Fault.CRASH_BEFORE, Fault.CRASH_AFTER),
    )
    feed.put(range(10))
    feed.put(range(10, 20))
    for (op, key), fault in deaths:
        store = FaultyStore(open_store(tmp_path / "a lake"), on(op, fault, key=key))
        assert is_fatal(each_of(stream, dying(batch_writer(NAME, lake=ul.connect(store))), checkpoint))
    assert (ids(table), table.version) == (list(range(10)), 1)  # the last died after its commit
    run(each_of(stream, batch_writer(NAME, lake=ul.connect(tmp_path / "a lake")), checkpoint))
    assert (ids(table), table.version) == (list(range(20)), 2)


def is_fatal(query: DataStreamWriter) -> bool:
    try:
        run(query)
    except StreamingQueryException as error:
        if "the driver dies" not in str(error):
            raise
        return True
    return False


def dying(write: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
    def write_or_die(batch: DataFrame, epoch: int) -> None:
        try:
            write(batch, epoch)
        except Crashed as crash:
            raise RuntimeError("the driver dies") from crash

    return write_or_die


def test_rows_of_no_stream_are_refused(spark: SparkSession, table: Table):
    with pytest.raises(InvalidRequest, match="not a batch of a stream"):
        batch_writer(table)(spark.range(3), 0)
