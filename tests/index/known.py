"""What an entry says of one chunk, as Python values."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pyarrow as pa

from underlay.index.entry import ColumnEntry, FileEntry, Flag
from underlay.index.intake.entries import file_entry
from underlay.index.intake.schema_match import Misfit, match_schema
from underlay.index.intake.stack_arrays import FilePlace
from underlay.index.segment.packed import binary_array
from underlay.parquet.footer.footer import Footer
from underlay.parquet.records.records import Flags
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.table_schema import TableSchema

SIZE = 1 << 40


@dataclass(frozen=True, slots=True)
class Known:
    """A chunk's bounds in the table's storage, None where there is none, and the rest of what is known."""

    low: object
    high: object
    is_low_exact: bool
    is_high_exact: bool
    nulls: int | None
    may_hold_nan: bool
    has_bloom: bool


def entry_of(footer: Footer, table: TableSchema, *, nan_free: Flags | None = None, by: str = "name") -> FileEntry:
    """The entry of a file that fits the table."""
    fit = match_schema(footer.schema, footer.created_by, table, by="id" if by == "id" else "name", ignore_surplus=True)
    assert not isinstance(fit, Misfit), fit
    return file_entry(footer, fit.layout, table, FilePlace(location="x", size_bytes=SIZE), nan_free=nan_free)


def known(footer: Footer, type_: pa.DataType, block: int = 0, *, name: str = "c") -> Known:
    """What is known of column `name` of a file, as a table's column of another type."""
    table = from_arrow(pa.schema([pa.field(name, type_)]))
    entry = entry_of(footer, table)
    return known_of(entry.columns[0], table, block, footer.row_group_count)


def known_of(column: ColumnEntry, table: TableSchema, block: int, count: int) -> Known:
    flags = Flag(column.flags[block])
    storage = storage_of(table.leaf_by_id[column.field].type)
    (nulls,) = struct.unpack_from("<q", column.null_counts, 8 * block)
    return Known(
        low=unpack(column.low, storage, block, count) if Flag.HAS_LOW in flags else None,
        high=unpack(column.high, storage, block, count) if Flag.HAS_HIGH in flags else None,
        is_low_exact=Flag.IS_LOW_EXACT in flags,
        is_high_exact=Flag.IS_HIGH_EXACT in flags,
        nulls=nulls if Flag.HAS_NULL_COUNT in flags else None,
        may_hold_nan=Flag.MAY_HOLD_NAN in flags,
        has_bloom=Flag.HAS_BLOOM in flags,
    )


def unpack(data: bytes, storage: Storage, block: int, count: int) -> object:
    if storage is Storage.BYTES:
        return binary_array(data, count)[block].as_py()
    kind = {Storage.INT: "<q", Storage.UINT: "<Q", Storage.FLOAT: "<d"}[storage]
    return struct.unpack_from(kind, data, 8 * block)[0]
