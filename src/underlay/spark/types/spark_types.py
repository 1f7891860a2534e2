"""Maps a table's columns to the types that Spark reads from Parquet."""

from __future__ import annotations

from pyspark.sql import types as spark_types
from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructField, StructType

from underlay.errors import Unsupported
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind

_PLAIN = {
    TypeKind.BOOLEAN: spark_types.BooleanType(),
    TypeKind.INT8: spark_types.ByteType(),
    TypeKind.INT16: spark_types.ShortType(),
    TypeKind.INT32: spark_types.IntegerType(),
    TypeKind.INT64: spark_types.LongType(),
    TypeKind.UINT8: spark_types.ShortType(),
    TypeKind.UINT16: spark_types.IntegerType(),
    TypeKind.UINT32: spark_types.LongType(),
    TypeKind.UINT64: DecimalType(20, 0),
    TypeKind.FLOAT32: spark_types.FloatType(),
    TypeKind.FLOAT64: spark_types.DoubleType(),
    TypeKind.STRING: spark_types.StringType(),
    TypeKind.BINARY: spark_types.BinaryType(),
    TypeKind.FIXED: spark_types.BinaryType(),
    TypeKind.DATE: spark_types.DateType(),
}


def quoted(name: str) -> str:
    """A column's name, quoted for Spark, whatever characters it contains."""
    return "`" + name.replace("`", "``") + "`"


def spark_schema(schema: TableSchema) -> StructType:
    """The columns, all nullable, as Spark treats files. Raises Unsupported for a type that it cannot read."""
    return StructType([_field(field) for field in schema.fields])


def _field(field: Field) -> StructField:
    try:
        return StructField(field.name, spark_type(field.type))
    except Unsupported as error:
        raise error.at(field.name) from None


def spark_type(given: Type) -> DataType:
    """The type as which Spark's reader reads a type. Raises Unsupported."""
    match given:
        case StructOf(fields):
            return StructType([_field(field) for field in fields])
        case ListOf(element):
            return ArrayType(spark_type(element.type))
        case MapOf(key, value):
            return MapType(spark_type(key.type), spark_type(value.type))
    return _scalar(given)


def _scalar(given: Scalar) -> DataType:
    if given.kind is TypeKind.DECIMAL:
        return DecimalType(given.precision, given.scale)
    if given.kind is TypeKind.TIMESTAMP and given.unit != "ns":
        return spark_types.TimestampType() if given.zone else spark_types.TimestampNTZType()
    found = _PLAIN.get(given.kind)
    if found is None:
        raise Unsupported(
            "Spark's Parquet reader does not support this type",
            found=str(given),
            hint="Read the table with table.scan or lake.sql.",
        )
    return found
