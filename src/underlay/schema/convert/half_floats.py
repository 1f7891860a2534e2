"""Shows half floats, which DuckDB lacks, as float32, which has all of their values."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from underlay.schema.arrow_aliases import AnyArray, AnyField, AnyType


@lru_cache(maxsize=256)
def widened(schema: pa.Schema) -> pa.Schema:
    """The columns with float32 for float16; the same object when there is none."""
    fields = [_field(field) for field in schema]
    return schema if fields == list(schema) else pa.schema(fields)


def widen(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same values as float32."""
    schema = widened(batch.schema)
    if schema == batch.schema:
        return batch
    columns = [_cast(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def widen_table(table: pa.Table) -> pa.Table:
    """The same values as float32."""
    if widened(table.schema) == table.schema:
        return table
    return pa.Table.from_batches(map(widen, table.to_batches()), widened(table.schema))


def _cast(column: AnyArray, type_: AnyType) -> AnyArray:
    return column if column.type == type_ else column.cast(type_)


def _field(field: AnyField) -> AnyField:
    return field.with_type(_type(field.type))


def _type(type_: AnyType) -> AnyType:
    if pa.types.is_float16(type_):
        return pa.float32()
    if isinstance(type_, pa.StructType):
        return pa.struct([_field(field) for field in type_])
    if isinstance(type_, pa.MapType):
        return pa.map_(_field(type_.key_field), _field(type_.item_field))
    return pa.list_(_field(type_.value_field)) if isinstance(type_, pa.ListType) else type_
