"""Chooses the blocks of one part: by partition, by file, by block, by deletion; and counts what each step dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from underlay.index.deletion_vectors import counts_in_blocks
from underlay.index.partition_specs import Specs
from underlay.plan.by_partition import kept_by_partition
from underlay.plan.leaf_bounds import block_bounds, file_bounds
from underlay.plan.part import BoolArray, Numbers, Part, distinct
from underlay.prune import ColumnPath, Predicate, Verdict, evaluate
from underlay.schema.table_schema import LeafColumn, TableSchema

_FEW_BLOCKS = 1024
"""Up to this many blocks are judged directly; above it, files that match in full are found first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChoice:
    """One part's kept blocks, ascending, and the verdicts that led to them.

    `blocks` are numbers in the segment; `must` marks those whose rows all match, `deleted` counts deleted rows.
    `judged` are the blocks that `by_block` covers, `gone` those whose rows are all deleted, `by_bloom` those that a
    refinement dropped, with the number of the equality that did.
    """

    part: Part
    by_partition: BoolArray | None
    by_file: Verdict
    judged: Numbers
    by_block: Verdict | None
    gone: Numbers
    blocks: Numbers
    must: BoolArray
    deleted: Numbers
    by_bloom: tuple[tuple[str, Numbers], ...] = ()

    @property
    def files(self) -> Numbers:
        """The file of each kept block."""
        return self.part.segment.file_of_block[self.blocks]


def choose(
    part: Part,
    schema: TableSchema,
    specs: Specs,
    predicate: Predicate,
    columns: dict[ColumnPath, LeafColumn | None],
) -> PartChoice:
    """The blocks of a part that may hold a matching row."""
    segment = part.segment
    known = {path: file_bounds(segment, leaf) for path, leaf in columns.items()}
    by_file = evaluate(predicate, known, block_count=segment.file_count, row_count=segment.file_rows)
    by_partition = kept_by_partition(segment, specs, schema, predicate, columns) if any(specs.values()) else None
    is_kept = by_file.kept
    if part.is_removed is not None:
        is_kept &= ~part.is_removed
    if by_partition is not None:
        is_kept &= by_partition
    blocks, must, judged, by_block = _judge_blocks(part, predicate, columns, np.flatnonzero(is_kept), by_file)
    deleted = _deleted(part, blocks)
    is_left = deleted < segment.block_rows[blocks]
    return PartChoice(
        part=part,
        by_partition=by_partition,
        by_file=by_file,
        judged=judged,
        by_block=by_block,
        gone=blocks[~is_left],
        blocks=blocks[is_left],
        must=must[is_left],
        deleted=deleted[is_left],
    )


def _judge_blocks(
    part: Part,
    predicate: Predicate,
    columns: Mapping[ColumnPath, LeafColumn | None],
    files: NDArray[np.intp],
    by_file: Verdict,
) -> tuple[Numbers, BoolArray, Numbers, Verdict | None]:
    """Kept blocks of these files with `must`, and the verdict on those that were judged one by one."""
    segment = part.segment
    counts = segment.files.block_counts[files]
    total = int(counts.sum())
    is_sure = by_file.must[files] if total > _FEW_BLOCKS or not columns else np.zeros(len(files), dtype=np.bool_)
    judged = blocks_of(segment.block_begin, files[~is_sure])
    known = {path: block_bounds(segment, leaf, judged) for path, leaf in columns.items()}
    verdict = evaluate(predicate, known, block_count=len(judged), row_count=segment.block_rows[judged])
    kept = verdict.kept
    found, must = judged[kept], verdict.must[kept]
    if is_sure.any():
        sure = blocks_of(segment.block_begin, files[is_sure])
        sure = sure[segment.block_rows[sure] > 0]
        order = np.argsort(np.concatenate([found, sure]), kind="stable")
        must = np.concatenate([must, np.ones(len(sure), dtype=np.bool_)])[order]
        found = np.concatenate([found, sure])[order]
    return found, must, judged, verdict


def blocks_of(block_begin: Numbers, files: NDArray[np.integer]) -> Numbers:
    """The blocks of these files, in their order."""
    begins = block_begin[files]
    counts = block_begin[files + 1] - begins
    skipped = np.cumsum(counts) - counts
    found: Numbers = np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(begins - skipped, counts)
    return found


def _deleted(part: Part, blocks: Numbers) -> Numbers:
    """How many rows of each block are deleted."""
    segment = part.segment
    found = np.zeros(len(blocks), dtype=np.int64)
    if not part.deletes and not segment.remember("has_deletes", lambda: (bool(segment.files.deleted_rows.any()),))[0]:
        return found
    owners = segment.file_of_block[blocks]
    files = distinct(owners)
    for row in files[part.may_have_deletes(files)].tolist():
        data = part.deletes_of(row)
        if data is not None:
            begin, end = segment.block_begin[row], segment.block_begin[row + 1]
            mine = owners == row
            found[mine] = counts_in_blocks(data, segment.first_rows[begin:end])[blocks[mine] - begin]
    return found
