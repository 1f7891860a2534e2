"""Maps Spark's types to the Arrow types between a Python worker and the JVM."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as spark_types
from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructField, StructType

from underlay.errors import Unsupported
from underlay.schema.arrow_aliases import AnyField, AnyType

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
    spark_types.NullType: pa.null(),
}


def arrow_schema(schema: StructType, *, is_loose: bool = False) -> pa.Schema:
    """The columns as an Arrow schema. Raises Unsupported for a type that tables lack.

    `is_loose`: all columns and nested parts, except keys of maps, may be null.
    """
    return pa.schema([_field(field, is_loose) for field in schema.fields])


def arrow_type(given: DataType) -> AnyType:
    """The Arrow type for a Spark type. Raises Unsupported."""
    return _type(given, is_loose=True)


def _field(field: StructField, is_loose: bool) -> AnyField:
    try:
        return pa.field(field.name, _type(field.dataType, is_loose), nullable=field.nullable or is_loose)
    except Unsupported as error:
        raise error.at(field.name) from None


def _type(given: DataType, is_loose: bool) -> AnyType:
    match given:
        case StructType():
            return pa.struct([_field(field, is_loose) for field in given.fields])
        case ArrayType():
            element = _type(given.elementType, is_loose)
            return pa.list_(pa.field("element", element, nullable=given.containsNull or is_loose))
        case MapType():
            key: AnyField = pa.field("key", _type(given.keyType, is_loose), nullable=False)
            is_nullable = given.valueContainsNull or is_loose
            value: AnyField = pa.field("value", _type(given.valueType, is_loose), nullable=is_nullable)
            return pa.map_(key, value)
        case DecimalType():
            return pa.decimal128(given.precision, given.scale)
    found = _PLAIN.get(type(given))
    if found is None:
        raise Unsupported(
            "tables have no columns of this type", found=given.simpleString(), hint="Cast it, or leave it out."
        )
    return found
