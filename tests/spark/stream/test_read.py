"""`spark.readStream.format("underlay")`."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxFiles, ReadMinRows

import underlay as ul
from tests.contract.worlds import add_column, delete_positions, rename_column, widen_column
from tests.spark.streams import forget_commit, ids, run, sink_of
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import InvalidRequest, Malformed, SchemaMismatch, Unsupported
from underlay.spark.api.data_source import UnderlayDataSource, register_source
from underlay.spark.stream.limited_read import LimitedReader
from underlay.spark.stream.read import StreamReader

NAME = "some.table"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return ul.connect(tmp_path / "a lake")


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table(NAME, "id int not null, name string")


@pytest.fixture
def copy(lake: Lake) -> Table:
    return lake.create_table("some.copy", "id int not null, name string")


def append(table: Table, *numbers: int) -> None:
    table.append(pa.table({"id": pa.array(numbers, pa.int32()), "name": [f"name {number}" for number in numbers]}))


def stream_of(spark: SparkSession, lake: Lake, **options: str) -> DataFrame:
    register_source(spark)
    return spark.readStream.format("underlay").option("lake", lake.url).options(**options).load(NAME)


def reader_of(lake: Lake, **options: str) -> LimitedReader:
    """A reader as Spark makes one, in this process."""
    source = UnderlayDataSource({"lake": lake.url, "path": NAME, **options})
    found = source.streamReader(source.schema())
    assert isinstance(found, LimitedReader)
    return found


def read(reader: StreamReader, start: dict[str, object], end: dict[str, object]) -> list[int]:
    """The ids of a batch, read as tasks do."""
    tasks = pickle.loads(pickle.dumps(reader))
    found = [batch for part in reader.partitions(start, end) for batch in tasks.read(part)]
    return sorted(number for batch in found for number in batch.column("id").to_pylist())


def next_batch(
    reader: LimitedReader, start: dict[str, object], limit: ReadLimit | None = None
) -> tuple[list[int], dict[str, object]]:
    end = reader.latestOffset(start, limit or ReadAllAvailable())
    return read(reader, start, end), end


def test_a_table_is_streamed_into_another_exactly_once(
    spark: SparkSession, lake: Lake, table: Table, copy: Table, tmp_path: Path
):
    checkpoint = tmp_path / "checkpoint"
    append(table, 1, 2)
    append(table, 3)
    stream = stream_of(spark, lake, maxFilesPerTrigger="1")
    run(sink_of(stream, copy, checkpoint))
    assert (ids(copy), copy.version) == ([1, 2, 3], 2)
    forget_commit(checkpoint, 1)
    append(table, 4)
    run(sink_of(stream, copy, checkpoint))
    assert copy.version == 3
    assert copy.to_arrow().sort_by("id").equals(table.to_arrow().sort_by("id"))
    delete_positions(table, {0: [0]})
    with pytest.raises(StreamingQueryException, match="version 4 deleted or changed rows"):
        run(sink_of(stream, copy, checkpoint))


def test_a_stream_passes_over_changes_when_it_is_told_to(lake: Lake, table: Table):
    append(table, 1)
    reader = reader_of(lake, skipChanges="true", startingVersion="0")
    delete_positions(table, {0: [0]})
    append(table, 2)
    assert next_batch(reader, reader.initialOffset())[0] == [1, 2]


def test_a_query_begins_where_an_option_says(lake: Lake, table: Table):
    for number in range(3):
        append(table, number)
    for options, first in (({}, [0, 1, 2]), ({"startingVersion": "2"}, [1, 2]), ({"startingVersion": "latest"}, [])):
        reader = reader_of(lake, **options)
        assert next_batch(reader, reader.initialOffset())[0] == first
    reader = reader_of(lake, startingVersion="latest", columns="id", where="id != 10")
    begin = reader.initialOffset()
    append(table, 10, 11)
    assert next_batch(reader, begin)[0] == [11]


def test_a_batch_is_as_large_as_an_option_says(lake: Lake, table: Table):
    for number in range(4):
        append(table, number)
    assert reader_of(lake).getDefaultReadLimit() == ReadMaxFiles(1000)
    assert reader_of(lake, maxFilesPerTrigger="7").getDefaultReadLimit() == ReadMaxFiles(7)
    assert reader_of(lake, maxBytesPerTrigger="9").getDefaultReadLimit() == ReadMaxBytes(9)
    reader = reader_of(lake)
    first, end = next_batch(reader, reader.initialOffset(), ReadMaxFiles(3))
    assert (len(first), end["whole"]) == (3, True)
    rest, end = next_batch(reader, end, ReadMaxBytes(1))
    assert sorted(first + rest) == [0, 1, 2, 3]
    assert end == reader.latestOffset(end, ReadAllAvailable()) == reader.reportLatestOffset()
    with pytest.raises(Unsupported, match="this limit is not supported"):
        reader.latestOffset(end, ReadMinRows(1))


def test_available_now_ends_where_the_table_ended_when_it_began(lake: Lake, table: Table):
    append(table, 1)
    reader = reader_of(lake)
    reader.prepareForTriggerAvailableNow()
    append(table, 2)
    first, end = next_batch(reader, reader.initialOffset())
    assert first == [1]
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert next_batch(reader_of(lake), end)[0] == [2]


def test_rows_are_read_as_the_columns_were_when_the_query_began(lake: Lake, table: Table):
    append(table, 1)
    reader = reader_of(lake)
    begin = reader.initialOffset()
    add_column(table, "size", "int64")
    table.append(pa.table({"id": pa.array([2], pa.int32()), "size": [7]}))
    assert next_batch(reader, begin)[0] == [1, 2]
    widen_column(table, "id", "int64")
    with pytest.raises(SchemaMismatch, match=r"column id changed.*restart the query"):
        reader.latestOffset(begin, ReadAllAvailable())
    assert next_batch(reader_of(lake), begin)[0] == [1, 2]
    again = reader_of(lake, columns="id")
    rename_column(table, "name", "title")
    assert next_batch(again, begin)[0] == [1, 2]


def test_another_table_of_the_name_is_refused(lake: Lake, table: Table):
    append(table, 1)
    reader = reader_of(lake)
    begin = reader.initialOffset()
    lake.drop_table(NAME)
    with pytest.raises(InvalidRequest, match="dropped"):
        reader.latestOffset(begin, ReadAllAvailable())
    lake.create_table(NAME, "id int")
    with pytest.raises(InvalidRequest, match=r"replaced by another one.*new checkpoint"):
        reader_of(lake).latestOffset(begin, ReadAllAvailable())
    with pytest.raises(Malformed, match="not an offset"):
        reader_of(lake).latestOffset({"logOffset": 3}, ReadAllAvailable())


def test_what_a_stream_cannot_do_is_refused(lake: Lake, table: Table):
    for options in (
        {"version": "0"},
        {"maxFilesPerTrigger": "1", "maxBytesPerTrigger": "1"},
        {"maxBytesPerTrigger": "0"},
    ):
        with pytest.raises(InvalidRequest):
            reader_of(lake, **options)
