"""Projects files with another layout to the table's columns: renames, widens and fills in defaults.

It is a projection over the files' own columns, through which Catalyst pushes filters and prunes columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f

from underlay.errors import Unsupported
from underlay.index.constants import constant_scalar
from underlay.index.entry import FileConstant
from underlay.schema.convert.default import UNIT_NS, default_scalar, format_default
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, TypeKind
from underlay.spark.files.read_schema import ReadColumn, ReadColumns
from underlay.spark.types.spark_types import quoted, spark_type

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
    """The field with the files' constant as its default, for files that lack it."""
    if constant is None or not isinstance(field.type, Scalar):
        return field
    value = constant_scalar(constant, field.type)
    return replace(field, default=None if value is None else format_default(value, field.type))


def _column(found: Column | None, taken: ReadColumn | None, field: Field) -> Column:
    if found is None or taken is None:
        return missing_column(field)
    wanted = spark_type(field.type)
    if taken.type == wanted:
        return found
    if taken.is_whole:
        return found.cast(wanted)  # Spark casts structs field by field in order, whatever the names
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
    """A struct, field by field. It is null where it is null in the file, whatever its fields' defaults."""
    parts = [
        _column(found.getField(part.name) if part is not None else None, part, field).alias(field.name)
        for part, field in zip(taken.parts, fields, strict=True)
    ]
    return f.when(found.isNotNull(), f.struct(*parts))


def missing_column(field: Field) -> Column:
    """The value of a field in files that lack it."""
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
