"""Entries out of rows: what a writer of exact statistics would store."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from underlay.index.deletion_vectors import pack
from underlay.index.entry import ColumnEntry, FileEntry, Flag
from underlay.index.segment.packed import pack_bytes, shorten_high, shorten_low
from underlay.schema.bound_storage import WIDE_DECIMAL_BYTES, Storage, storage_of
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, Scalar, TypeKind, parse_scalar

Value = int | float | bytes | None
Rows = Sequence[Value]

EXACT = Flag.IS_LOW_EXACT | Flag.IS_HIGH_EXACT


def schema_of(types: Mapping[str, str], defaults: Mapping[str, str] | None = None) -> TableSchema:
    """Columns with ids 1, 2, …"""
    defaults = defaults or {}
    fields = tuple(
        Field(id=number, name=name, type=parse_scalar(text), default=defaults.get(name))
        for number, (name, text) in enumerate(types.items(), start=1)
    )
    return TableSchema(fields=fields, last_id=len(fields))


def column_entry(
    field: int,
    scalar: Scalar,
    blocks: Sequence[Rows],
    *,
    column: int | None = None,
    extra: int = 0,
    clear: int | Sequence[int] = 0,
) -> ColumnEntry:
    """One column with the given rows; `extra` flags are set and `clear` ones taken away, in every block or by block."""
    storage = storage_of(scalar)
    lows, highs, nulls, flags = [], [], [], []
    cleared = [clear] * len(blocks) if isinstance(clear, int) else clear
    for rows, taken in zip(blocks, cleared, strict=True):
        low, high, flag = _bounds(rows, scalar)
        lows.append(None if taken & Flag.HAS_LOW else low)
        highs.append(None if taken & Flag.HAS_HIGH else high)
        nulls.append(sum(value is None for value in rows))
        flags.append((flag | Flag.HAS_NULL_COUNT | extra) & ~taken & 0xFF)
    begins = np.arange(len(blocks), dtype=np.int64) * 1000 + 4 + field * 100
    return ColumnEntry(
        field=field,
        column=field - 1 if column is None else column,
        low=_packed(lows, storage),
        high=_packed(highs, storage),
        null_counts=np.array(nulls, dtype="<i8").tobytes(),
        flags=np.array(flags, dtype=np.uint8).tobytes(),
        begins=begins.tobytes(),
        sizes=np.full(len(blocks), 90, dtype="<i8").tobytes(),
        codecs=bytes([6] * len(blocks)),
    )


def file_entry(
    location: str,
    schema: TableSchema,
    columns: Mapping[str, Sequence[Rows]],
    *,
    deleted: Sequence[int] = (),
    extra: int = 0,
    clear: int | Sequence[int] = 0,
    partition: tuple[bytes | None, ...] = (),
) -> FileEntry:
    """A file with these rows, by column and block."""
    leaves = {leaf.path[0]: leaf for leaf in schema.leaves}
    row_counts = [len(rows) for rows in next(iter(columns.values()))]
    return FileEntry(
        location=location,
        size_bytes=100_000,
        etag=None,
        footer_bytes=1000,
        footer_crc=sum(location.encode()),
        layout="l1",
        block_rows=np.array(row_counts, dtype="<i8").tobytes(),
        columns=tuple(
            column_entry(leaves[name].id, leaves[name].type, blocks, extra=extra, clear=clear)
            for name, blocks in columns.items()
        ),
        partition=partition,
        deletes=pack(deleted) if deleted else None,
        deleted_rows=len(deleted),
    )


def _bounds(rows: Rows, scalar: Scalar) -> tuple[Value, Value, int]:
    values = [value for value in rows if value is not None]
    numbers = [value for value in values if not (isinstance(value, float) and math.isnan(value))]
    flag = Flag.MAY_HOLD_NAN if len(numbers) < len(values) else Flag(0)
    if not numbers or storage_of(scalar) is Storage.NONE:
        return None, None, flag
    low, high = min(numbers), max(numbers)
    flag |= Flag.HAS_LOW | Flag.HAS_HIGH | EXACT
    if isinstance(low, bytes) and isinstance(high, bytes) and scalar.kind is not TypeKind.DECIMAL:
        cut_low, cut_high = shorten_low(low), shorten_high(high, scalar.kind is TypeKind.STRING)
        if cut_low != low:
            flag &= ~Flag.IS_LOW_EXACT
        if cut_high != high:
            flag &= ~Flag.IS_HIGH_EXACT
        if cut_high is None:
            flag &= ~Flag.HAS_HIGH
        return cut_low, cut_high, flag
    return low, high, flag


def _packed(values: Sequence[Value], storage: Storage) -> bytes:
    if storage is Storage.NONE:
        return b""
    if storage is Storage.BYTES:
        return pack_bytes([_octets(value) for value in values])
    return np.array([0 if value is None else value for value in values], dtype=storage.value).tobytes()


def _octets(value: Value) -> bytes:
    if value is None:
        return b""
    return value if isinstance(value, bytes) else int(value).to_bytes(WIDE_DECIMAL_BYTES, "big", signed=True)
