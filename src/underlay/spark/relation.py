"""A version of a table as a DataFrame that Spark's own Parquet reader reads.

Files that Spark has to read in different ways are relations of their own, joined by a union.
"""

from __future__ import annotations

from datetime import date, datetime
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import Unsupported
from underlay.spark.columns import spark_schema
from underlay.spark.deletions import without_deleted
from underlay.spark.file_groups import Group, groups_present
from underlay.spark.file_index import TableFileIndex
from underlay.spark.gateway import Gateway, JavaObject, call, data_frame, gateway_of, java_session

_SOURCES = "org.apache.spark.sql.execution.datasources"
_OPTIONS = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false", "datetimeRebaseMode": "CORRECTED"}
"""A file that is missing or damaged is an error whatever the session says; our dates are never in the old calendar."""


def read_table(
    spark: SparkSession,
    lake: Lake,
    name: str,
    version: int | None = None,
    as_of: str | date | datetime | None = None,
    tag: str | None = None,
) -> DataFrame:
    """A table at one version, the newest unless another is given; what is committed later does not change it.

    Raises TableNotFound, VersionNotFound, and Unsupported for a table with files or types that Spark cannot read.
    """
    table = lake.table(name, version=version, as_of=as_of, tag=tag)
    return frame_of(spark, table if (version, as_of, tag) != (None, None, None) else pin(table))


def pin(table: Table) -> Table:
    """The table at its newest version, for good."""
    return table.at(version=table.snapshot().version)


def frame_of(spark: SparkSession, table: Table, entry: JavaObject | None = None) -> DataFrame:
    """A table that is opened at one version. `entry` is its `CatalogTable`, if the session's catalog has it."""
    present = groups_present(table.snapshot())
    if Group.OTHER in present:
        raise Unsupported(
            "Spark cannot read some files of this version by itself: they are registered, or older than a change of"
            " columns",
            place=table.name,
            found=f"{present[Group.OTHER]} such files",
        )
    frames = [_group_frame(spark, table, group, entry) for group in sorted(present) or [Group.PLAIN]]
    return reduce(DataFrame.union, frames)


def _group_frame(spark: SparkSession, table: Table, group: Group, entry: JavaObject | None) -> DataFrame:
    gateway = gateway_of(spark)
    index = TableFileIndex(gateway, table, group)
    found = relation(gateway, spark, index, spark_schema(table.snapshot().schema).json())
    frame = data_frame(
        gateway.static(
            "org.apache.spark.sql.classic.Dataset", "ofRows", java_session(spark), _plan(gateway, found, entry)
        ),
        spark,
    )
    return without_deleted(spark, frame, index.all_files.deletes) if group is Group.DELETED else frame


def _plan(gateway: Gateway, found: JavaObject, entry: JavaObject | None) -> JavaObject:
    """The logical plan of a relation. With an entry, statements that are refused name the table."""
    companion = gateway.module(f"{_SOURCES}.LogicalRelation$")
    return call(companion, "apply", found, False if entry is None else entry)


def relation(gateway: Gateway, spark: SparkSession, index: TableFileIndex, schema_json: str) -> JavaObject:
    """Spark's relation of Parquet files over an index."""
    no_columns = gateway.new("org.apache.spark.sql.types.StructType")
    columns = gateway.static("org.apache.spark.sql.types.DataType", "fromJson", schema_json)
    return gateway.new(
        f"{_SOURCES}.HadoopFsRelation",
        index,
        no_columns,
        columns,
        gateway.module("scala.None$"),
        gateway.new(f"{_SOURCES}.parquet.ParquetFileFormat"),
        scala_map(gateway, _OPTIONS),
        java_session(spark),
    )


def scala_map(gateway: Gateway, values: dict[str, str]) -> JavaObject:
    """An immutable Scala map of strings."""
    found = call(gateway.module("scala.collection.immutable.Map$"), "empty")
    for key, value in values.items():
        found = call(found, "updated", key, value)
    return found
