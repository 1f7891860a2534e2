"""Blocks: chunk records and the out-of-line region they refer to.

The region holds, column by column, the bounds that are longer than eight bytes (min, then max, unaligned) and then
the column's bloom filter (aligned to 8: an i32 length and the bare bitset).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from underlay.errors import InvalidRequest, Malformed
from underlay.pm.format.layout import CHUNK, MAX_STAT_BYTES
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.format.statistics import SIDES, bound_spans
from underlay.pm.format.values import ChunkArray, SidecarBlock

_U64 = struct.Struct("<Q")
_I32 = struct.Struct("<i")

BLOOM_ALIGNMENT = 8
SPLIT_BLOCK_BYTES = 32


@dataclass(frozen=True, slots=True)
class LongBounds:
    """The bounds of one chunk that do not fit into its record; None where the record has all there is."""

    minimum: bytes | None = None
    maximum: bytes | None = None


def lay_out(
    num_rows: int,
    chunks: ChunkArray,
    long_bounds: Mapping[int, LongBounds],
    blooms: Mapping[int, bytes],
) -> SidecarBlock:
    """A block from its records: places long bounds and bitsets in the region and points the records to them.

    `chunks` has one record per column with everything but the references; both mappings are by column.
    """
    if not 0 <= num_rows < 1 << 63:
        raise InvalidRequest("a block cannot have this number of rows", found=num_rows)
    wrong = [column for column in (*long_bounds, *blooms) if not 0 <= column < len(chunks)]
    if wrong:
        raise InvalidRequest("no such column", expected=f"below {len(chunks)}", found=wrong[0])
    if not long_bounds and not blooms:
        return SidecarBlock(num_rows=num_rows, chunks=chunks)
    chunks = chunks.copy()
    region = bytearray()
    places = []
    for column in sorted(long_bounds.keys() | blooms.keys()):
        bounds = long_bounds.get(column)
        if bounds is not None:
            for name, value in (("min_stat", bounds.minimum), ("max_stat", bounds.maximum)):
                if value is not None:
                    chunks[name][column] = _reference(len(region), value)
                    region += value
        bitset = blooms.get(column)
        if bitset:
            if len(bitset) % SPLIT_BLOCK_BYTES:
                raise InvalidRequest(
                    "a bloom filter has a wrong size", expected=f"a multiple of {SPLIT_BLOCK_BYTES}", found=len(bitset)
                )
            region += bytes(-len(region) % BLOOM_ALIGNMENT)
            places.append((column, len(region)))
            region += _I32.pack(len(bitset)) + bitset
    return SidecarBlock(num_rows=num_rows, chunks=chunks, out_of_line=bytes(region), blooms=tuple(places))


def _reference(offset: int, value: bytes) -> int:
    if not 0 < len(value) <= MAX_STAT_BYTES:
        raise InvalidRequest(
            "a bound is too long for a sidecar", expected=f"1 to {MAX_STAT_BYTES} bytes", found=len(value)
        )
    return offset << 16 | len(value)


def encode_block(block: SidecarBlock) -> bytes:
    """The block's bytes; it must be placed at a multiple of 8."""
    return _U64.pack(block.num_rows) + block.chunks.tobytes() + block.out_of_line


def block_value(sidecar: Sidecar, row_group: int) -> SidecarBlock:
    """One block of `sidecar` as a value: its records, and a region rebuilt from everything they refer to, in place.

    Writers order the region differently, so each bound and filter keeps the offset it has.
    """
    region_begin = int(sidecar.region_offsets[row_group])
    pieces = []
    for column in range(sidecar.column_count):
        for side in SIDES:
            begins, lengths = bound_spans(sidecar, column, side)
            begin, length = int(begins[row_group]), int(lengths[row_group])
            if length and begin >= region_begin:
                pieces.append((begin - region_begin, sidecar.data[begin : begin + length]))
    blooms = []
    for column in sidecar.header.bloom_columns.tolist():
        bitset = inline_bloom(sidecar, row_group, column)
        if bitset is not None:
            begin = int(bloom_places(sidecar, column).begins[row_group]) - 4 - region_begin
            if not 0 <= begin <= int(sidecar.block_limits[row_group]) - region_begin - 4 - len(bitset):
                raise Malformed(
                    "the bloom filter does not lie in its own block",
                    place=f"row group {row_group}, column {column}",
                    expected=f"bytes {region_begin} to {int(sidecar.block_limits[row_group])}",
                    found=begin + region_begin,
                )
            blooms.append((column, begin))
            pieces.append((begin, _I32.pack(len(bitset)) + bitset))
    region = bytearray(max((begin + len(piece) for begin, piece in pieces), default=0))
    for begin, piece in pieces:
        region[begin : begin + len(piece)] = piece
    return SidecarBlock(
        num_rows=int(sidecar.num_rows[row_group]),
        chunks=sidecar.chunks[row_group].copy(),
        out_of_line=bytes(region),
        blooms=tuple(blooms),
    )


@dataclass(frozen=True, slots=True)
class BloomPlaces:
    """Where the usable filters of one column lie: for each block the first byte of its bitset, -1 for none."""

    begins: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


def bloom_places(sidecar: Sidecar, column: int) -> BloomPlaces:
    """The inlined filters of `column`; none when it has none or they lie in the Parquet file.

    A filter that does not lie between header and footer, or whose length is not a positive multiple of 32 bytes, is
    left out: it is never probed.
    """
    header = sidecar.header
    position = np.flatnonzero(header.bloom_columns == column)
    if header.external_blooms or not len(position):
        none = np.zeros(sidecar.row_group_count, np.int64)
        return BloomPlaces(none - 1, none)
    width = len(header.bloom_columns)
    entries = np.frombuffer(sidecar.data, "<u4", width * sidecar.row_group_count, sidecar.sections.bloom_offset)
    at = entries[int(position[0]) :: width].astype(np.int64) << 3
    inside = (at >= header.names_offset) & (at + 4 <= sidecar.footer.offset)
    words = np.frombuffer(sidecar.data, "<i4", sidecar.size // 4)
    sizes = np.where(inside, words[np.where(inside, at >> 2, 0)], 0).astype(np.int64)
    usable = inside & (sizes >= SPLIT_BLOCK_BYTES) & (sizes % SPLIT_BLOCK_BYTES == 0)
    usable &= at + 4 + sizes <= sidecar.footer.offset
    return BloomPlaces(np.where(usable, at + 4, -1), np.where(usable, sizes, 0))


def inline_bloom(sidecar: Sidecar, row_group: int, column: int) -> memoryview | None:
    """The bitset of one chunk's inlined filter, if it has a usable one."""
    places = bloom_places(sidecar, column)
    begin = int(places.begins[row_group])
    if begin < 0:
        return None
    return memoryview(sidecar.data)[begin : begin + int(places.sizes[row_group])]


def empty_chunks(column_count: int) -> ChunkArray:
    """Chunk records of one block with every field 0."""
    return np.zeros(column_count, CHUNK.dtype)
