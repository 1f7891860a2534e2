"""How the rows of a hot table lie in its files: by which column they are ordered, and with which schema."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from underlay.change.files.settings import write_options
from underlay.errors import InvalidRequest, SchemaMismatch, UnknownColumn
from underlay.index.root import Definition
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import TAIL_BYTES, read_tail
from underlay.parquet.write.writer import SortedBy, WriteOptions
from underlay.runtime.locks import cached_property
from underlay.schema.convert.file_columns import file_rows, file_schema
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, Scalar, TypeKind

Times = npt.NDArray[np.int64]
_NO_LIMIT = 1 << 40


@dataclass(frozen=True, kw_only=True, eq=False)
class HotLayout:
    """The columns of a hot table at one version of its schema. `key` are the columns by which rows are deduplicated."""

    schema: TableSchema
    time: Field
    options: WriteOptions
    key: tuple[str, ...] = ()
    block_rows: int = 1 << 20
    block_bytes: int = 128 << 20

    @cached_property
    def unit(self) -> str:
        """Of timestamps in `_txn`: microseconds, or nanoseconds where the column has them."""
        return "ns" if isinstance(self.time.type, Scalar) and self.time.type.unit == "ns" else "us"

    @cached_property
    def file_schema(self) -> pa.Schema:
        """The schema of the files. Their timestamps are never null, which lets a reader trust their order."""
        schema = file_schema(self.schema)
        at = schema.get_field_index(self.time.name)
        return schema.set(at, schema.field(at).with_nullable(False))

    @cached_property
    def elements(self) -> bytes:
        """The Thrift schema that files with these columns have."""
        sink = pa.BufferOutputStream()
        pq.ParquetWriter(
            sink, self.file_schema, version="2.6", store_schema=False, store_decimal_as_integer=True
        ).close()
        data = memoryview(sink.getvalue())
        tail = read_tail(bytes(data[-TAIL_BYTES:]), len(data))
        return Footer.parse(bytes(data[tail.footer_offset : -TAIL_BYTES])).schema.raw

    def stored(self, rows: pa.Table) -> pa.Table:
        """Rows of the table as files store them."""
        found = file_rows(rows, self.schema)
        return pa.Table.from_arrays(found.columns, schema=self.file_schema)

    def times(self, rows: pa.Table) -> Times:
        """The timestamps of rows. Raises SchemaMismatch for a null: the row would belong to no partition."""
        column = rows.column(self.time.name)
        if column.null_count:
            first = int(np.flatnonzero(column.is_null().to_numpy())[0])
            raise SchemaMismatch(
                "a row without a timestamp belongs to no partition",
                place=f"column {self.time.name}, row {first}",
                expected="a timestamp in every row",
                found=f"{column.null_count} nulls in {rows.num_rows} rows",
                hint="Give these rows a timestamp, or append them to the table itself.",
            )
        try:
            moments = column.cast(_moments(self.unit, getattr(column.type, "tz", None)))
        except pa.ArrowInvalid:
            raise SchemaMismatch(
                "a timestamp is too far from 1970",
                place=f"column {self.time.name}",
                expected=f"what 64 bits hold in {self.unit}",
            ) from None
        found: Times = pc.cast(moments, pa.int64()).to_numpy()
        return found

    @cached_property
    def time_position(self) -> int:
        """The position of the timestamps among the leaves of a file."""
        return next(at for at, leaf in enumerate(self.schema.leaves) if leaf.id == self.time.id)


def _moments(unit: str, zone: str | None) -> pa.DataType:
    if unit == "ns":
        return pa.timestamp("ns", tz=zone)
    return pa.timestamp("us", tz=zone)


def hot_layout(definition: Definition, time_id: int, *, is_deduplicated: bool) -> HotLayout:
    """The layout for a table with this definition; kept, since definitions rarely change.

    Raises UnknownColumn when the column of the timestamps was dropped, InvalidRequest when there is no key.
    """
    schema = from_record(definition.schema)
    key = tuple(definition.key) if is_deduplicated else ()
    return _layout(schema, time_id, key, write_options(definition), is_deduplicated)


@lru_cache(maxsize=64)
def _kept(schema: TableSchema, time_id: int, key: tuple[int, ...], settings: tuple[Any, ...]) -> HotLayout:
    block_rows, block_bytes, codec, level, small_codec = settings
    time = next((field for field in schema.fields if field.id == time_id), None)
    if time is None:
        raise UnknownColumn("the column by whose time hot partitions are cut is not in the table any longer")
    options = WriteOptions(
        block_rows=_NO_LIMIT, block_bytes=_NO_LIMIT, file_blocks=1, codec=codec, level=level, small_codec=small_codec
    )
    layout = HotLayout(
        schema=schema,
        time=time,
        options=options,
        key=tuple(".".join(schema.leaf_by_id[one].path) for one in key),
        block_rows=block_rows,
        block_bytes=block_bytes,
    )
    return replace(layout, options=replace(options, sorted_by=(SortedBy(layout.time_position, False, False),)))


def _layout(
    schema: TableSchema, time_id: int, key: tuple[int, ...], options: WriteOptions, is_deduplicated: bool
) -> HotLayout:
    settings = (options.block_rows, options.block_bytes, options.codec, options.level, options.small_codec)
    if is_deduplicated:
        _check_key(schema, key, time_id)
    return _kept(schema, time_id, key, settings)


def _check_key(schema: TableSchema, key: tuple[int, ...], time_id: int) -> None:
    if not key:
        raise InvalidRequest(
            "rows are deduplicated by the table's key, and it has none", hint="Create it with key=[…]."
        )
    nested = [one for one in key if len(schema.leaf_by_id[one].path) > 1]
    if time_id not in key or nested:
        raise InvalidRequest(
            "rows can be deduplicated only by a key of plain columns that holds the timestamp",
            expected=f"a key with {next((f.name for f in schema.fields if f.id == time_id), time_id)}",
            found=", ".join(".".join(schema.leaf_by_id[one].path) for one in key),
            hint="Rows with equal keys must lie in the same partition, or finding them would read all.",
        )


def check_time_column(schema: TableSchema, name: str) -> Field:
    """The column by whose time rows are cut into partitions. Raises UnknownColumn, InvalidRequest."""
    field = schema.column(name)
    if isinstance(field.type, Scalar) and field.type.kind in (TypeKind.TIMESTAMP, TypeKind.DATE):
        return field
    raise InvalidRequest(
        "hot partitions are cut by a timestamp or a date", place=f"column {name}", found=str(field.type)
    )
