"""The chunks that a plan reads, and the byte ranges that they lie in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from underlay.index.entry import Flag
from underlay.index.segment.bounds import has_flag
from underlay.index.segment.segment import Segment
from underlay.plan.part import BoolArray, Numbers
from underlay.plan.plan import BlockPlan, PlannedFile
from underlay.schema.table_schema import TableSchema
from underlay.values.ranges import ByteRange, coalesce


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkTable:
    """Chunks of some blocks (rows) and leaves (columns).

    `columns` holds each leaf's position in the schema of each row's file, -1 where it has none; `value_counts` is -1
    where values are rows. `is_fetched` is false for absent chunks, for constants, and for those of top-level
    columns that are known to be all null: in a struct only the chunk itself tells a null struct from a null field.
    """

    begins: Numbers
    sizes: Numbers
    codecs: NDArray[np.uint8]
    value_counts: Numbers
    null_counts: Numbers
    flags: NDArray[np.uint8]
    columns: NDArray[np.int32]
    is_fetched: BoolArray


def chunk_places(plan: BlockPlan, file: PlannedFile, leaves: Sequence[int]) -> ChunkTable:
    """The chunks of a planned file's blocks."""
    segment = plan.choices[file.part].part.segment
    return chunk_table(segment, plan.schema, file.blocks + segment.block_begin[file.row], leaves)


def chunk_table(segment: Segment, schema: TableSchema, blocks: Numbers, leaves: Sequence[int]) -> ChunkTable:
    """The chunks of these blocks of a segment. A leaf that no file has is absent everywhere."""
    shape = (len(blocks), len(leaves))
    found = ChunkTable(
        begins=np.zeros(shape, dtype=np.int64),
        sizes=np.zeros(shape, dtype=np.int64),
        codecs=np.zeros(shape, dtype=np.uint8),
        value_counts=np.full(shape, -1, dtype=np.int64),
        null_counts=np.zeros(shape, dtype=np.int64),
        flags=np.full(shape, Flag.IS_ABSENT, dtype=np.uint8),
        columns=np.full(shape, -1, dtype=np.int32),
        is_fetched=np.zeros(shape, dtype=np.bool_),
    )
    owners = segment.file_of_block[blocks]
    may_be_null = np.zeros(len(leaves), dtype=np.bool_)
    for at, field in enumerate(leaves):
        places, statistics = segment.places(field), segment.statistics(field)
        if places is None or statistics is None:
            continue
        found.begins[:, at], found.sizes[:, at] = places.begins[blocks], places.sizes[blocks]
        found.codecs[:, at], found.flags[:, at] = places.codecs[blocks], statistics.flags[blocks]
        found.null_counts[:, at] = statistics.null_counts[blocks]
        if places.value_counts is not None:
            found.value_counts[:, at] = places.value_counts[blocks]
        found.columns[:, at] = segment.columns_of(field)[owners]
        leaf = schema.leaf_by_id[field]
        may_be_null[at] = len(leaf.path) == 1 and not leaf.is_repeated
    is_null = may_be_null & _is_all_null(found.flags, found.null_counts, segment.block_rows[blocks][:, None])
    np.copyto(found.is_fetched, ~(has_flag(found.flags, Flag.IS_ABSENT) | is_null) & (found.columns >= 0))
    return found


def _is_all_null(flags: NDArray[np.uint8], null_counts: Numbers, rows: Numbers) -> BoolArray:
    """Where a chunk is known to have no value, and no bound contradicts that."""
    found: BoolArray = has_flag(flags, Flag.HAS_NULL_COUNT) & (null_counts == rows)
    return found & ~has_flag(flags, Flag.HAS_LOW | Flag.HAS_HIGH)


def ranges_of(plan: BlockPlan, file: PlannedFile, *, gap_bytes: int = 0) -> list[ByteRange]:
    """The byte ranges of the plan's columns in a file, joined where at most `gap_bytes` lie between."""
    chunks = chunk_places(plan, file, plan.columns)
    begins, sizes = chunks.begins[chunks.is_fetched], chunks.sizes[chunks.is_fetched]
    pairs = zip(begins.tolist(), (begins + sizes).tolist(), strict=True)
    return coalesce((ByteRange(begin, end) for begin, end in pairs), gap_bytes=gap_bytes)


def all_ranges(plan: BlockPlan, *, gap_bytes: int = 0) -> Iterator[tuple[PlannedFile, list[ByteRange]]]:
    """The ranges of each file of the plan."""
    for file in plan.files():
        yield file, ranges_of(plan, file, gap_bytes=gap_bytes)


def fetch_bytes(plan: BlockPlan) -> int:
    """The bytes of all chunks that the plan reads."""
    total = 0
    for choice in plan.choices:
        if len(choice.blocks):
            total += chunk_bytes(plan, choice.part.segment, choice.blocks)
    return total


def chunk_bytes(plan: BlockPlan, segment: Segment, blocks: Numbers) -> int:
    """The bytes of the plan's columns in these blocks of a segment. What the segment lacks is fetched in one batch."""
    segment.prefetch(statistics=plan.columns, places=plan.columns)
    chunks = chunk_table(segment, plan.schema, blocks, plan.columns)
    return int(chunks.sizes[chunks.is_fetched].sum())


def block_identities(plan: BlockPlan) -> list[str]:
    """The name of each kept block in caches and schedules: its file and its first row.

    A file is its location with its etag, or, for one of ours, its footer's checksum.
    """
    found: list[str] = []
    for file in plan.files():
        name = f"{file.location}@{file.etag if file.etag is not None else f'{file.footer_crc:08x}'}"
        found += [f"{name}#{first}" for first in file.first_rows.tolist()]
    return found
