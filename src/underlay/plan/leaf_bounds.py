"""Bounds of one leaf, by block and by file, with defaults for files that lack the column (T32).

A file's range is that of its blocks, and exists only when every block with a value has one (T26). It is computed once
for each segment and leaf, and kept with the segment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.errors import UnknownColumn, name_hint
from underlay.index.entry import Flag
from underlay.index.segment.arrays import ChunkStatistics
from underlay.index.segment.bounds import has_flag
from underlay.index.segment.merge import absent_statistics
from underlay.index.segment.packed import BoundColumn
from underlay.index.segment.segment import Segment, sum_by_file
from underlay.index.segment.widen import widened
from underlay.plan.part import BoolArray, Numbers
from underlay.prune import ColumnBounds, ColumnPath, Unordered
from underlay.prune.blocks.column_bounds import KeyRanges
from underlay.prune.predicates.operand import format_column
from underlay.schema.bound_storage import Storage, bound_domain, storage_of
from underlay.schema.convert.default import default_scalar
from underlay.schema.convert.stored_values import stored_array
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Field, TypeKind

_GROUP = Unordered("nested")
_EXACT_BOUNDS = Flag.HAS_LOW | Flag.HAS_HIGH | Flag.IS_LOW_EXACT | Flag.IS_HIGH_EXACT

Blocks = NDArray[np.int64] | None
"""Numbers of blocks in their segment; None is all."""


def resolve(schema: TableSchema, paths: Iterable[ColumnPath]) -> dict[ColumnPath, LeafColumn | None]:
    """The leaf of each path, None for a struct, list or map. Raises UnknownColumn."""
    leaves = schema.leaf_by_path
    found: dict[ColumnPath, LeafColumn | None] = {}
    for path in paths:
        found[path] = leaves.get(path)
        if path not in leaves and not any(known[: len(path)] == path for known in leaves):
            hint = name_hint(format_column(path), map(format_column, leaves))
            raise UnknownColumn(f"there is no column {format_column(path)}", hint=hint)
    return found


def nothing_known(leaf: LeafColumn | None, count: int) -> ColumnBounds:
    """Bounds that prove nothing, and the leaf's type for its literals."""
    if leaf is None or leaf.is_repeated:
        return ColumnBounds.of(_GROUP, block_count=count, is_nested=True)
    # Keys of bytes must be bytes even where none is a bound, or a literal could not be compared with them.
    missing = pa.nulls(count, pa.binary()) if _has_byte_keys(leaf) else None
    return ColumnBounds.of(bound_domain(leaf.type), block_count=count, minimum=missing, maximum=missing)


def _has_byte_keys(leaf: LeafColumn) -> bool:
    return storage_of(leaf.type) is Storage.BYTES and leaf.type.kind is not TypeKind.DECIMAL


def leaf_statistics(segment: Segment, leaf: LeafColumn) -> ChunkStatistics:
    """The statistics in the leaf's own type; every block is absent when no file has the leaf."""

    def make() -> ChunkStatistics:
        found = segment.statistics(leaf.id)
        return absent_statistics(leaf.type, segment.block_count) if found is None else widened(found, leaf.type)

    return segment.remember(("leaf_statistics", leaf.id, leaf.type), make)


def block_bounds(segment: Segment, leaf: LeafColumn | None, blocks: Blocks) -> ColumnBounds:
    """What is known of a leaf in these blocks."""
    rows = segment.block_rows if blocks is None else segment.block_rows[blocks]
    if leaf is None or leaf.is_repeated:
        return nothing_known(leaf, len(rows))
    statistics = leaf_statistics(segment, leaf)
    low, high = _take(statistics.low, blocks), _take(statistics.high, blocks)
    nulls = statistics.null_counts if blocks is None else statistics.null_counts[blocks]
    flags = statistics.flags if blocks is None else statistics.flags[blocks]
    is_absent = has_flag(flags, Flag.IS_ABSENT)
    if is_absent.any():
        low, high, nulls, flags = _with_default(leaf, (low, high, nulls, flags), is_absent, rows)
    return ColumnBounds.of(
        bound_domain(leaf.type),
        block_count=len(rows),
        minimum=low,
        maximum=high,
        has_minimum=has_flag(flags, Flag.HAS_LOW),
        has_maximum=has_flag(flags, Flag.HAS_HIGH),
        null_count=nulls,
        has_null_count=has_flag(flags, Flag.HAS_NULL_COUNT),
        value_count=rows,
        may_hold_nan=has_flag(flags, Flag.MAY_HOLD_NAN),
    )


Arrays: TypeAlias = "tuple[BoundColumn | None, BoundColumn | None, Numbers, NDArray[np.uint8]]"
"""Low, high, null counts, flags."""


def _with_default(leaf: LeafColumn, given: Arrays, is_absent: BoolArray, rows: Numbers) -> Arrays:
    """The arrays, with absent chunks as they read: all null, or the default.

    Inside a struct a default may meet rows whose struct is null, so how many are null is not known there.
    """
    low, high, nulls, flags = given
    if leaf.default is None:
        all_null = np.uint8(Flag.HAS_NULL_COUNT)
        return low, high, np.where(is_absent, rows, nulls), np.where(is_absent, all_null, flags)
    value = default_bound(leaf)
    known = Flag.MAY_HOLD_NAN if value is None else _EXACT_BOUNDS
    if len(leaf.path) == 1:
        known |= Flag.HAS_NULL_COUNT
    if value is not None and low is not None and high is not None:
        low, high = _filled(low, is_absent, value), _filled(high, is_absent, value)
    return low, high, np.where(is_absent, 0, nulls), np.where(is_absent, np.uint8(known), flags)


def default_bound(leaf: LeafColumn) -> int | float | bytes | None:
    """The default as a bound is stored; None when it is NaN, or of a type without bounds."""
    field = Field(id=leaf.id, name=leaf.path[-1], type=leaf.type, default=leaf.default)
    scalar = default_scalar(field)
    if scalar is None or storage_of(leaf.type) is Storage.NONE:
        return None
    stored = stored_array(pa.repeat(scalar, 1), leaf.type)
    value: int | float | bytes = stored[0].item() if isinstance(stored, np.ndarray) else stored[0].as_py()
    return None if value != value else value


def _take(bounds: BoundColumn | None, blocks: Blocks) -> BoundColumn | None:
    if bounds is None or blocks is None:
        return bounds
    return bounds[blocks] if isinstance(bounds, np.ndarray) else bounds.take(blocks)


def _filled(bounds: BoundColumn, is_absent: BoolArray, value: float | bytes) -> BoundColumn:
    if isinstance(bounds, np.ndarray):
        return np.where(is_absent, bounds.dtype.type(value), bounds)
    filled: BoundColumn = pc.if_else(pa.array(is_absent), pa.scalar(value, pa.binary()), bounds)
    return filled


def file_bounds(segment: Segment, leaf: LeafColumn | None) -> ColumnBounds:
    """What is known of a leaf in each file."""
    if leaf is None or leaf.is_repeated:
        return nothing_known(leaf, segment.file_count)
    key = ("file_bounds", leaf.id, leaf.type, leaf.default)
    return segment.remember(key, lambda: _reduced(segment, leaf, block_bounds(segment, leaf, None)))


def _reduced(segment: Segment, leaf: LeafColumn, bounds: ColumnBounds) -> ColumnBounds:
    """The hull over each file's blocks. Blocks without a value do not take part in it.

    A block that claims both that all is null and that there is a bound contradicts itself, and its null count is
    ignored.
    """
    (ranges,) = bounds.ranges
    rows, file_count = segment.block_rows, segment.file_count
    takes_part = np.asarray(~(bounds.is_all_null | (rows == 0)))
    chosen = np.flatnonzero(takes_part)
    owners = segment.file_of_block[chosen]
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    files = owners[starts]
    filler = b"" if _has_byte_keys(leaf) else 0
    minimum, maximum = (np.full(file_count, filler, dtype=keys.dtype) for keys in (ranges.minimum, ranges.maximum))
    has_minimum, has_maximum = np.zeros(file_count, dtype=np.bool_), np.zeros(file_count, dtype=np.bool_)
    if len(starts):
        minimum[files] = np.minimum.reduceat(ranges.minimum[chosen], starts)
        maximum[files] = np.maximum.reduceat(ranges.maximum[chosen], starts)
        has_minimum[files] = np.logical_and.reduceat(ranges.has_minimum[chosen], starts)
        has_maximum[files] = np.logical_and.reduceat(ranges.has_maximum[chosen], starts)
    is_doubtful = (bounds.null_count < 0) | ((bounds.null_count == bounds.value_count) & takes_part)
    begins = segment.block_begin
    nulls = sum_by_file(np.where(is_doubtful, 0, bounds.null_count), begins)
    return ColumnBounds(
        domain=bounds.domain,
        ranges=(
            KeyRanges(
                domain=ranges.domain,
                minimum=minimum,
                maximum=maximum,
                has_minimum=has_minimum,
                has_maximum=has_maximum,
            ),
        ),
        null_count=np.where(sum_by_file(is_doubtful.astype(np.int64), begins) > 0, -1, nulls),
        value_count=segment.file_rows,
        may_hold_nan=sum_by_file(bounds.may_hold_nan.astype(np.int64), begins) > 0,
        is_nested=False,
        bloom=None,
    )
