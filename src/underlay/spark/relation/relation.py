"""A version of a table as a DataFrame that Spark's own Parquet reader reads.

Files that Spark has to read in different ways are relations of their own, joined by a union. What it cannot read by
itself comes through the ranged reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import lru_cache, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.files.settings import write_options
from underlay.errors import Unsupported
from underlay.index.constants import constant_scalar
from underlay.index.deletion_vectors import MAX_ROWS, unpack
from underlay.index.entry import FileConstant
from underlay.schema.convert.default import UNIT_NS, default_scalar, format_default
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, TypeKind
from underlay.spark.files.file_groups import FileGroups, Group
from underlay.spark.files.file_index import TableFileIndex
from underlay.spark.files.read_schema import BY_NAME, ReadColumn, ReadColumns
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
from underlay.spark.types.spark_types import quoted, spark_schema, spark_type

# Projects the columns of files of another layout to the table's: renamed, widened, filled with defaults.
#
# A projection over the files' own columns, through which Catalyst pushes filters and prunes columns.

_NS_PER_US = 1000


def adapted_columns(reading: ReadColumns, schema: TableSchema, constants: Sequence[FileConstant] = ()) -> list[Column]:
    """The columns of the table over a frame of the reading's columns, of files with these constants."""
    given = {constant.field: constant for constant in constants}
    return [
        _column(
            f.col(quoted(taken.name)) if taken is not None else None, taken, _with_constant(field, given.get(field.id))
        ).alias(field.name)
        for taken, field in zip(reading.columns, schema.fields, strict=True)
    ]


def _with_constant(field: Field, constant: FileConstant | None) -> Field:
    """The field as it is where files do not have it: with their constant as its default."""
    if constant is None or not isinstance(field.type, Scalar):
        return field
    value = constant_scalar(constant, field.type)
    return replace(field, default=None if value is None else format_default(value, field.type))


def _column(found: Column | None, taken: ReadColumn | None, field: Field) -> Column:
    if found is None or taken is None:
        return _missing(field)
    wanted = spark_type(field.type)
    if taken.type == wanted:
        return found
    if taken.is_whole:
        return found.cast(wanted)  # structs are cast field by field in their order, whatever their names
    match field.type:
        case StructOf(fields):
            return _struct(found, taken, fields)
        case ListOf(element):
            return f.transform(found, lambda item: _column(item, taken.parts[0], element))
        case MapOf(_, value):
            values = f.transform_values(found, lambda _, item: _column(item, taken.parts[1], value))
            return values.cast(wanted)
    raise Unsupported("a single value has no parts", place=field.name, found=field.type)


def _struct(found: Column, taken: ReadColumn, fields: tuple[Field, ...]) -> Column:
    """A struct field by field; null where it is null in the file, whatever its fields default to."""
    parts = [
        _column(found.getField(part.name) if part is not None else None, part, field).alias(field.name)
        for part, field in zip(taken.parts, fields, strict=True)
    ]
    return f.when(found.isNotNull(), f.struct(*parts))


def _missing(field: Field) -> Column:
    """What rows of files without a field have."""
    wanted = spark_type(field.type)
    default = default_scalar(field)
    if default is None or field.default is None or not isinstance(field.type, Scalar):
        return f.lit(None).cast(wanted)
    match field.type.kind:
        case TypeKind.BINARY | TypeKind.FIXED:
            return f.lit(bytearray(default.as_py()))
        case TypeKind.DATE:
            return f.date_from_unix_date(f.lit(default.cast(pa.int32()).as_py()))
        case TypeKind.TIMESTAMP:
            us = default.cast(pa.int64()).as_py() * UNIT_NS[field.type.unit or "us"] // _NS_PER_US
            if field.type.zone is not None:
                return f.timestamp_micros(f.lit(us))
            return f.lit(str(np.datetime64(us, "us"))).cast(wanted)
    return f.lit(field.default).cast(wanted)


# Removes deleted rows by an anti-join on the number of the file and the row's position in it.
#
# Spark knows only what its FileStatus says about a file, so the number travels as the modification time, in ms.

_KEY = "__underlay_row"
"""How the name of the column begins that tells rows apart."""


def without_deleted(
    spark: SparkSession,
    frame: DataFrame,
    columns: Sequence[Column | str],
    names: Sequence[str],
    deletes: Sequence[bytes],
) -> DataFrame:
    """Columns of a frame over files that are numbered from 0, without the rows at the positions deleted in each.

    `names` are those that the columns get.
    """
    hidden = frame.metadataColumn("_metadata")
    number = f.unix_millis(hidden["file_modification_time"])
    key = _KEY + "_" * max(map(len, names))  # longer than any of them
    keyed = frame.select(*columns, (number * MAX_ROWS + hidden["row_index"]).alias(key))
    gone = spark.createDataFrame(pa.table({key: deleted_keys(deletes)}))
    return keyed.join(f.broadcast(gone), key, "left_anti").drop(key)


def deleted_keys(deletes: Sequence[bytes]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """One number for each deleted row: the file's times 2^32, and the position in it."""
    keys = [number * MAX_ROWS + unpack(positions) for number, positions in enumerate(deletes)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *keys])


_SOURCES = "org.apache.spark.sql.execution.datasources"
_OPTIONS = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "parquet.filter.record-level.enabled": "false",
}
"""A file that is missing or damaged is an error whatever the session says; dates are taken for what they are, unless
Spark's own mark in a file says that it wrote them in the old calendar; and no row is left out by Parquet's own filter,
to which -0.0 is less than 0.0."""
_NOTHING_LEFT_OUT = {f"parquet.filter.{by}.enabled": "false" for by in ("stats", "dictionary", "columnindex", "bloom")}
"""Row groups and pages are all read: where `row_group_skipping` says that Spark would lose rows by leaving some out."""
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

    Frames of two versions can be in one query only if the caller gave both versions. Raises TableNotFound,
    VersionNotFound, and Unsupported for types that Spark does not have.
    """
    table = lake.table(name, version=version, as_of=as_of, tag=tag)
    if (version, as_of, tag) == (None, None, None):
        return frame_of(spark, pin(table))
    return frame_of(spark, table, is_asked_for=True)


def pin(table: Table) -> Table:
    """The table at its newest version, for good."""
    return table.at(version=table.snapshot().version)


def frame_of(spark: SparkSession, table: Table, *, is_asked_for: bool = False) -> DataFrame:
    """A table that is opened at one version, as `plan_of` tells it."""
    return frame_of_plan(plan_of(spark, table, is_asked_for=is_asked_for), spark)


def plan_of(
    spark: SparkSession, table: Table, entry: JavaObject | None = None, *, is_asked_for: bool = False
) -> JavaObject:
    """The logical plan of a table that is opened at one version. `entry` is its `CatalogTable`, if a catalog has it.

    `is_asked_for`: it may stand beside another version of the table in one query.
    """
    why = _why_not_native(spark, table)
    if why is not None:
        return _analyzed(ranged_frame(spark, table, why=why, is_asked_for=is_asked_for))
    groups = FileGroups(table.snapshot(), lambda store: _can_reach(spark, table, store))
    version = VersionFiles(table, groups)
    found = list(groups.size_bytes) or [Group(reading=BY_NAME)]
    if len(found) == 1 and found[0].is_as_it_is:  # then Spark need not be asked, which takes longer than all else
        return _plan(spark, TableFileIndex(spark, version, found[0], is_asked_for=is_asked_for), entry)
    frames = [_group_frame(spark, version, group, entry, is_asked_for=is_asked_for) for group in found]
    return _analyzed(reduce(DataFrame.union, frames))


def _analyzed(frame: DataFrame) -> JavaObject:
    return call(java_plan(frame), "analyzed")


def _why_not_native(spark: SparkSession, table: Table) -> str | None:
    """Why nothing of a table can be read by Spark itself."""
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
    """Whether Spark can read from a store of registered files. One of the lake's kind is opened as the lake is."""
    if why_not_native(spark, store) is not None:
        return False
    stores = table.stores
    is_alike = store.partition("://")[0] == stores.lake.url.partition("://")[0]
    configure(spark, store, stores.options if is_alike else {})
    return True


def _group_frame(
    spark: SparkSession, version: VersionFiles, group: Group, entry: JavaObject | None, *, is_asked_for: bool
) -> DataFrame:
    if group.reading is None:
        return ranged_frame(
            spark,
            version.table,
            lambda part: version.groups.is_in(group, part, np.arange(part.segment.file_count)),
            why=_NOT_BY_SPARK,
            is_asked_for=is_asked_for,
        )
    index = TableFileIndex(spark, version, group, is_asked_for=is_asked_for)
    frame, schema = frame_of_plan(_plan(spark, index, entry), spark), version.snapshot.schema
    columns = ["*"] if group.reading.is_by_name else adapted_columns(group.reading, schema, group.constants)
    if group.has_deletes:
        return without_deleted(spark, frame, columns, schema.names, index.all_files.deletes)
    return frame if group.reading.is_by_name else frame.select(*columns)


def _plan(spark: SparkSession, index: TableFileIndex, entry: JavaObject | None) -> JavaObject:
    """The logical plan of a scan. With an entry, statements that are refused name the table."""
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
