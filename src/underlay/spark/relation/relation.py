"""A version of a table as a DataFrame that Spark's own Parquet reader reads.

Files that Spark must read in different ways become separate relations, combined by a union. What it cannot read itself
comes through the ranged reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache, partial, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.files.settings import write_options
from underlay.errors import Unsupported
from underlay.hot.read.snapshot import HotSnapshot
from underlay.index.keys import HOT_SCHEME
from underlay.plan.part import BoolArray, Part
from underlay.spark.files.file_groups import FileGroups, Group
from underlay.spark.files.file_index import TableFileIndex
from underlay.spark.files.read_schema import BY_NAME
from underlay.spark.files.row_group_skipping import may_skip_row_groups
from underlay.spark.files.version_files import VersionFiles
from underlay.spark.jvm.gateway import (
    Gateway,
    JavaObject,
    call,
    frame_of_plan,
    gateway_of,
    java_plan,
    java_session,
    scala_map,
)
from underlay.spark.jvm.hadoop import configure, has_codec, why_not_native
from underlay.spark.ranged.frame import ranged_frame
from underlay.spark.ranged.numbered import ranged_numbered
from underlay.spark.relation.adapted import adapted_columns
from underlay.spark.relation.row_numbers import number_column, numbered, without_deleted
from underlay.spark.types.spark_types import quoted, spark_schema

_SOURCES = "org.apache.spark.sql.execution.datasources"
_OPTIONS = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "parquet.filter.record-level.enabled": "false",
}
"""A missing or damaged file is an error whatever the session's settings; dates are read unchanged, unless Spark's own
mark in a file says that it wrote them in the old calendar; and Parquet's own filter, for which -0.0 is less than 0.0,
drops no row."""
_NOTHING_LEFT_OUT = {f"parquet.filter.{by}.enabled": "false" for by in ("stats", "dictionary", "columnindex", "bloom")}
"""All row groups and pages are read, where `row_group_skipping` finds that Spark would lose rows by skipping some."""
_ROW_INDEX = "_tmp_metadata_row_index"
_NOT_BY_SPARK = "Spark cannot read the format or the store of some of its files"


def read_table(
    spark: SparkSession,
    lake: Lake,
    name: str,
    version: int | None = None,
    as_of: str | date | datetime | None = None,
    tag: str | None = None,
) -> DataFrame:
    """A table at one version, by default the newest; later commits do not change it.

    One query can combine frames of two versions only if the caller named both versions. Raises TableNotFound,
    VersionNotFound, and Unsupported for types that Spark lacks.
    """
    table = lake.table(name, version=version, as_of=as_of, tag=tag)
    if (version, as_of, tag) == (None, None, None):
        return frame_of(spark, pin(table))
    return frame_of(spark, table, is_asked_for=True)


def pin(table: Table) -> Table:
    """The table, pinned to its newest version, with its hot partitions as they are."""
    return table.pinned()


def _sees_hot(spark: SparkSession) -> bool:
    """Whether tasks can read hot partitions: on this host, or where the user says that all hosts share the disk."""
    context = spark.sparkContext
    return str(context.master).startswith("local") or spark.conf.get("spark.underlay.hot", "") == "shared"


def frame_of(spark: SparkSession, table: Table, *, is_asked_for: bool = False) -> DataFrame:
    """A frame of a pinned table; see `plan_of`."""
    return frame_of_plan(plan_of(spark, table, is_asked_for=is_asked_for), spark)


def plan_of(
    spark: SparkSession, table: Table, entry: JavaObject | None = None, *, is_asked_for: bool = False
) -> JavaObject:
    """The logical plan of a pinned table. `entry` is its `CatalogTable`, if a catalog has it.

    `is_asked_for`: a query may combine it with another version of the table.
    """
    if isinstance(table.snapshot(), HotSnapshot):  # looked at several times below, while rows are appended
        table = table.pinned() if _sees_hot(spark) else table.at_head(table.read_head())
    why = _why_not_native(spark, table)
    if why is not None:
        return _analyzed(ranged_frame(spark, table, why=why, is_asked_for=is_asked_for))
    groups = FileGroups(table.snapshot(), lambda store: _can_reach(spark, table, store))
    version = VersionFiles(table, groups)
    found = list(groups.size_bytes) or [Group(reading=BY_NAME)]
    if len(found) == 1 and found[0].is_as_it_is:  # asking Spark would take longer than all else
        return _plan(spark, TableFileIndex(spark, version, found[0], is_asked_for=is_asked_for), entry)
    frames = [_group_frame(spark, version, group, entry, is_asked_for=is_asked_for) for group in found]
    return _analyzed(reduce(DataFrame.union, frames))


def _analyzed(frame: DataFrame) -> JavaObject:
    return call(java_plan(frame), "analyzed")


def _why_not_native(spark: SparkSession, table: Table) -> str | None:
    """Why Spark itself can read no file of a table."""
    snapshot = table.snapshot()
    if _ROW_INDEX in snapshot.schema.names:
        return f"{_ROW_INDEX}: Spark's reader fills a column of this name with row numbers"
    codec = write_options(snapshot.root.definition).codec
    if not has_codec(spark, codec):
        return f"its files are compressed with {codec}, which this Spark does not support"
    try:
        spark_schema(snapshot.schema)
    except Unsupported as error:
        return f"{error.place}: {error.problem} ({error.found})"
    why = why_not_native(spark, snapshot.store.url)
    if why is None:
        configure(spark, snapshot.store.url, table.stores.options)
    return why


def _can_reach(spark: SparkSession, table: Table, store: str) -> bool:
    """Whether Spark can read from a store of registered files. A store of the lake's kind is opened with the lake's
    options.
    """
    if why_not_native(spark, store) is not None:
        return False
    stores = table.stores
    is_alike = store.partition("://")[0] == stores.lake.url.partition("://")[0]
    configure(spark, store, stores.options if is_alike else {})
    return True


def _group_frame(
    spark: SparkSession,
    version: VersionFiles,
    group: Group,
    entry: JavaObject | None,
    *,
    is_asked_for: bool,
) -> DataFrame:
    if group.reading is None:
        why = None if _is_hot(version, group) else _NOT_BY_SPARK
        return ranged_frame(spark, version.table, partial(_is_in, version, group), why=why, is_asked_for=is_asked_for)
    index = TableFileIndex(spark, version, group, is_asked_for=is_asked_for)
    frame = frame_of_plan(_plan(spark, index, entry), spark)
    columns = _columns(version, group)
    if group.has_deletes:
        number = number_column(version.snapshot.schema.names)
        rows = numbered(frame, columns, number)
        return without_deleted(spark, rows, number, index.all_files.deletes).drop(number)
    return frame if group.reading.is_by_name else frame.select(*columns)


def _is_hot(version: VersionFiles, group: Group) -> bool:
    """Whether all files of a group are hot: that they are read in another way is as it should be."""
    parts = version.snapshot.parts()
    found = [part.segment.files.locations.filter(pa.array(_is_in(version, group, part))).to_pylist() for part in parts]
    return all(str(location).startswith(f"{HOT_SCHEME}://") for some in found for location in some)


def _is_in(version: VersionFiles, group: Group, part: Part) -> BoolArray:
    return version.groups.is_in(group, part, np.arange(part.segment.file_count))


def _columns(version: VersionFiles, group: Group) -> list[Column | str]:
    """The table's columns over a frame of the group's files."""
    if group.reading is None or group.reading.is_by_name:
        return ["*"]
    return [*adapted_columns(group.reading, version.snapshot.schema, group.constants)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRows:
    """The rows of a version with a column `number`: the index of the row's file in `locations` times 2^32, plus its
    position in the file.
    """

    frame: DataFrame
    number: str
    locations: tuple[str, ...]


def numbered_rows(spark: SparkSession, table: Table) -> NumberedRows:
    """The numbered rows of a pinned table. Raises Unsupported for types that Spark lacks, and for a lake that only this
    process can read.
    """
    snapshot = table.snapshot()
    number = number_column(snapshot.schema.names)
    if _why_not_native(spark, table) is not None:
        frame, found = ranged_numbered(spark, table, None, number, 0)
        return NumberedRows(frame=frame, number=number, locations=found)
    version = VersionFiles(table, FileGroups(snapshot, lambda store: _can_reach(spark, table, store)))
    frames: list[DataFrame] = []
    locations: tuple[str, ...] = ()
    for group in list(version.groups.size_bytes) or [Group(reading=BY_NAME)]:
        if group.reading is None:
            frame, found = ranged_numbered(spark, table, partial(_is_in, version, group), number, len(locations))
        else:
            index = TableFileIndex(spark, version, group, is_asked_for=False, first_number=len(locations))
            relation = frame_of_plan(_plan(spark, index, None), spark)
            frame, found = numbered(relation, _columns(version, group), number), tuple(index.all_files.locations)
            if group.has_deletes:
                names = frame.columns
                frame = without_deleted(spark, frame, number, index.all_files.deletes, len(locations))
                frame = frame.select(*map(quoted, names))
        frames.append(frame)
        locations += found
    return NumberedRows(frame=reduce(DataFrame.union, frames), number=number, locations=locations)


def _plan(spark: SparkSession, index: TableFileIndex, entry: JavaObject | None) -> JavaObject:
    """The logical plan of a scan. With an entry, errors of refused statements name the table."""
    relation = _relation(spark, index)
    companion = gateway_of(spark).module(f"{_SOURCES}.LogicalRelation$")
    return call(companion, "apply", relation, False if entry is None else entry)


def _relation(spark: SparkSession, index: TableFileIndex) -> JavaObject:
    """Spark's relation of Parquet files over an index."""
    gateway, reading = gateway_of(spark), index.group.reading
    schema = spark_schema(index.version.snapshot.schema) if reading is None or reading.is_by_name else reading.schema
    return gateway.new(
        f"{_SOURCES}.HadoopFsRelation",
        index,
        gateway.new("org.apache.spark.sql.types.StructType"),
        gateway.static("org.apache.spark.sql.types.DataType", "fromJson", schema.json()),
        gateway.module("scala.None$"),
        gateway.new(f"{_SOURCES}.parquet.ParquetFileFormat"),
        _options(gateway, may_skip_row_groups(gateway, index.version, index.group)),
        java_session(spark),
    )


@lru_cache(maxsize=8)
def _options(gateway: Gateway, skips_blocks: bool) -> JavaObject:
    return scala_map(gateway, _OPTIONS if skips_blocks else _OPTIONS | _NOTHING_LEFT_OUT)
