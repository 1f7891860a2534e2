"""Streams of one system and of plain Parquet in one JVM, turn by turn, so that other work disturbs both alike.

`bench.stream` starts it. A round is a new query for each sink over the same files, one file a batch. The reply, one
line of JSON on stdout, has the milliseconds of every batch but the first ones of each query.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bench.spark.systems import SYSTEMS, start_spark
from underlay.api.lake import Lake, connect
from underlay.spark import batch_writer, session

COLUMNS = "id long, name string, fare double"
WARM_UPS = 3
"""Batches of each query that are not counted."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of batches by sink."""

    batch_ms: dict[str, list[int]]


class Sink(msgspec.Struct, frozen=True):
    """How a stream is started into a new place of this name, and what is there afterwards."""

    start: Callable[[DataStreamWriter, str], StreamingQuery]
    read: Callable[[str], DataFrame]


class Streams:
    """The sinks of a session. Everything lies in `folder`."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._lake: Lake | None = None

    def sinks(self, system: str) -> dict[str, Sink]:
        """Plain Parquet and those of a system."""
        made = {"plain": Sink(self._start("parquet"), lambda name: self._spark.read.parquet(self._path(name)))}
        if system == "underlay":
            self._lake = connect(self._folder / "lake")
            session(self._lake, self._spark)
            made["underlay foreachBatch"] = Sink(self._start_each, self._table)
            made["underlay sink"] = Sink(self._start_sink, self._table)
        elif system == "delta":
            made["delta"] = Sink(
                self._start("delta"), lambda name: self._spark.read.format("delta").load(self._path(name))
            )
        elif system == "iceberg":
            made["iceberg"] = Sink(self._start_iceberg, lambda name: self._spark.table(f"new.bench.{name}"))
        return made

    def _path(self, name: str) -> str:
        return str(self._folder / name)

    def _start(self, kind: str) -> Callable[[DataStreamWriter, str], StreamingQuery]:
        return lambda stream, name: stream.format(kind).start(self._path(name))

    def _new_table(self, name: str) -> Lake:
        if self._lake is None:
            raise AssertionError("there is no lake")
        self._lake.create_table(f"bench.{name}", COLUMNS.replace("long", "bigint"))
        return self._lake

    def _start_each(self, stream: DataStreamWriter, name: str) -> StreamingQuery:
        return stream.foreachBatch(batch_writer(self._new_table(name).table(f"bench.{name}"))).start()

    def _start_sink(self, stream: DataStreamWriter, name: str) -> StreamingQuery:
        self._new_table(name)
        return stream.format("underlay").start(f"bench.{name}")

    def _table(self, name: str) -> DataFrame:
        return self._spark.table(f"bench.{name}")

    def _start_iceberg(self, stream: DataStreamWriter, name: str) -> StreamingQuery:
        empty = self._spark.createDataFrame([], COLUMNS)
        empty.writeTo(f"new.bench.{name}").using("iceberg").tableProperty(
            "write.parquet.compression-codec", "zstd"
        ).create()
        return stream.format("iceberg").toTable(f"new.bench.{name}")


def measure(spark: SparkSession, sinks: Mapping[str, Sink], files: Path, folder: Path, rounds: int) -> Reply:
    """Run every sink in every round, in an order that rotates. Raises AssertionError when rows are not those read."""
    frame = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(files))
    expected = _sums(spark.read.schema(COLUMNS).json(str(files)))
    batch_ms: dict[str, list[int]] = {name: [] for name in sinks}
    names = list(sinks)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            place = f"{name.replace(' ', '_')}_{number}"
            stream = frame.writeStream.trigger(availableNow=True)
            query = sinks[name].start(stream.option("checkpointLocation", str(folder / f"checkpoint {place}")), place)
            query.awaitTermination()
            batch_ms[name] += [
                int(progress["durationMs"]["triggerExecution"])
                for progress in query.recentProgress
                if progress["batchId"] >= WARM_UPS and progress["numInputRows"]
            ]
            if _sums(sinks[name].read(place)) != expected:
                raise AssertionError(f"{name}: other rows than were read")
    return Reply(batch_ms=batch_ms)


def _sums(frame: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in frame.selectExpr("count(*)", "sum(id)", "count(distinct name)").collect()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("--files", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--jars", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    system = SYSTEMS[given.system](given.folder, given.folder, given.folder)
    spark = start_spark(system, given.jars, given.folder)
    found = measure(spark, Streams(spark, given.folder).sinks(given.system), given.files, given.folder, given.rounds)
    spark.stop()
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
