"""A table's columns as its files store them: as in Arrow, except for seconds and milliseconds.

Parquet has no seconds, and engines that read tables through Iceberg take milliseconds for microseconds. So files store
times and timestamps in these units as microseconds; the table's type stays, and reads cast back. Files of older
releases have milliseconds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from underlay.errors import SchemaMismatch
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyChunks, AnyField
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type

COARSE = ("s", "ms")
STORED = "us"


@lru_cache(maxsize=256)
def file_schema(schema: TableSchema) -> pa.Schema:
    """The Arrow schema that files of this table are written with."""
    return to_arrow(replace(schema, fields=tuple(_stored(field) for field in schema.fields)))


def file_rows(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """Rows of the table as they are written. Raises SchemaMismatch for instants beyond the range of microseconds."""
    target = file_schema(schema)
    if rows.schema.equals(target):
        return rows
    columns = [_cast(column, field) for column, field in zip(rows.columns, target, strict=True)]
    return pa.Table.from_arrays(columns, schema=target)


def _cast(column: AnyChunks, field: AnyField) -> AnyChunks:
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid:
        raise SchemaMismatch(
            "a value is too far from 1970",
            place=format_column((field.name,)),
            expected="what 64 bits hold in microseconds, 292,000 years",
            hint="Correct the value, or store it as an integer.",
        ) from None


def _stored(field: Field) -> Field:
    return replace(field, type=_stored_type(field.type))


def _stored_type(type_: Type) -> Type:
    match type_:
        case Scalar(unit=unit) if unit in COARSE:
            return replace(type_, unit=STORED)
        case StructOf(fields):
            return StructOf(tuple(_stored(field) for field in fields))
        case ListOf(element):
            return ListOf(_stored(element))
        case MapOf(key, value):
            return MapOf(_stored(key), _stored(value))
    return type_
