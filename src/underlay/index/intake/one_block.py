"""What the index keeps of a file of one block that we wrote: what `statistics` would keep, number by number.

A small append is one block of a few columns, for which a step of numpy costs more than the work it does. Everything
that the schema decides is worked out once for a table; what is not plain is left to `statistics`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

from underlay.index.entry import ColumnEntry, FileLayout, Flag
from underlay.index.intake.file_type import file_type
from underlay.index.intake.schema_match import NO_FIELD, schema_of
from underlay.index.intake.trust import trusts_of
from underlay.index.segment.packed import MAX_BOUND_BYTES, pack_bytes, shorten_high, shorten_low
from underlay.parquet.bulk.stack import Origin
from underlay.parquet.footer.footer import ColumnOrder, Footer
from underlay.parquet.footer.schema import Leaf
from underlay.parquet.records.records import Flags, Spans
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar, TypeKind
from underlay.values.physical import Codec, PhysicalType

_FLOATS = (TypeKind.FLOAT16, TypeKind.FLOAT32, TypeKind.FLOAT64)
_FIXED = PhysicalType.FIXED_LEN_BYTE_ARRAY
_FORMATS = {
    PhysicalType.BOOLEAN: "<B",
    PhysicalType.INT32: "<i",
    PhysicalType.INT64: "<q",
    PhysicalType.FLOAT: "<f",
    PhysicalType.DOUBLE: "<d",
}
_UNSIGNED = {TypeKind.UINT8: "<I", TypeKind.UINT16: "<I", TypeKind.UINT32: "<I", TypeKind.UINT64: "<Q"}
_NUMBER = struct.Struct("<q")
_PACKED = {Storage.INT: _NUMBER, Storage.UINT: struct.Struct("<Q"), Storage.FLOAT: struct.Struct("<d")}
_MAX_CODEC = int(max(Codec))
_LOW, _HIGH = int(Flag.HAS_LOW), int(Flag.HAS_HIGH)
_LOW_EXACT, _HIGH_EXACT = int(Flag.HAS_LOW | Flag.IS_LOW_EXACT), int(Flag.HAS_HIGH | Flag.IS_HIGH_EXACT)
_MAY_HOLD_NAN, _HAS_NULL_COUNT, _HAS_BLOOM = int(Flag.MAY_HOLD_NAN), int(Flag.HAS_NULL_COUNT), int(Flag.HAS_BLOOM)


class Bound(NamedTuple):
    """One side of a chunk's range: what it is compared by, as the index packs it, and whether it is a value."""

    value: Any  # int, float or bytes: the same for all bounds of a column
    packed: bytes
    is_exact: bool


Decode = Callable[[bytes, int, bool], Bound | None]
"""A stored bound, whether it is exact (1, 0, or -1 for not said), whether it is the lower one; None when it is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """What the schema says of a leaf. `decode` is None when its bounds do not count; `absent` stands for no bound."""

    field: int
    index: int
    is_nullable: bool
    is_repeated: bool
    is_float: bool
    decode: Decode | None
    absent: bytes


def written_columns(
    footer: Footer, layout: FileLayout, table: TableSchema, nan_free: Flags
) -> tuple[ColumnEntry, ...] | None:
    """The entries that `column_entries` gives for a file of ours; None when it has to be asked."""
    if footer.row_group_count != 1 or footer.key_values:
        return None
    plan = _plan(footer.schema.raw, footer.created_by, footer.column_orders, layout.fields, table)
    return None if plan is None else _entries(footer, plan, nan_free)


@lru_cache(maxsize=64)
def _plan(
    elements: bytes,
    created_by: str | None,
    orders: tuple[ColumnOrder, ...] | None,
    fields: tuple[int, ...],
    table: TableSchema,
) -> tuple[_Column, ...] | None:
    """The columns that the table has, in order; None when bounds of one are converted on their way, or in doubt."""
    schema = schema_of(elements)
    (trust,) = trusts_of([Origin(b"", created_by, orders, (), 1)], schema)
    columns = []
    for leaf, field in zip(schema.leaves, fields, strict=True):
        if field == NO_FIELD or field not in table.leaf_by_id:
            continue
        wanted, held = table.leaf_by_id[field].type, file_type(leaf.node)
        storage = storage_of(wanted)
        is_trusted = trust.values[leaf.index] and storage is not Storage.NONE
        decode = _decoder(leaf, wanted) if is_trusted else None
        if held != wanted or (is_trusted and decode is None) or (trust.deprecated[leaf.index] and not is_trusted):
            return None
        columns.append(
            _Column(
                field=field,
                index=leaf.index,
                is_nullable=leaf.max_def_level > 0,
                is_repeated=leaf.max_rep_level > 0,
                is_float=wanted.kind in _FLOATS,
                decode=decode,
                absent=b"" if storage is Storage.NONE else bytes(8),  # a number, or two offsets
            )
        )
    return tuple(columns)


def _decoder(leaf: Leaf, wanted: Scalar) -> Decode | None:
    """How a stored bound becomes one of the index, where file and table have the same type."""
    storage = storage_of(wanted)
    if leaf.physical_type in _FORMATS:
        if storage is Storage.BYTES:
            return None
        form = _UNSIGNED.get(wanted.kind, _FORMATS[leaf.physical_type])
        return partial(_decode_float if storage is Storage.FLOAT else _decode_integer, struct.Struct(form), storage)
    if wanted.kind is TypeKind.DECIMAL:
        return None
    return partial(_decode_bytes, leaf.node.type_length if leaf.physical_type is _FIXED else None, wanted.kind)


def _decode_integer(form: struct.Struct, storage: Storage, stored: bytes, exact: int, is_low: bool) -> Bound | None:
    if len(stored) != form.size:
        return None
    (value,) = form.unpack(stored)
    return Bound(value, _PACKED[storage].pack(value), exact != 0)


def _decode_float(form: struct.Struct, storage: Storage, stored: bytes, exact: int, is_low: bool) -> Bound | None:
    """NaN is no bound, and a bound of zero is one of both zeros."""
    if len(stored) != form.size:
        return None
    (value,) = form.unpack(stored)
    if value != value:
        return None
    value = value or (-0.0 if is_low else 0.0)
    return Bound(value, _PACKED[storage].pack(value), exact != 0)


def _decode_bytes(width: int | None, kind: TypeKind, stored: bytes, exact: int, is_low: bool) -> Bound | None:
    """Text and bytes, cut to a bounded length; exact only where the file says so, or where the length is fixed."""
    if width is not None and (len(stored) > width or (kind is TypeKind.UUID and len(stored) != width)):
        return None
    is_exact = exact == 1 if width is None else exact != 0 and len(stored) == width
    if len(stored) <= MAX_BOUND_BYTES:
        return Bound(stored, pack_bytes([stored]), is_exact)
    short = shorten_low(stored) if is_low else shorten_high(stored, kind is TypeKind.STRING)
    return None if short is None else Bound(short, pack_bytes([short]), False)


def _entries(footer: Footer, plan: tuple[_Column, ...], nan_free: Flags) -> tuple[ColumnEntry, ...] | None:
    """The entries of all columns; None when a chunk says what files of ours do not say."""
    chunks, statistics = footer.chunks, footer.chunks.statistics
    (row_count,) = footer.row_groups.num_rows.tolist()
    values, codecs = chunks.num_values[0].tolist(), chunks.codec[0].tolist()
    if footer.num_rows != row_count or min(values) < 0 or min(codecs) < 0 or max(codecs) > _MAX_CODEC:
        return None
    deprecated = (statistics.deprecated_min.begin >= 0) & (statistics.min_value.begin < 0)
    if (deprecated | (statistics.deprecated_max.begin >= 0) & (statistics.max_value.begin < 0)).any():
        return None
    null_counts = statistics.null_count[0].tolist()
    has_null_count = statistics.has_null_count[0].tolist()
    lows, highs = _stored(footer.data, statistics.min_value), _stored(footer.data, statistics.max_value)
    is_low_exact, is_high_exact = statistics.is_min_exact[0].tolist(), statistics.is_max_exact[0].tolist()
    dictionaries, pages = chunks.dictionary_page_offset[0].tolist(), chunks.data_page_offset[0].tolist()
    sizes = chunks.total_compressed_bytes[0].tolist()
    has_bloom = ((chunks.bloom_filter_offset[0] > 0) & (chunks.bloom_filter_length[0] > 0)).tolist()
    without_nan = ((statistics.has_nan_count[0] & (statistics.nan_count[0] == 0)) | nan_free[0]).tolist()
    entries = []
    for column in plan:
        at = column.index
        null_count, is_known = 0, True
        if column.is_nullable:
            is_known = has_null_count[at] and 0 <= null_counts[at] <= values[at]
            is_known = is_known and (column.is_repeated or values[at] == row_count)
            null_count = null_counts[at] if is_known else 0
        low = high = None
        if column.decode is not None and not (is_known and null_count == row_count):
            low_stored, high_stored = lows[at], highs[at]
            low = None if low_stored is None else column.decode(low_stored, is_low_exact[at], True)
            high = None if high_stored is None else column.decode(high_stored, is_high_exact[at], False)
            if low is not None and high is not None and low.value > high.value:
                low = high = None
        flags = 0 if low is None else _LOW_EXACT if low.is_exact else _LOW
        flags |= 0 if high is None else _HIGH_EXACT if high.is_exact else _HIGH
        if is_known and not column.is_repeated:
            flags |= _HAS_NULL_COUNT
        if column.is_float:
            flags |= 0 if without_nan[at] else _MAY_HOLD_NAN
        elif has_bloom[at]:
            flags |= _HAS_BLOOM
        entries.append(
            ColumnEntry(
                field=column.field,
                column=at,
                low=column.absent if low is None else low.packed,
                high=column.absent if high is None else high.packed,
                null_counts=_NUMBER.pack(0 if column.is_repeated else null_count),
                flags=bytes((flags,)),
                begins=_NUMBER.pack(dictionaries[at] if 0 < dictionaries[at] < pages[at] else pages[at]),
                sizes=_NUMBER.pack(sizes[at]),
                codecs=bytes((codecs[at],)),
                value_counts=_NUMBER.pack(values[at]) if column.is_repeated else b"",
            )
        )
    return tuple(entries)


def _stored(data: bytes, spans: Spans) -> list[bytes | None]:
    """The stored bounds of the only block; None where there is none."""
    begins, lengths = spans.begin[0].tolist(), spans.length[0].tolist()
    return [None if begin < 0 else data[begin : begin + length] for begin, length in zip(begins, lengths, strict=True)]
