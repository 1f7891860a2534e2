"""Converts a Parquet footer to a sidecar, byte for byte as QuestDB's converter does.

Two generations differ: 9.4 takes ids from the Thrift field ids only, marks every bound as exact and writes no footer
flags; 10 takes ids from QuestDB's key first and keeps what the writer said about exactness.

QuestDB refuses a whole file with a logical type or column order it does not know, or with a bound that is too long
for the format. Here such a column is kept without statistics, and such a bound is left out: a missing statistic is
never wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from underlay.errors import Unsupported
from underlay.parquet.footer.checks import check_readable
from underlay.parquet.footer.footer import ColumnOrder, Footer
from underlay.parquet.footer.logical import LogicalKind, LogicalType
from underlay.parquet.footer.schema import Leaf
from underlay.parquet.records.records import Spans
from underlay.pm.convert.header import header_of
from underlay.pm.convert.questdb_key import read_questdb_key
from underlay.pm.format.blocks import LongBounds, lay_out
from underlay.pm.format.encode import create
from underlay.pm.format.layout import CHUNK, MAX_STAT_BYTES, Encoding, StatFlag
from underlay.pm.format.values import ChunkArray, Generation, SidecarBlock, VersionFields
from underlay.values.physical import Codec

Place = tuple[int, int]
"""Row group and column."""

_INLINE_BYTES = 8
_UNORDERED = (
    LogicalKind.FLOAT16,
    LogicalKind.VARIANT,
    LogicalKind.GEOMETRY,
    LogicalKind.GEOGRAPHY,
    LogicalKind.UNRECOGNISED,
)
_ENCODINGS = {
    0: Encoding.PLAIN,
    2: Encoding.DICTIONARY,
    5: Encoding.DELTA_BINARY_PACKED,
    6: Encoding.DELTA_LENGTH_BYTE_ARRAY,
    7: Encoding.DELTA_BYTE_ARRAY,
    8: Encoding.DICTIONARY,
    9: Encoding.BYTE_STREAM_SPLIT,
}
"""Parquet's encoding number → our bit; encodings of levels and unknown ones have none."""

_MASKS = np.arange(1 << (max(_ENCODINGS) + 1))
_ENCODING_BITS = np.bitwise_or.reduce(
    [np.where(_MASKS >> number & 1, int(bit), 0) for number, bit in _ENCODINGS.items()]
).astype(np.uint8)
"""For every set of encodings, as a mask of their numbers, our bits."""


def convert(
    footer: Footer,
    footer_offset: int,
    *,
    generation: Generation = "10",
    blooms: Mapping[Place, bytes] | None = None,
    external_blooms: bool = False,
    backfill: Mapping[int, tuple[int, int]] | None = None,
    unused_bytes: int = 0,
    seq_txn: int | None = None,
) -> bytes:
    """The sidecar of the Parquet file whose footer begins at `footer_offset`.

    `blooms` are the bitsets to inline; with `external_blooms` the places of the file's own filters are stored
    instead; with neither the sidecar has none. `backfill` gives bounds of the designated timestamp for row groups
    that lack them. `unused_bytes` and `seq_txn` are those of the version; a file's own key may name another one.
    """
    check_readable(footer)
    key = read_questdb_key(footer.key_values, footer.column_count)
    header = header_of(footer, key, generation)
    chunks, longs = _chunks(footer, generation)
    for row_group, (low, high) in (backfill or {}).items():
        _backfill(chunks[row_group, header.designated_timestamp], low, high)
    places = _external_places(footer) if external_blooms else {}
    bloom_columns = sorted({column for _, column in (places if external_blooms else blooms or {})})
    version = VersionFields(
        parquet_footer_offset=footer_offset,
        parquet_footer_length=len(footer.data),
        unused_bytes=unused_bytes,
        seq_txn=key.seq_txn if key and key.seq_txn != -1 and generation != "9.4" else seq_txn,
        external_blooms=tuple(
            tuple(places.get((row_group, column), (0, 0)) for column in bloom_columns)
            for row_group in range(footer.row_group_count if external_blooms and bloom_columns else 0)
        ),
    )
    header = replace(
        header, bloom_columns=tuple(bloom_columns), external_blooms=external_blooms and bool(bloom_columns)
    )
    return create(header, _blocks(footer, chunks, longs, blooms or {}), version)


def sidecar_blocks(footer: Footer, delta: int = 0) -> list[SidecarBlock]:
    """The blocks of a file's sidecar, without filters, as if all its data lay `delta` bytes further on."""
    chunks, longs = _chunks(footer, "10")
    chunks["begin"] += np.uint64(delta)
    return _blocks(footer, chunks, longs, {})


def _chunks(footer: Footer, generation: Generation) -> tuple[ChunkArray, dict[Place, LongBounds]]:
    """All chunk records except for their references, and the bounds that must go out of line."""
    source = footer.chunks
    shape = (footer.row_group_count, footer.column_count)
    _check_codecs(source.codec)
    chunks = np.zeros(shape, CHUNK.dtype)
    chunks["codec"] = source.codec
    chunks["encodings"] = _ENCODING_BITS[source.encodings & (len(_ENCODING_BITS) - 1)]
    # QuestDB takes a dictionary offset of 0 as it stands; no chunk begins there, so the chunk would be lost.
    begin = np.where(source.dictionary_page_offset > 0, source.dictionary_page_offset, source.data_page_offset)
    chunks["num_values"] = np.maximum(source.num_values, 0)
    chunks["begin"] = np.maximum(begin, 0)
    chunks["size"] = np.maximum(source.total_compressed_bytes, 0)
    statistics = source.statistics
    trusted = np.array([_has_known_order(footer, leaf) for leaf in footer.schema.leaves], np.bool_)
    _set_count(chunks, "null_count", statistics.null_count, statistics.has_null_count & trusted, StatFlag.NULL_COUNT)
    _set_count(
        chunks,
        "distinct_count",
        statistics.distinct_count,
        statistics.has_distinct_count & trusted,
        StatFlag.DISTINCT_COUNT,
    )
    data = np.frombuffer(footer.data, np.uint8)
    always = generation == "9.4"
    low = _set_bound(chunks, "min", data, statistics.min_value, trusted, always | (statistics.is_min_exact != 0))
    high = _set_bound(chunks, "max", data, statistics.max_value, trusted, always | (statistics.is_max_exact != 0))
    return chunks, {
        place: LongBounds(
            footer.span_bytes(statistics.min_value, *place) if place in low else None,
            footer.span_bytes(statistics.max_value, *place) if place in high else None,
        )
        for place in low | high
    }


def _has_known_order(footer: Footer, leaf: Leaf) -> bool:
    """Whether QuestDB would accept the column. Where it would refuse the file, we keep the column without
    statistics."""
    orders = footer.column_orders
    if orders is not None and leaf.index < len(orders) and orders[leaf.index] is not ColumnOrder.TYPE_ORDER:
        return False
    logical: LogicalType = leaf.node.logical
    return leaf.node.is_logical_from_converted or logical.kind not in _UNORDERED


def _check_codecs(codecs: npt.NDArray[np.int64]) -> None:
    unknown = codecs[(codecs < 0) | (codecs > max(Codec))]
    if unknown.size:
        raise Unsupported("a chunk's compression codec is not known", expected="0 to 7", found=int(unknown[0]))


def _set_count(
    chunks: ChunkArray, name: str, counts: npt.NDArray[np.int64], present: npt.NDArray[np.bool_], flag: StatFlag
) -> None:
    chunks[name] = np.where(present, np.maximum(counts, 0), 0)
    chunks["stat_flags"] |= np.where(present, int(flag), 0).astype(np.uint8)


_BOUND_FLAGS = {
    "min": (StatFlag.MIN_PRESENT, StatFlag.MIN_INLINE, StatFlag.MIN_EXACT, 0),
    "max": (StatFlag.MAX_PRESENT, StatFlag.MAX_INLINE, StatFlag.MAX_EXACT, 4),
}


def _set_bound(
    chunks: ChunkArray,
    side: Literal["min", "max"],
    data: npt.NDArray[np.uint8],
    spans: Spans,
    trusted: npt.NDArray[np.bool_],
    exact: npt.NDArray[np.bool_],
) -> set[Place]:
    """Write the short bounds of one side into the records; returns the places of the long ones. Empty bounds are left
    out."""
    present_flag, inline_flag, exact_flag, shift = _BOUND_FLAGS[side]
    present = (spans.begin >= 0) & (spans.length > 0) & (spans.length <= MAX_STAT_BYTES) & trusted
    inline = present & (spans.length <= _INLINE_BYTES)
    flags = np.where(present, int(present_flag), 0) | np.where(inline, int(inline_flag), 0)
    chunks["stat_flags"] |= (flags | np.where(present & exact, int(exact_flag), 0)).astype(np.uint8)
    lengths = np.where(inline, spans.length, 0)
    chunks["stat_sizes"] |= (lengths << shift).astype(np.uint8)
    octets = np.arange(_INLINE_BYTES)
    here = octets < lengths[..., None]
    stored = np.where(here, data[np.where(here, spans.begin[..., None] + octets, 0)], 0).astype(np.uint8, copy=False)
    chunks[f"{side}_stat"] = stored.view("<u8")[..., 0]
    return {(int(row_group), int(column)) for row_group, column in np.argwhere(present & ~inline)}


def _backfill(chunk: np.void, low: int, high: int) -> None:
    """Give a chunk of the designated timestamp both bounds, inline and exact."""
    both = StatFlag.MIN_PRESENT | StatFlag.MIN_INLINE | StatFlag.MIN_EXACT
    both |= StatFlag.MAX_PRESENT | StatFlag.MAX_INLINE | StatFlag.MAX_EXACT
    chunk["stat_flags"] |= int(both)
    chunk["stat_sizes"] = 0x88
    chunk["min_stat"], chunk["max_stat"] = low % (1 << 64), high % (1 << 64)


def bloom_mask(footer: Footer) -> npt.NDArray[np.bool_]:
    """Which chunks have a bloom filter whose place and length are known."""
    chunks = footer.chunks
    return (chunks.bloom_filter_offset > 0) & chunks.has_bloom_filter_length & (chunks.bloom_filter_length > 0)


def _external_places(footer: Footer) -> dict[Place, tuple[int, int]]:
    chunks = footer.chunks
    return {
        (int(r), int(c)): (int(chunks.bloom_filter_offset[r, c]), int(chunks.bloom_filter_length[r, c]))
        for r, c in np.argwhere(bloom_mask(footer))
    }


def _blocks(
    footer: Footer, chunks: ChunkArray, longs: Mapping[Place, LongBounds], blooms: Mapping[Place, bytes]
) -> list[SidecarBlock]:
    count = footer.row_group_count
    long_bounds: list[dict[int, LongBounds]] = [{} for _ in range(count)]
    for (row_group, column), bounds in longs.items():
        long_bounds[row_group][column] = bounds
    bitsets: list[dict[int, bytes]] = [{} for _ in range(count)]
    for (row_group, column), bitset in blooms.items():
        bitsets[row_group][column] = bitset
    rows = np.maximum(footer.row_groups.num_rows, 0).tolist()
    return [lay_out(rows[i], chunks[i], long_bounds[i], bitsets[i]) for i in range(count)]
