"""Runs a statement as the server's Spark process does, in the session of these tests."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
from pyspark.sql import SparkSession

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.spark.relation.relation import pin
from underlay.spark.serving.statement import Parameters, SparkStatement

END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


def statement_on(spark: SparkSession, lake: Lake, as_of: datetime | None = None) -> SparkStatement:
    def open_table(name: str, version: int | None, tag: str | None, moment: datetime | None) -> Table:
        found = lake.table(name)
        if (version, tag, moment, as_of) == (None, None, None, None):
            return pin(found)
        return found.at(version=version, tag=tag, as_of=moment or (None if version or tag else as_of))

    return SparkStatement(spark, open_table, lambda: [one.name for one in lake.tables()])


def table_of(statement: SparkStatement) -> pa.Table:
    stream = statement.schema.serialize().to_pybytes() + b"".join(statement.batches()) + END_OF_STREAM
    return pa.ipc.open_stream(stream).read_all()


def rows_of(
    spark: SparkSession, lake: Lake, text: str, parameters: Parameters = None, as_of: datetime | None = None
) -> list[tuple[object, ...]]:
    statement = statement_on(spark, lake, as_of)
    statement.analyse(text, parameters)
    return list(zip(*(column.to_pylist() for column in table_of(statement).columns), strict=True))
