"""Builds the definition of a new table from what a user writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pyarrow as pa

from underlay.change.files.settings import check_settings
from underlay.errors import InvalidRequest
from underlay.index.root import Definition, PartitionFieldRecord, SortFieldRecord
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.names import find_named
from underlay.schema.partitioning.sort import parse_sort
from underlay.schema.partitioning.transform import partition_fields
from underlay.schema.record import to_record
from underlay.schema.table_schema import TableSchema

SchemaLike = TableSchema | pa.Schema | str
"""Columns: ours, Arrow's, or SQL text (`id bigint not null, name string`)."""


def read_schema(schema: object) -> TableSchema:
    """The columns of `schema`, which may also be a frame, or anything with `__arrow_c_schema__`."""
    if isinstance(schema, TableSchema):
        return schema
    if isinstance(schema, str):
        from underlay.schema.convert.ddl import parse_ddl  # slow: loads an SQL parser

        return parse_ddl(schema)
    if isinstance(schema, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return from_arrow(schema.schema)
    if isinstance(schema, pa.Schema):
        return from_arrow(schema)
    if hasattr(schema, "__arrow_c_schema__"):
        return from_arrow(pa.schema(cast("pa.Schema", schema)))
    if hasattr(schema, "__arrow_c_stream__"):  # a pandas or Polars frame
        return from_arrow(pa.RecordBatchReader.from_stream(schema).schema)
    raise InvalidRequest(
        "not a schema", found=type(schema).__name__, hint="Give an Arrow schema, or text such as 'id bigint not null'."
    )


def define(
    schema: object,
    *,
    key: Sequence[str] = (),
    sort_by: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    comment: str | None = None,
    properties: Mapping[str, str | int] | None = None,
) -> Definition:
    """The definition of a new table. Raises InvalidRequest for contradictions, UnknownColumn."""
    table = read_schema(schema)
    if not table.fields:
        raise InvalidRequest("a table needs at least one column")
    settings = {name: str(value) for name, value in (properties or {}).items()}
    check_settings(settings, table)
    return Definition(
        schema=to_record(table),
        key=key_of(table, key),
        sort_by=order_of(table, sort_by),
        partition_by=partitions_of(table, partition_by),
        properties=settings,
        comment=comment,
    )


def key_of(table: TableSchema, columns: Sequence[str]) -> tuple[int, ...]:
    """The fields of a key. Raises InvalidRequest, UnknownColumn."""
    _refuse_text("key", columns)
    leaves = [find_named(table, column) for column in columns]
    if len({leaf.id for leaf in leaves}) < len(leaves):
        raise InvalidRequest("the key lists a column twice", found=", ".join(columns))
    return tuple(leaf.id for leaf in leaves)


def order_of(table: TableSchema, columns: Sequence[str]) -> tuple[SortFieldRecord, ...]:
    """The order of rows in files. Raises InvalidRequest, UnknownColumn."""
    _refuse_text("sort_by", columns)
    return tuple(
        SortFieldRecord(field=one.field, descending=one.is_descending, nulls_last=one.is_nulls_last)
        for one in parse_sort(table, columns)
    )


def partitions_of(table: TableSchema, columns: Sequence[str]) -> tuple[PartitionFieldRecord, ...]:
    """What files are partitioned by. Raises InvalidRequest, UnknownColumn."""
    _refuse_text("partition_by", columns)
    return tuple(
        PartitionFieldRecord(field=one.field, transform=one.transform, width=one.width, hash=one.hash)
        for one in partition_fields(table, columns)
    )


def _refuse_text(name: str, columns: Sequence[str]) -> None:
    if isinstance(columns, str):
        raise InvalidRequest(f"{name} is a list of columns", found=repr(columns), hint=f"Write [{columns!r}].")
