"""A plan's files as pieces of work: which chunks to read together, and which of their rows to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.index.deletes import keep_mask
from underlay.index.entry import Flag
from underlay.parquet.lean import Chunk
from underlay.plan.plan import Plan, PlannedFile
from underlay.scan.file_read import BlockChunks, FileRead
from underlay.scan.file_shape import FileShape
from underlay.scan.locate import Place
from underlay.schema.types import Field

SLAB_BYTES = 32 << 20
"""Bytes of chunks that are read together, unless one block has more."""

RowFilter = Callable[[pa.Table], NDArray[np.bool_]]
"""Which rows of a table match."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlabRead:
    """Some blocks of one file, and what is kept of their rows."""

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
            counts = [block.row_count for block in self.read.blocks]
            is_match = matches(table) | np.repeat(self.must, counts)
            keep = is_match if keep is None else keep & is_match
        if keep is None or keep.all():
            return table
        return table.filter(pa.array(keep))

    def _kept_by_deletes(self) -> NDArray[np.bool_] | None:
        if self.deletes is None:
            return None
        masks = [
            keep_mask(self.deletes, first, first + block.row_count)
            for first, block in zip(self.first_rows.tolist(), self.read.blocks, strict=True)
        ]
        return np.concatenate(masks)


def slab_reads(
    plan: Plan,
    wanted: Sequence[Field],
    shape_of: Callable[[str], FileShape],
    locate: Callable[[str], Place],
) -> Iterator[SlabRead]:
    """The reads of a plan, in its order. `shape_of` knows a layout's shape by its id."""
    null_free = {field.id for field in wanted if field.is_required}
    for file in plan.files():
        shape = shape_of(file.layout)
        blocks = list(_blocks(plan, file, shape, null_free))
        for begin, end in _slabs(blocks):
            yield SlabRead(
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


def _slabs(blocks: Sequence[BlockChunks]) -> Iterator[tuple[int, int]]:
    begin, held = 0, 0
    for number, block in enumerate(blocks):
        size = sum(chunk.size for chunk in block.chunks.values())
        if number > begin and held + size > SLAB_BYTES:
            yield begin, number
            begin, held = number, 0
        held += size
    yield begin, len(blocks)


def _blocks(plan: Plan, file: PlannedFile, shape: FileShape, null_free: set[int]) -> Iterator[BlockChunks]:
    """The chunks of each block, from the segment's arrays."""
    segment = plan.choices[file.part].part.segment
    numbers = segment.block_begin[file.row] + file.blocks
    chunks: list[dict[int, Chunk]] = [{} for _ in numbers]
    nulls: list[set[int]] = [set() for _ in numbers]
    for column in shape.columns:
        may_be_null = column.is_single_leaf and column.field.id not in null_free
        for leaf in column.leaves:
            field = shape.layout.fields[leaf]
            is_null = _all_null(plan, file, field, numbers) if may_be_null else np.zeros(len(numbers), np.bool_)
            places = segment.places(field)
            if places is None:
                raise AssertionError(f"a file has leaf {leaf} and its segment no places of field {field}")
            counts = file.block_rows if places.value_counts is None else places.value_counts[numbers]
            counts = np.where(counts < 0, file.block_rows, counts)
            columns = (places.begins[numbers], places.sizes[numbers], places.codecs[numbers], counts, is_null)
            for at, (begin, size, codec, count, is_nothing) in enumerate(
                zip(*(values.tolist() for values in columns), strict=True)
            ):
                if is_nothing:
                    nulls[at].add(leaf)
                else:
                    chunks[at][leaf] = Chunk(begin=begin, size=size, codec=codec, value_count=count)
    for row_count, of_block, null_leaves in zip(file.block_rows.tolist(), chunks, nulls, strict=True):
        yield BlockChunks(row_count=row_count, chunks=of_block, null_leaves=frozenset(null_leaves))


def _all_null(plan: Plan, file: PlannedFile, field: int, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    statistics = plan.choices[file.part].part.segment.statistics(field)
    if statistics is None:
        return np.zeros(len(numbers), np.bool_)
    is_known = (statistics.flags[numbers] & Flag.HAS_NULL_COUNT) != 0
    return np.asarray(is_known & (statistics.null_counts[numbers] == file.block_rows), dtype=np.bool_)
