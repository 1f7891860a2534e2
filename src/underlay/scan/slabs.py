"""A plan's files as pieces of work: which chunks to read together, and which of their rows to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.cache.objects import DecodedCache
from underlay.index.deletion_vectors import keep_mask
from underlay.parquet.footer.minimal import Chunk
from underlay.plan.chunks import chunk_places
from underlay.plan.plan import BlockPlan, PlannedFile
from underlay.scan.read.file_read import BlockChunks, FileRead
from underlay.scan.read.file_shape import FileShape
from underlay.scan.read.file_stores import ObjectPlace
from underlay.scan.read.footer_places import FooterPlaces, is_cheaper_by_footers

SLAB_BYTES = 32 << 20
"""Bytes of chunks that are read together, unless one block has more."""

RowFilter = Callable[[pa.Table], NDArray[np.bool_]]
"""Which rows of a table match."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlabRead:
    """Some blocks of one file, and what is kept of their rows."""

    location: str
    """How the index names the file."""
    read: FileRead
    first_rows: NDArray[np.int64]
    must: NDArray[np.bool_]
    deletes: bytes | None

    @property
    def size_bytes(self) -> int:
        """Bytes to fetch, about."""
        return sum(chunk.size for block in self.read.blocks for chunk in block.chunks.values())

    def rows(self, matches: RowFilter | None) -> pa.Table:
        """The rows that are there and match. Blocks that must match are not filtered."""
        table = self.read.read()
        keep = self._kept_by_deletes()
        if matches is not None and not self.must.all():
            is_match = matches(table)
            if self.must.any():
                is_match = is_match | np.repeat(self.must, [block.row_count for block in self.read.blocks])
            keep = is_match if keep is None else keep & is_match
        if keep is None or keep.all():
            return table
        return keep_rows(table, keep)

    def _kept_by_deletes(self) -> NDArray[np.bool_] | None:
        if self.deletes is None:
            return None
        masks = [
            keep_mask(self.deletes, first, first + block.row_count)
            for first, block in zip(self.first_rows.tolist(), self.read.blocks, strict=True)
        ]
        return np.concatenate(masks)


def keep_rows(table: pa.Table, keep: NDArray[np.bool_]) -> pa.Table:
    """The rows where `keep` is true. Its bits are packed here: `pa.array` would load numpy's masked arrays first."""
    bits = pa.py_buffer(np.packbits(keep, bitorder="little").tobytes())
    mask = cast("pa.BooleanArray", pa.Array.from_buffers(pa.bool_(), len(keep), [None, bits]))
    return table.filter(mask)


def slab_reads(
    plan: BlockPlan,
    shape_of: Callable[[str], FileShape],
    locate: Callable[[str], ObjectPlace],
    cache: DecodedCache | None = None,
    *,
    is_remote: bool = False,
) -> Iterator[SlabRead]:
    """The reads of a plan, in its order. `shape_of` knows a layout's shape by its id.

    Fetches where the plan's columns lie in its files: one batch of requests for each segment, or, with a cache and a
    store that `is_remote`, the footers of few files of a large one; nothing that was fetched before.
    """
    footers = _prefetch(plan, locate, cache, is_remote=is_remote)
    for file in plan.files():
        shape = shape_of(file.layout)
        by_footer = None if footers is None else footers.blocks(file, shape)
        blocks = list(_blocks(plan, file, shape) if by_footer is None else by_footer)
        for begin, end in _slabs(blocks):
            yield SlabRead(
                location=file.location,
                read=FileRead(
                    place=locate(file.location),
                    size_bytes=file.size_bytes,
                    etag=file.etag,
                    shape=shape,
                    blocks=tuple(blocks[begin:end]),
                ),
                first_rows=file.first_rows[begin:end],
                must=file.must[begin:end],
                deletes=file.deletes,
            )


def _prefetch(
    plan: BlockPlan, locate: Callable[[str], ObjectPlace], cache: DecodedCache | None, *, is_remote: bool
) -> FooterPlaces | None:
    by_footers = []
    for number, choice in enumerate(plan.choices):
        if not len(choice.blocks):
            continue
        if cache is not None and is_remote and is_cheaper_by_footers(choice, plan.columns):
            by_footers.append(number)
        else:
            choice.part.segment.prefetch(statistics=plan.columns, places=plan.columns)
    if cache is None or not by_footers:
        return None
    places = FooterPlaces(cache, locate)
    places.load(plan, by_footers)
    return places


def _slabs(blocks: Sequence[BlockChunks]) -> Iterator[tuple[int, int]]:
    begin, held = 0, 0
    for number, block in enumerate(blocks):
        size = sum(chunk.size for chunk in block.chunks.values())
        if number > begin and held + size > SLAB_BYTES:
            yield begin, number
            begin, held = number, 0
        held += size
    yield begin, len(blocks)


def _blocks(plan: BlockPlan, file: PlannedFile, shape: FileShape) -> Iterator[BlockChunks]:
    """The chunks of each block, from the segment's arrays."""
    leaves = [leaf for column in shape.columns for leaf in column.leaves]
    places = chunk_places(plan, file, [shape.layout.fields[leaf] for leaf in leaves])
    counts = np.where(places.value_counts < 0, file.block_rows[:, None], places.value_counts)
    columns = (places.is_fetched, places.begins, places.sizes, places.codecs, counts)
    for row_count, *block in zip(file.block_rows.tolist(), *(values.tolist() for values in columns), strict=True):
        chunks: dict[int, Chunk] = {}
        nulls = []
        for leaf, is_fetched, begin, size, codec, count in zip(leaves, *block, strict=True):
            if is_fetched:
                chunks[leaf] = Chunk(begin=begin, size=size, codec=codec, value_count=count)
            else:
                nulls.append(leaf)
        yield BlockChunks(row_count=row_count, chunks=chunks, null_leaves=frozenset(nulls))
