"""`option("changes", True)`: what `table.changes` gives, as a batch and as a stream."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

import underlay as ul
from tests.spark.streams import run
from underlay.api.opened.changes import Changes
from underlay.errors import InvalidRequest, Malformed
from underlay.spark.api.data_source import UnderlayDataSource, register_source
from underlay.spark.stream.changes import ChangesStreamReader

NAME = "some.table"


@pytest.fixture
def table(tmp_path: Path) -> ul.Table:
    found = ul.connect(tmp_path / "lake").create_table(NAME, "id bigint not null, v bigint", key=["id"])
    found.append(pa.table({"id": range(10), "v": [0] * 10}))
    found.upsert(pa.table({"id": [3, 20], "v": [1, 1]}))
    found.delete("id = 5")
    return found


def as_rows(changes: Changes | list[Row]) -> list[tuple[object, ...]]:
    if isinstance(changes, list):
        return sorted(tuple(row) for row in changes)
    return sorted(tuple(row.values()) for row in changes.to_arrow().to_pylist())


def test_a_batch_and_a_stream_of_changes_are_those_of_the_table(spark: SparkSession, table: ul.Table, tmp_path: Path):
    register_source(spark)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    options = {"lake": str(tmp_path / "lake"), "changes": "true"}
    batch = spark.read.format("underlay").options(**options, startingVersion="2").load(NAME)
    assert batch.columns == ["id", "v", "_change", "_version", "_committed_at"]
    found = batch.withColumn("_committed_at", batch._committed_at.cast("timestamp")).collect()
    assert [row[:4] for row in as_rows(found)] == [row[:4] for row in as_rows(table.changes(1))]

    def copied() -> list[tuple[object, ...]]:
        stream = spark.readStream.format("underlay").options(**options).load(NAME)
        run(
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .option("path", str(tmp_path / "copy"))
        )
        return sorted(row[:4] for row in as_rows(spark.read.parquet(str(tmp_path / "copy")).collect()))

    assert copied() == [row[:4] for row in as_rows(table.changes(0))]
    table.update({"v": "v + 5"}, "id < 2")
    assert copied() == [row[:4] for row in as_rows(table.changes(0))]


def test_a_reader_of_changes_goes_on_where_it_was_and_refuses_what_it_cannot_do(table: ul.Table, tmp_path: Path):
    given = {"lake": str(tmp_path / "lake"), "path": NAME, "changes": "true"}
    source = UnderlayDataSource(given)
    reader = source.streamReader(source.schema())
    assert isinstance(reader, ChangesStreamReader)
    start, end = reader.initialOffset(), reader.latestOffset()
    assert len(reader.partitions(start, end)) == table.version
    assert reader.partitions(end, end) == []
    rows = [row for part in reader.partitions(start, end) for batch in reader.read(part) for row in batch.to_pylist()]
    assert sorted(tuple(row.values()) for row in rows) == as_rows(table.changes(0))
    with pytest.raises(Malformed):
        reader.partitions({"version": "x"}, end)
    with pytest.raises(InvalidRequest, match="cannot be combined with changes"):
        UnderlayDataSource({**given, "where": "id > 1"}).streamReader(source.schema())
