"""Spark's types as Arrow has them between a Python worker and the JVM."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as spark_types
from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructField, StructType

from underlay.errors import Unsupported
from underlay.schema.arrays import AnyField, AnyType

_PLAIN: dict[type[DataType], pa.DataType] = {
    spark_types.BooleanType: pa.bool_(),
    spark_types.ByteType: pa.int8(),
    spark_types.ShortType: pa.int16(),
    spark_types.IntegerType: pa.int32(),
    spark_types.LongType: pa.int64(),
    spark_types.FloatType: pa.float32(),
    spark_types.DoubleType: pa.float64(),
    spark_types.StringType: pa.string(),
    spark_types.BinaryType: pa.binary(),
    spark_types.DateType: pa.date32(),
    spark_types.TimestampType: pa.timestamp("us", "UTC"),
    spark_types.TimestampNTZType: pa.timestamp("us"),
}


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns as Arrow has them. Raises Unsupported for a type that tables do not have."""
    return pa.schema([_field(field) for field in schema.fields])


def _field(field: StructField) -> AnyField:
    try:
        return pa.field(field.name, _type(field.dataType), nullable=field.nullable)
    except Unsupported as error:
        raise error.at(field.name) from None


def _type(given: DataType) -> AnyType:
    match given:
        case StructType():
            return pa.struct([_field(field) for field in given.fields])
        case ArrayType():
            return pa.list_(pa.field("element", _type(given.elementType), nullable=given.containsNull))
        case MapType():
            key: AnyField = pa.field("key", _type(given.keyType), nullable=False)
            value: AnyField = pa.field("value", _type(given.valueType), nullable=given.valueContainsNull)
            return pa.map_(key, value)
        case DecimalType():
            return pa.decimal128(given.precision, given.scale)
    found = _PLAIN.get(type(given))
    if found is None:
        raise Unsupported(
            "tables have no columns of this type", found=given.simpleString(), hint="Cast it, or leave it out."
        )
    return found
