"""Makes one Parquet file from blocks of others, copied byte for byte: nothing is decoded, compressed or encoded.

First come the blocks, then their bloom filters and page indexes, then the spliced footer. A page index is copied as it
is, except for the positions in offset indexes, which move with their block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from underlay.errors import Inconsistent, Malformed
from underlay.parquet.footer.chunks import META
from underlay.parquet.footer.footer import ROW_GROUPS, Footer
from underlay.parquet.footer.splice import (
    BLOOM_LENGTH,
    BLOOM_OFFSET,
    NUM_ROWS,
    SplicePart,
    set_bloom_filters,
    splice,
)
from underlay.parquet.footer.tail import MAGIC, seal
from underlay.parquet.thrift.encode import I64, encode, list_header
from underlay.parquet.thrift.tree import ITEM, ThriftKind, parse
from underlay.parquet.thrift.wire import write_integer
from underlay.parquet.write.bloom import parse_header
from underlay.values.ranges import ByteRange

ReadRanges = Callable[[Sequence[ByteRange]], Sequence[memoryview]]

_OFFSET_INDEX, _COLUMN_INDEX = ((4,), (5,)), ((6,), (7,))
_BLOOM = ((META, BLOOM_OFFSET), (META, BLOOM_LENGTH))
_PAGE_POSITIONS = (1, ITEM, 1)
_HEADER_BYTES = 64
"""No bloom filter's header is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBlocks:
    """Blocks of one file, by their numbers and in the order wanted, and what reads byte ranges of it."""

    footer: Footer
    blocks: Sequence[int]
    read: ReadRanges


@dataclass(frozen=True, slots=True, kw_only=True)
class SplicedFile:
    """A whole file in memory. `deltas` has how far the bytes of each block moved."""

    data: bytearray
    footer: Footer
    deltas: tuple[int, ...]


class _Extra(NamedTuple):
    """A filter or an index: the fields that hold its place, its chunk in the new file, and where it was."""

    fields: tuple[tuple[int, ...], tuple[int, ...]]
    block: int
    column: int
    place: ByteRange
    delta: int
    has_length: bool


def form_of(footer: Footer) -> bytes:
    """The footer without its blocks: files that have the same form can be joined by copying."""
    fields = footer.tree.fields(0)
    nothing = {fields[ROW_GROUPS]: list_header(ThriftKind.STRUCT, 0)}
    if NUM_ROWS in fields:
        nothing[fields[NUM_ROWS]] = encode(I64(0))
    return footer.tree.write(nothing)


def block_places(footer: Footer) -> list[ByteRange]:
    """Where the chunks of each block lie."""
    chunks = footer.chunks
    has_dictionary = chunks.has_dictionary_page_offset & (chunks.dictionary_page_offset > 0)
    begins = np.where(has_dictionary, chunks.dictionary_page_offset, chunks.data_page_offset)
    ends = begins + chunks.total_compressed_bytes
    return [ByteRange(*pair) for pair in zip(begins.min(axis=1).tolist(), ends.max(axis=1).tolist(), strict=True)]


def splice_file(sources: Sequence[SourceBlocks]) -> SplicedFile:
    """The file of these blocks, in this order. Their footers passed `check_ranges`, and have the same `form_of`.

    Raises what `splice` does, and Damaged for an index or a filter that cannot be read.
    """
    position, block = len(MAGIC), 0
    parts: list[SplicePart] = []
    pieces: list[memoryview | bytes] = [MAGIC]
    extras: list[tuple[_Extra, memoryview]] = []
    deltas: list[int] = []
    known: dict[Footer, list[ByteRange]] = {}
    for source in sources:
        wanted: list[ByteRange] = []
        places = known.get(source.footer) or known.setdefault(source.footer, block_places(source.footer))
        found: list[_Extra] = []
        for run in _runs(source.blocks, places):
            begin, end = places[run[0]].begin, places[run[-1]].end
            delta = position - begin
            parts.append(SplicePart(source.footer, run, delta))
            deltas += [delta] * len(run)
            wanted.append(ByteRange(begin, end))
            found += _extras(source, run, block, delta)
            position, block = position + end - begin, block + len(run)
        read = source.read([*wanted, *(one.place for one in found)])
        pieces += read[: len(wanted)]
        extras += zip(found, read[len(wanted) :], strict=True)
    numbers: dict[tuple[int, int, tuple[int, ...]], int] = {}
    lacking = {}
    for extra, data in extras:
        moved = _moved(extra, data)
        pieces.append(moved)
        if extra.has_length:
            numbers[extra.block, extra.column, extra.fields[0]] = position
            numbers[extra.block, extra.column, extra.fields[1]] = len(moved)
        else:
            lacking[extra.block, extra.column] = ByteRange(position, position + len(moved))
        position += len(moved)
    footer = Footer.parse(splice(parts, numbers))
    if lacking:
        footer = Footer.parse(set_bloom_filters(footer, lacking))
    pieces.append(seal(footer.data))
    return SplicedFile(data=_joined(pieces), footer=footer, deltas=tuple(deltas))


def _runs(blocks: Sequence[int], places: Sequence[ByteRange]) -> Iterator[list[int]]:
    """Neighbouring blocks whose bytes follow each other."""
    run: list[int] = []
    for block in blocks:
        if run and (block != run[-1] + 1 or places[block].begin != places[run[-1]].end):
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def _extras(source: SourceBlocks, run: Sequence[int], first: int, delta: int) -> Iterator[_Extra]:
    chunks = source.footer.chunks
    for fields, offsets, lengths in (
        (_BLOOM, chunks.bloom_filter_offset, chunks.bloom_filter_length),
        (_COLUMN_INDEX, chunks.column_index_offset, chunks.column_index_length),
        (_OFFSET_INDEX, chunks.offset_index_offset, chunks.offset_index_length),
    ):
        for place, column in np.argwhere(offsets[list(run)] > 0).tolist():
            begin, length = int(offsets[run[place], column]), int(lengths[run[place], column])
            has_length = fields is not _BLOOM or bool(chunks.has_bloom_filter_length[run[place], column])
            if length <= 0 and fields is _BLOOM:
                length = _bloom_length(source.read, begin)
            if length <= 0:
                raise Malformed("a page index has no length", place=f"row group {run[place]}, column {column}")
            yield _Extra(fields, first + place, column, ByteRange(begin, begin + length), delta, has_length)


def _bloom_length(read: ReadRanges, begin: int) -> int:
    """The length of a filter whose writer did not store it."""
    (data,) = read([ByteRange(begin, begin + _HEADER_BYTES)])
    header = parse_header(bytes(data))
    return 0 if header is None else header.header_length + header.bitset_length


def _moved(extra: _Extra, data: memoryview) -> memoryview | bytes:
    if extra.fields is not _OFFSET_INDEX or not extra.delta:
        return data
    tree = parse(bytes(data))
    entries = tree.select(_PAGE_POSITIONS, (ThriftKind.I64,))
    positions = tree.number[entries] + extra.delta
    if positions.size and int(positions.min()) < len(MAGIC):
        raise Inconsistent("a page lies before its block", place="offset index")
    return tree.write(
        {entry: write_integer(at) for entry, at in zip(entries.tolist(), positions.tolist(), strict=True)}
    )


def _joined(pieces: Sequence[memoryview | bytes]) -> bytearray:
    data = bytearray(sum(map(len, pieces)))
    view, begin = memoryview(data), 0
    for piece in pieces:
        view[begin : begin + len(piece)] = piece
        begin += len(piece)
    return data
