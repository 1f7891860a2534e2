"""Converts rows of the ranged reader to Spark's types.

Types that Spark's own Parquet reader lacks become the nearest lossless type: uuids and times of day become text, half
floats become floats, nanoseconds become microseconds if they are whole microseconds.
"""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType, FloatType, StringType, StructField, StructType, TimestampNTZType, TimestampType

from underlay.errors import Unsupported
from underlay.schema.arrow_aliases import AnyArray
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, Scalar, TypeKind
from underlay.spark.types.spark_types import spark_schema


def source_schema(schema: TableSchema, columns: tuple[str, ...]) -> StructType:
    """These columns in Spark's types. Raises UnknownColumn, and Unsupported for a type that Spark lacks."""
    fields = []
    for column in map(schema.column, columns):
        other = _other_type(column)
        fields += (
            spark_schema(TableSchema(fields=(column,), last_id=schema.last_id)).fields
            if other is None
            else [StructField(column.name, other)]
        )
    return StructType(fields)


def is_given_as_it_is(column: Field) -> bool:
    """Whether Spark sees a column's values as stored, so that its conditions mean the same to us."""
    return _other_type(column) is None


def to_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with exactly the types that Spark expects. Raises Unsupported for a value that Spark cannot hold."""
    if batch.schema.equals(schema):
        return batch
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        try:
            columns.append(_converted(column, field.type))
        except pa.ArrowInvalid as error:
            raise Unsupported(
                f"Spark cannot represent a value: {error}",
                place=field.name,
                hint="Leave the column out with the option columns.",
            ) from error
    return pa.record_batch(columns, schema=schema)


def _other_type(column: Field) -> DataType | None:
    match column.type:
        case Scalar(kind=TypeKind.UUID | TypeKind.TIME):
            return StringType()
        case Scalar(kind=TypeKind.FLOAT16):
            return FloatType()
        case Scalar(kind=TypeKind.TIMESTAMP, unit="ns", zone=zone):
            return TimestampType() if zone else TimestampNTZType()
    return None


def _converted(column: AnyArray, wanted: pa.DataType) -> AnyArray:
    if isinstance(column.type, pa.UuidType):
        storage = cast("pa.ExtensionArray[Any]", column).storage
        return pa.array([None if one is None else str(UUID(bytes=one)) for one in storage.to_pylist()], pa.string())
    return column if column.type == wanted else pc.cast(column, wanted)
