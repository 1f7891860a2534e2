"""The bounds of a leaf's chunks that a planner may trust, and a leaf's range over a whole segment, for its root."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from underlay.index.entry import Flag
from underlay.index.root import SegmentBound
from underlay.index.segment.arrays import I64, ChunkStatistics
from underlay.prune import ColumnBounds
from underlay.schema.bound_storage import WIDE_DECIMAL_BYTES, Storage, bound_domain, storage_of
from underlay.schema.types import Scalar

BoolArray = NDArray[np.bool_]

_FORMATS = {Storage.INT: "<q", Storage.UINT: "<Q", Storage.FLOAT: "<d"}


def has_flag(flags: NDArray[np.uint8], flag: Flag) -> BoolArray:
    """Where a flag is set."""
    return (flags & np.uint8(flag)).astype(np.bool_)


def trusted_bounds(statistics: ChunkStatistics, block_rows: I64) -> ColumnBounds:
    """The bounds of a leaf without repetition over its blocks, less those that cannot be right.

    Nothing is known about an absent chunk here.
    """
    flags = statistics.flags
    return ColumnBounds.of(
        bound_domain(statistics.type),
        block_count=len(flags),
        minimum=statistics.low,
        maximum=statistics.high,
        has_minimum=has_flag(flags, Flag.HAS_LOW),
        has_maximum=has_flag(flags, Flag.HAS_HIGH),
        null_count=statistics.null_counts,
        has_null_count=has_flag(flags, Flag.HAS_NULL_COUNT),
        value_count=block_rows,
        may_hold_nan=has_flag(flags, Flag.MAY_HOLD_NAN | Flag.IS_ABSENT),
    )


def segment_bound(field: int, statistics: ChunkStatistics, block_rows: I64) -> SegmentBound | None:
    """The range over all blocks; None when nothing is known, as when a file has no such leaf."""
    if has_flag(statistics.flags, Flag.IS_ABSENT).any() or not len(block_rows):
        return None
    bounds = trusted_bounds(statistics, block_rows)
    (ranges,) = bounds.ranges
    counts = ~(bounds.is_all_null | (block_rows == 0))
    has_low, has_high = ranges.has_minimum[counts].all(), ranges.has_maximum[counts].all()
    is_contradicted = ((bounds.null_count == bounds.value_count) & counts).any()
    is_known = bool((bounds.null_count >= 0).all()) and not is_contradicted
    return SegmentBound(
        field=field,
        low=pack_key(ranges.minimum[counts].min(), statistics.type) if counts.any() and has_low else None,
        high=pack_key(ranges.maximum[counts].max(), statistics.type) if counts.any() and has_high else None,
        null_count=int(bounds.null_count.sum()) if is_known else -1,
        may_hold_nan=bool(bounds.may_hold_nan.any()),
    )


def pack_key(key: object, scalar: Scalar) -> bytes:
    """One bound by its type's storage."""
    storage = storage_of(scalar)
    if isinstance(key, bytes):
        return key
    if storage is Storage.BYTES:
        return int(key).to_bytes(WIDE_DECIMAL_BYTES, "big", signed=True)  # type: ignore[call-overload, no-any-return]  # an integer
    return struct.pack(_FORMATS[storage], key)
