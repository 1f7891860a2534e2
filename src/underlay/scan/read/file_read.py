"""Reads some blocks of one file: fetches the bytes they need together, and decodes the table's columns from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from underlay.cache.same_file import KnownFile, get_same_ranges
from underlay.errors import Damaged, UnderlayError, Unsupported
from underlay.index.constants import constants_by_field
from underlay.parquet.footer.minimal import Chunk
from underlay.parquet.footer.tail import MAGIC, seal
from underlay.runtime.threads import READS
from underlay.scan.read.file_shape import FileShape
from underlay.scan.read.file_stores import ObjectPlace
from underlay.scan.read.page_cut import cut_pages
from underlay.values.ranges import ByteRange, coalesce

# Which byte ranges bring the wanted chunks, and where each chunk then lies in one buffer.
#
# Requests cost a round trip and bytes cost their transfer, so neighbouring ranges are joined as long as the wasted
# bytes stay below a share of the wanted ones.

WASTE_SHARE = 64
"""At most one byte in this many may be fetched needlessly."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """The ranges to request, ascending and disjoint."""

    ranges: tuple[ByteRange, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes that will be fetched."""
        return sum(wanted.end - wanted.begin for wanted in self.ranges)

    def positions(self, begins: Sequence[int]) -> list[int]:
        """Where bytes that begin at `begins` in the file lie when the fetched ranges are concatenated.

        Takes time in proportion to the number of ranges and of `begins`, which may be in any order.
        """
        if len(self.ranges) == 1:
            base = self.ranges[0].begin
            return [begin - base for begin in begins]
        order = sorted(range(len(begins)), key=begins.__getitem__)
        found = [0] * len(begins)
        base, index = 0, 0
        for number in order:
            begin = begins[number]
            while begin >= self.ranges[index].end:
                base += self.ranges[index].end - self.ranges[index].begin
                index += 1
            found[number] = base + begin - self.ranges[index].begin
        return found


def plan_fetch(chunks: Iterable[ByteRange], *, gap_bytes: int) -> Fetch:
    """The fewest ranges that hold all chunks, joined over gaps of at most `gap_bytes` while the waste stays small."""
    apart = coalesce((chunk for chunk in chunks if chunk.end > chunk.begin), gap_bytes=0)
    wanted = sum(one.end - one.begin for one in apart)
    budget = wanted // WASTE_SHARE
    gaps = sorted((after.begin - before.end, number) for number, (before, after) in enumerate(pairwise(apart)))
    joined = set()
    for gap, number in gaps:
        if gap > gap_bytes or gap > budget:
            break
        budget -= gap
        joined.add(number)
    ranges: list[ByteRange] = []
    for number, one in enumerate(apart):
        if number - 1 in joined:
            ranges[-1] = ByteRange(ranges[-1].begin, one.end)
        else:
            ranges.append(one)
    return Fetch(tuple(ranges))


Int96Unit = Literal["ns", "ms"]
_SMALL_BYTES = 256 << 10


class BlockChunks(msgspec.Struct, frozen=True):
    """The chunks of one block: for each leaf of the file that is wanted, by its position, where it lies.

    A leaf whose values are all null is not among `chunks`; `null_leaves` names it.
    """

    row_count: int
    chunks: dict[int, Chunk]
    null_leaves: frozenset[int] = frozenset()

    @property
    def size_bytes(self) -> int:
        """Bytes of all chunks."""
        return sum(chunk.size for chunk in self.chunks.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """Some blocks of one file, which must be the one that is `known`."""

    place: ObjectPlace
    known: KnownFile
    shape: FileShape
    blocks: tuple[BlockChunks, ...]
    constants: bytes | None = None
    """The file's constants, packed."""

    @property
    def row_count(self) -> int:
        """Rows of all blocks."""
        return sum(block.row_count for block in self.blocks)

    @property
    def ranges(self) -> Fetch:
        """The byte ranges to fetch."""
        chunks = (chunk for block in self.blocks for chunk in block.chunks.values())
        return plan_fetch(
            (ByteRange(chunk.begin, chunk.begin + chunk.size) for chunk in chunks), gap_bytes=self.place.store.gap_bytes
        )

    def read(self) -> pa.Table:
        """All rows of the blocks, in order, with the wanted columns of the table.

        Raises Replaced when the file was replaced, Damaged when it does not decode.
        """
        fetched = self.fetch()
        store, key = self.place
        try:
            return self._decode(fetched)
        except UnderlayError as error:
            raise error.at(store.place_of(key)) from None

    def blocks_in_turn(self) -> Iterator[pa.Table]:
        """The rows of `read`, block by block: all fetched at once, each decoded in its turn."""
        fetch, buffer = self.fetch()
        store, key = self.place
        try:
            for block in self.blocks:
                yield self.decode_alike(fetch, buffer, (block,))
        except UnderlayError as error:
            raise error.at(store.place_of(key)) from None

    def read_between(self, spans: Sequence[tuple[int, int]]) -> tuple[pa.Table, list[tuple[int, int]]]:
        """The rows of each block that cover its span, and which of the block's rows they are.

        Rows beyond a span are decoded only where no page ends there.
        """
        fetch, buffer = self.fetch()
        store, key = self.place
        try:
            parts = [self._decode_between(fetch, buffer, *one) for one in zip(self.blocks, spans, strict=True)]
        except UnderlayError as error:
            raise error.at(store.place_of(key)) from None
        return pa.concat_tables([rows for rows, _ in parts]), [span for _, span in parts]

    def _decode_between(
        self, fetch: Fetch, buffer: pa.Buffer, block: BlockChunks, span: tuple[int, int]
    ) -> tuple[pa.Table, tuple[int, int]]:
        moved = _moved(block, fetch, 0).chunks
        lists = frozenset(leaf for leaf in moved if self.shape.file.schema.leaves[leaf].max_rep_level)
        cut = cut_pages(buffer, moved, block.row_count, span, lists)
        if cut is None:
            return self.decode_alike(fetch, buffer, (block,)), (0, block.row_count)
        some = BlockChunks(row_count=cut.end - cut.first, chunks=dict(cut.chunks), null_leaves=block.null_leaves)
        whole = Fetch((ByteRange(0, len(cut.data)),))
        return self.decode_alike(whole, pa.py_buffer(cut.data), (some,)), (cut.first, cut.end)

    def fetch(self) -> tuple[Fetch, pa.Buffer]:
        """The bytes of all chunks. Raises Replaced when the file was replaced."""
        store, key = self.place
        try:
            return self._fetch()
        except UnderlayError as error:
            raise error.at(store.place_of(key)) from None

    def _fetch(self) -> tuple[Fetch, pa.Buffer]:
        store, key = self.place
        fetch = self.ranges
        if not fetch.ranges:
            return fetch, pa.py_buffer(b"")
        views = get_same_ranges(store, key, fetch.ranges, self.known, gap_bytes=0)
        return fetch, pa.py_buffer(views[0] if len(views) == 1 else b"".join(views))

    def _decode(self, fetched: tuple[Fetch, pa.Buffer]) -> pa.Table:
        fetch, buffer = fetched
        parts = [self.decode_alike(fetch, buffer, alike) for alike in _by_null_leaves(self.blocks)]
        return parts[0] if len(parts) == 1 else pa.concat_tables(parts)

    def decode_alike(self, fetch: Fetch, buffer: pa.Buffer, blocks: Sequence[BlockChunks]) -> pa.Table:
        """Rows of blocks that lack the same leaves."""
        null_leaves = blocks[0].null_leaves
        row_count = sum(block.row_count for block in blocks)
        leaves = tuple(sorted(blocks[0].chunks))
        null_columns = {
            column.field.id for column in self.shape.columns if column.leaves and null_leaves.issuperset(column.leaves)
        }
        decoded = self._decode_leaves(leaves, blocks, fetch, buffer) if leaves else pa.table({})
        return self.shape.adapt(decoded, row_count, null_columns, constants_by_field(self.constants))

    def _decode_leaves(
        self, leaves: tuple[int, ...], blocks: Sequence[BlockChunks], fetch: Fetch, buffer: pa.Buffer
    ) -> pa.Table:
        decoded = _decode_chunks(self.shape, leaves, blocks, fetch, buffer)
        int96_leaves = tuple(sorted(self.shape.int96_leaves.intersection(leaves)))
        if not int96_leaves:
            return decoded
        return self.shape.exact(
            decoded, _decode_chunks(self.shape, int96_leaves, blocks, fetch, buffer, int96_unit="ms")
        )


def read_together(reads: Sequence[FileRead]) -> pa.Table:
    """All rows of small files of one shape, in order, decoded as the blocks of one file: opening a Parquet file costs
    more than decoding few rows of it. The files have no constants, and lack the same leaves.

    A remote store is asked for all files at once.
    Raises what `FileRead.read` raises, of the first file that is wrong.
    """
    if len(reads) == 1:
        return reads[0].read()
    buffers: list[pa.Buffer] = []
    blocks: list[BlockChunks] = []
    begin = 0
    is_remote = any(read.place.store.is_remote for read in reads)
    fetched = READS.each(FileRead.fetch, reads) if is_remote else map(FileRead.fetch, reads)
    for read, (fetch, buffer) in zip(reads, fetched, strict=True):
        blocks += [_moved(block, fetch, begin) for block in read.blocks]
        buffers.append(buffer)
        begin += buffer.size
    try:
        whole = reads[0].decode_alike(Fetch((ByteRange(0, begin),)), pa.py_buffer(b"".join(buffers)), blocks)
    except UnderlayError:
        return pa.concat_tables([read.read() for read in reads])  # its errors name the file
    return whole.combine_chunks() if whole.num_columns else whole


def _moved(block: BlockChunks, fetch: Fetch, begin: int) -> BlockChunks:
    """The block with its chunks' positions in a buffer in which the fetched bytes begin at `begin`."""
    positions = fetch.positions([chunk.begin for chunk in block.chunks.values()])
    chunks = {
        leaf: Chunk(begin + at, chunk.size, chunk.codec, chunk.value_count)
        for (leaf, chunk), at in zip(block.chunks.items(), positions, strict=True)
    }
    return BlockChunks(row_count=block.row_count, chunks=chunks, null_leaves=block.null_leaves)


def _decode_chunks(
    shape: FileShape,
    leaves: tuple[int, ...],
    blocks: Sequence[BlockChunks],
    fetch: Fetch,
    buffer: pa.Buffer,
    *,
    int96_unit: Int96Unit = "ns",
) -> pa.Table:
    chunks = [block.chunks[leaf] for block in blocks for leaf in leaves]
    moved = [
        Chunk(begin, chunk.size, chunk.codec, chunk.value_count)
        for chunk, begin in zip(chunks, fetch.positions([chunk.begin for chunk in chunks]), strict=True)
    ]
    rows = [moved[first : first + len(leaves)] for first in range(0, len(moved), len(leaves))]
    footer = shape.select(leaves).footer([block.row_count for block in blocks], rows)
    try:
        with _open(buffer, seal(footer), int96_unit) as file:
            return _read_blocks(file, [block.row_count for block in blocks])
    except pa.ArrowNotImplementedError as error:
        raise Unsupported(f"Arrow cannot read it: {error}") from error
    except (pa.ArrowException, OSError) as error:
        raise Damaged(f"does not decode: {error}") from error


def _open(chunks: pa.Buffer, footer: bytes, int96_unit: Int96Unit) -> pq.ParquetFile:
    """The chunks as a Parquet file with this footer: copied in front of it when small, which Arrow opens faster."""
    if chunks.size <= _SMALL_BYTES:
        whole = pa.BufferReader(b"".join((memoryview(chunks), footer)))
        return pq.ParquetFile(whole, page_checksum_verification=True, coerce_int96_timestamp_unit=int96_unit)
    metadata = pq.read_metadata(pa.BufferReader(MAGIC + footer))
    return pq.ParquetFile(
        pa.BufferReader(chunks),
        metadata=metadata,
        page_checksum_verification=True,
        coerce_int96_timestamp_unit=int96_unit,
    )


def _read_blocks(file: pq.ParquetFile, row_counts: Sequence[int]) -> pa.Table:
    """All blocks, each by itself: no checksum covers a page's header, and one that claims too many values would
    continue into the next block of its column and misalign the rows."""
    parts = [file.read_row_group(number, use_threads=False) for number in range(len(row_counts))]
    for part, row_count in zip(parts, row_counts, strict=True):
        if part.num_rows != row_count:
            raise Damaged("a block has the wrong number of rows", expected=row_count, found=part.num_rows)
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts)


def _by_null_leaves(blocks: Sequence[BlockChunks]) -> Iterator[Sequence[BlockChunks]]:
    """Neighbouring blocks that lack the same leaves, together."""
    begin = 0
    for number in range(1, len(blocks) + 1):
        if number == len(blocks) or blocks[number].null_leaves != blocks[begin].null_leaves:
            yield blocks[begin:number]
            begin = number
