"""The statistics of one column over all blocks, as arrays.

A bound of at most eight bytes stands in the chunk record, a longer one in the block's out-of-line region. A
reference that leads outside its block, and a length of zero, mean that there is no bound: a bound is only ever
missing, never invented.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from underlay.pm.format.layout import BLOCK_HEAD_BYTES, CHUNK, StatFlag
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.format.values import ChunkArray

Side = Literal["min", "max"]
SIDES: tuple[Side, Side] = ("min", "max")
Mask = npt.NDArray[np.bool_]

# Plain integers: an IntFlag costs a microsecond per operation.
_PRESENT = {"min": int(StatFlag.MIN_PRESENT), "max": int(StatFlag.MAX_PRESENT)}
_INLINE = {"min": int(StatFlag.MIN_INLINE), "max": int(StatFlag.MAX_INLINE)}
_EXACT = {"min": int(StatFlag.MIN_EXACT), "max": int(StatFlag.MAX_EXACT)}
_NULL_COUNT = int(StatFlag.NULL_COUNT)
_SIZE_SHIFT = {"min": 0, "max": 4}
_SLOT = {"min": CHUNK.offset("min_stat"), "max": CHUNK.offset("max_stat")}
_STAT_FLAGS = CHUNK.offset("stat_flags")
# Flags and sizes are neighbouring bytes: one comparison of both says that a bound is there, inline and of one width.
_MIN_PRESENT_INLINE = _PRESENT["min"] | _INLINE["min"]
_MAX_PRESENT_INLINE = _PRESENT["max"] | _INLINE["max"]
_MIN_MARKS = np.uint16(_MIN_PRESENT_INLINE | 0x0F00)
_MAX_MARKS = np.uint16(_MAX_PRESENT_INLINE | 0xF000)


class FixedBounds(NamedTuple):
    """Bounds of a fixed-width column; a value counts only where its mask is set."""

    minimum: npt.NDArray[Any]
    maximum: npt.NDArray[Any]
    has_minimum: Mask
    has_maximum: Mask


def fixed_bounds(sidecar: Sidecar, column: int, dtype: str) -> FixedBounds:
    """Bounds of `column` read as little-endian `dtype` (at most 8 bytes wide), without copying them.

    A bound counts only if it is inline and exactly as wide as the type: anything else would be a guess.
    """
    records = sidecar.column_records(column)
    width = np.dtype(dtype).itemsize
    marks = records.field(_STAT_FLAGS, "<u2")
    return FixedBounds(
        records.field(_SLOT["min"], dtype),
        records.field(_SLOT["max"], dtype),
        marks & _MIN_MARKS == np.uint16(_MIN_PRESENT_INLINE | width << 8),
        marks & _MAX_MARKS == np.uint16(_MAX_PRESENT_INLINE | width << 12),
    )


def byte_bounds(sidecar: Sidecar, column: int, side: Side) -> pa.Array[Any]:
    """The bounds of `column` as a large_binary array, null where there is none."""
    begins, lengths = bound_spans(sidecar, column, side)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    at = np.repeat(begins - (ends - lengths), lengths) + np.arange(total)
    validity = np.packbits(lengths > 0, bitorder="little")
    offsets = np.concatenate((np.zeros(1, np.int64), ends))
    buffers = (validity, offsets, sidecar.bytes_view[at])
    return pa.Array.from_buffers(pa.large_binary(), len(lengths), [pa.py_buffer(b.tobytes()) for b in buffers])


def bound_spans(sidecar: Sidecar, column: int, side: Side) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where the bounds of `column` lie in the sidecar and how long they are; length 0 where there is none."""
    chunks = sidecar.column_chunks(column)
    slots = chunks[f"{side}_stat"]
    # The offset has 48 bits, so the sum cannot overflow.
    far_begins = sidecar.region_offsets + (slots >> np.uint64(16)).astype(np.int64)
    far_lengths = (slots & np.uint64(0xFFFF)).astype(np.int64)
    far_lengths[far_begins + far_lengths > sidecar.block_limits] = 0
    near_begins = sidecar.block_offsets + (BLOCK_HEAD_BYTES + CHUNK.size_bytes * column + _SLOT[side])
    near_lengths = np.minimum(_inline_sizes(chunks, side), 8)
    is_inline = (chunks["stat_flags"] & _INLINE[side]) != 0
    lengths = np.where(is_inline, near_lengths, far_lengths)
    lengths[(chunks["stat_flags"] & _PRESENT[side]) == 0] = 0
    return np.where(is_inline, near_begins, far_begins), lengths


def _inline_sizes(chunks: ChunkArray, side: Side) -> npt.NDArray[np.int64]:
    sizes: npt.NDArray[np.uint8] = chunks["stat_sizes"]
    return (sizes >> _SIZE_SHIFT[side] & 15).astype(np.int64)


def is_exact(chunks: ChunkArray, side: Side) -> Mask:
    """Where the bound is marked as a value that occurs. In files of generation 9.4 the mark means nothing (D2)."""
    exact: Mask = (chunks["stat_flags"] & _EXACT[side]) != 0
    return exact


def null_counts(chunks: ChunkArray) -> tuple[npt.NDArray[np.int64], Mask]:
    """Null counts and where they are known; a count above the number of values is not known."""
    known: Mask = (chunks["stat_flags"] & _NULL_COUNT) != 0
    known &= chunks["null_count"] <= chunks["num_values"]
    return np.where(known, chunks["null_count"], 0).astype(np.int64), known
