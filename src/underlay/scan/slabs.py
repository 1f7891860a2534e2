"""Cuts a plan into pieces of work: which chunks to read together, and which of their rows to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from typing import NamedTuple, cast

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.cache.objects import DecodedCache
from underlay.cache.same_file import KnownFile
from underlay.index.deletion_vectors import unpack
from underlay.parquet.footer.minimal import Chunk
from underlay.plan.chunks import chunk_table
from underlay.plan.plan import BlockPlan, PlannedFile
from underlay.scan.read.file_read import BlockChunks, FileRead, read_together
from underlay.scan.read.file_shape import FileShape
from underlay.scan.read.file_stores import ObjectPlace
from underlay.scan.read.footer_places import FooterPlaces, is_cheaper_by_footers
from underlay.scan.read.pipeline import Task
from underlay.values.no_rows import no_rows

SLAB_BYTES = 32 << 20
"""Bytes of chunks that are read together, unless one block has more."""

SMALL_BYTES = 64 << 10
"""Slabs of at most this many bytes are read together with their neighbours,"""
TOGETHER_BYTES = 1 << 20
"""up to this many bytes at a time,"""
MOST_TOGETHER = 64
"""and at most this many slabs."""

MOST_CUT = 256
"""The chunks of so many blocks are cut from a segment's arrays at once."""
SPREAD = 6
"""How much more memory decoded rows take than their chunks, about."""
REQUEST_WEIGHT = 1 << 20
"""A request to a remote store weighs at least as much as this many bytes: a scan whose caller stops early has not asked
for thousands of small files."""

UNCOPIED_ROWS = 1024
"""With this many rows on average between two deleted ones, rows are not copied."""

RowFilter = Callable[[pa.Table], NDArray[np.bool_]]
"""Which rows of a table match."""


class SlabFiles(NamedTuple):
    """What else reading a slab takes: a layout's shape by its id, and where a file lies."""

    shape_of: Callable[[str], FileShape]
    locate: Callable[[str], ObjectPlace]


class Slab(msgspec.Struct, frozen=True, array_like=True):
    """Some blocks of one file, and which of their rows to keep. Can be sent to another process.

    `location` is the index's name for the file, `size_bytes` its whole size, and `layout` the id of its layout.
    """

    location: str
    size_bytes: int
    etag: str | None
    footer_bytes: int
    footer_crc: int
    layout: str
    blocks: tuple[BlockChunks, ...]
    first_rows: tuple[int, ...]
    must: tuple[bool, ...]
    deletes: bytes | None
    constants: bytes | None = None

    @property
    def fetch_bytes(self) -> int:
        """Bytes of its chunks."""
        return sum(block.size_bytes for block in self.blocks)

    @property
    def row_counts(self) -> list[int]:
        """Rows of each block."""
        return [block.row_count for block in self.blocks]

    def cut(self, most_bytes: int) -> Iterator[Slab]:
        """The same blocks in runs of at most `most_bytes`, or of one block."""
        for begin, end in block_runs(self.blocks, most_bytes):
            yield msgspec.structs.replace(
                self, blocks=self.blocks[begin:end], first_rows=self.first_rows[begin:end], must=self.must[begin:end]
            )

    def open(self, files: SlabFiles) -> FileRead:
        """The blocks, ready to be fetched."""
        return FileRead(
            place=files.locate(self.location),
            known=KnownFile(self.size_bytes, self.etag, self.footer_bytes, self.footer_crc),
            shape=files.shape_of(self.layout),
            blocks=self.blocks,
            constants=self.constants,
        )

    def rows(self, files: SlabFiles, matches: RowFilter | None) -> pa.Table:
        """The undeleted rows that match. Blocks that must match are not filtered."""
        return rows_together((self,), files, matches)

    def small_kind(self, size_bytes: int) -> tuple[str, frozenset[int]] | None:
        """What slabs must have in common to be read together. None for a large slab, which is read alone."""
        null_leaves = self.blocks[0].null_leaves
        if (
            size_bytes > SMALL_BYTES
            or self.constants is not None
            or any(block.null_leaves != null_leaves for block in self.blocks)
        ):
            return None
        return self.layout, null_leaves

    def deleted_rows(self) -> NDArray[np.int64]:
        """The rows of its blocks that are deleted, ascending; numbers count from its first row."""
        if self.deletes is None:
            return np.zeros(0, np.int64)
        positions, found, begin = unpack(self.deletes), [], 0
        for first, count in zip(self.first_rows, self.row_counts, strict=True):
            low, high = np.searchsorted(positions, (first, first + count))
            found.append(positions[low:high] + (begin - first))
            begin += count
        return np.concatenate(found)


def without_rows(table: pa.Table, deleted: NDArray[np.int64]) -> pa.Table:
    """The table without these rows. If they are few, the rows between them are not copied."""
    if not len(deleted):
        return table
    if len(deleted) * UNCOPIED_ROWS > table.num_rows:
        keep = np.ones(table.num_rows, np.bool_)
        keep[deleted] = False
        return keep_rows(table, keep)
    begins = np.concatenate([[0], deleted + 1])
    counts = np.concatenate([deleted, [table.num_rows]]) - begins
    runs = zip(begins[counts > 0].tolist(), counts[counts > 0].tolist(), strict=True)
    return pa.concat_tables([no_rows(table.schema), *(table.slice(begin, count) for begin, count in runs)])


def rows_together(slabs: Sequence[Slab], files: SlabFiles, matches: RowFilter | None) -> pa.Table:
    """The undeleted rows of these slabs that match, in order. Blocks that must match are not filtered."""
    table = read_together([slab.open(files) for slab in slabs])
    deleted = _deleted_in(slabs)
    must = [is_sure for slab in slabs for is_sure in slab.must]
    if matches is None or all(must):
        return without_rows(table, deleted)
    keep = matches(table)
    if any(must):
        keep = keep | np.repeat(must, [count for slab in slabs for count in slab.row_counts])
    if len(deleted):
        keep = keep.copy()
        keep[deleted] = False
    return table if keep.all() else keep_rows(table, keep)


def _deleted_in(slabs: Sequence[Slab]) -> NDArray[np.int64]:
    """The deleted rows of slabs, numbered through all their rows."""
    if len(slabs) == 1:
        return slabs[0].deleted_rows()
    found, begin = [], 0
    for slab in slabs:
        if slab.deletes is not None:
            found.append(slab.deleted_rows() + begin)
        begin += sum(slab.row_counts)
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def small_together(slabs: Iterable[Slab]) -> Iterator[tuple[Slab, ...]]:
    """The slabs in order, with neighbouring small ones of one kind grouped."""
    held: list[Slab] = []
    held_kind: tuple[str, frozenset[int]] | None = None
    held_bytes = 0
    for slab in slabs:
        size_bytes = slab.fetch_bytes
        kind = slab.small_kind(size_bytes)
        is_full = len(held) >= MOST_TOGETHER or held_bytes + size_bytes > TOGETHER_BYTES
        if held and (kind is None or kind != held_kind or is_full):
            yield tuple(held)
            held, held_bytes = [], 0
        held.append(slab)
        held_kind, held_bytes = kind, held_bytes + size_bytes
    if held:
        yield tuple(held)


def reading_tasks(
    slabs: Iterable[Slab], read: Callable[[tuple[Slab, ...]], pa.Table], *, is_remote: bool
) -> Iterator[Task[pa.Table]]:
    """Tasks that read the slabs in order, small ones together."""
    least = REQUEST_WEIGHT if is_remote else 0
    for together in small_together(slabs):
        yield Task(sum(max(slab.fetch_bytes * SPREAD, least) for slab in together), partial(read, together))


def keep_rows(table: pa.Table, keep: NDArray[np.bool_]) -> pa.Table:
    """The rows where `keep` is true. Its bits are packed here: `pa.array` would load numpy's masked arrays first."""
    bits = pa.py_buffer(np.packbits(keep, bitorder="little").tobytes())
    mask = cast("pa.BooleanArray", pa.Array.from_buffers(pa.bool_(), len(keep), [None, bits]))
    return table.filter(mask)


def slabs_of(
    plan: BlockPlan, files: SlabFiles, cache: DecodedCache | None = None, *, is_remote: bool = False
) -> Iterator[Slab]:
    """The slabs of a plan, in its order.

    Fetches the places of the plan's columns in its files: one batch of requests for each segment, or, with a cache and
    a store that `is_remote`, the footers if a large segment has few of the files; nothing is fetched twice.
    """
    footers = _prefetch(plan, files.locate, cache, is_remote=is_remote)
    for file, blocks in _files_with_blocks(plan, files, footers):
        for begin, end in block_runs(blocks, SLAB_BYTES):
            yield Slab(
                location=file.location,
                size_bytes=file.size_bytes,
                etag=file.etag,
                footer_bytes=file.footer_bytes,
                footer_crc=file.footer_crc,
                layout=file.layout,
                blocks=tuple(blocks[begin:end]),
                first_rows=tuple(file.first_rows[begin:end].tolist()),
                must=tuple(file.must[begin:end].tolist()),
                deletes=file.deletes,
                constants=file.constants,
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


def block_runs(blocks: Sequence[BlockChunks], most_bytes: int) -> Iterator[tuple[int, int]]:
    """Runs of neighbouring blocks with at most `most_bytes` of chunks, or with one block."""
    begin, held = 0, 0
    for number, block in enumerate(blocks):
        if number > begin and held + block.size_bytes > most_bytes:
            yield begin, number
            begin, held = number, 0
        held += block.size_bytes
    yield begin, len(blocks)


def _files_with_blocks(
    plan: BlockPlan, files: SlabFiles, footers: FooterPlaces | None
) -> Iterator[tuple[PlannedFile, list[BlockChunks]]]:
    """The plan's files in order, with the chunks of their blocks. Arrays are cut for many small files at once: a call
    of numpy takes as long for one block as for hundreds.
    """
    for (_, layout), alike in groupby(plan.files(), lambda file: (file.part, file.layout)):
        shape = files.shape_of(layout)
        for some in _some_blocks(alike):
            by_footer = [None if footers is None else footers.blocks(file, shape) for file in some]
            others = [file for file, known in zip(some, by_footer, strict=True) if known is None]
            cut = _blocks(plan, others, shape) if others else iter(())
            for file, known in zip(some, by_footer, strict=True):
                yield file, list(islice(cut, len(file.blocks)) if known is None else known)


def _some_blocks(files: Iterable[PlannedFile]) -> Iterator[list[PlannedFile]]:
    """Some files at a time, which have MOST_CUT blocks together, or each more."""
    held: list[PlannedFile] = []
    count = 0
    for file in files:
        if held and count + len(file.blocks) > MOST_CUT:
            yield held
            held, count = [], 0
        held.append(file)
        count += len(file.blocks)
    if held:
        yield held


def _blocks(plan: BlockPlan, files: Sequence[PlannedFile], shape: FileShape) -> Iterator[BlockChunks]:
    """The chunks of each block of files of one part, from the segment's arrays."""
    leaves = [leaf for column in shape.columns for leaf in column.leaves]
    segment = plan.choices[files[0].part].part.segment
    blocks = np.concatenate([file.blocks + segment.block_begin[file.row] for file in files])
    places = chunk_table(segment, plan.schema, blocks, [shape.layout.fields[leaf] for leaf in leaves])
    rows = np.concatenate([file.block_rows for file in files])
    counts = np.where(places.value_counts < 0, rows[:, None], places.value_counts)
    columns = (places.is_fetched, places.begins, places.sizes, places.codecs, counts)
    for row_count, *block in zip(rows.tolist(), *(values.tolist() for values in columns), strict=True):
        chunks: dict[int, Chunk] = {}
        nulls = []
        for leaf, is_fetched, begin, size, codec, count in zip(leaves, *block, strict=True):
            if is_fetched:
                chunks[leaf] = Chunk(begin=begin, size=size, codec=codec, value_count=count)
            else:
                nulls.append(leaf)
        yield BlockChunks(row_count=row_count, chunks=chunks, null_leaves=frozenset(nulls))
