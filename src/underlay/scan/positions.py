"""Finds the positions of a query's rows in the table's files, for deleting them, with columns of those rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.index.entry import FileEntry
from underlay.index.segment.segment import Segment
from underlay.plan.part import Part
from underlay.plan.plan import make_plan
from underlay.prune import Predicate
from underlay.scan.query import Query, row_filter_of
from underlay.scan.read.pipeline import Task, default_workers, run_in_order
from underlay.scan.slabs import SPREAD, RowFilter, Slab, keep_rows
from underlay.schema.table_schema import TableSchema

Positions = NDArray[np.int64]
_POSITION = "underlay position\x1f"
"""No column of a table has this name: names hold no control characters."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedRows:
    """The matching, undeleted rows of some blocks of a file, ascending, with the query's columns.

    `block_count` and `fetch_bytes` say what was read to find them: nothing of blocks whose rows all match, unless the
    query has columns.
    """

    location: str
    positions: Positions
    rows: pa.Table
    block_count: int
    fetch_bytes: int


def row_positions(query: Query) -> Iterator[tuple[str, Positions]]:
    """The location of a file, and the positions in it of rows that match and are not deleted; a file may come
    repeatedly.

    Reads the conditions' columns of the blocks that may match; nothing of blocks whose rows all do.
    """
    for found in matched_rows(replace(query, columns=())):
        if len(found.positions):
            yield found.location, found.positions


def matched_rows(query: Query, slabs: Iterable[Slab] | None = None) -> Iterator[MatchedRows]:
    """The rows that match, with their positions, some blocks at a time and in the table's order; a file may come
    repeatedly, and blocks without matches come too. Only of these slabs of the query, if given."""
    return run_slabs(query, partial(_matching, query, row_filter_of(query.predicate)), slabs)


def run_slabs(query: Query, work: Callable[[Slab], _T], slabs: Iterable[Slab] | None = None) -> Iterator[_T]:
    """The results of `work` for the query's slabs, or for these, in order: with the threads and memory of a scan."""
    chosen = query.slabs() if slabs is None else slabs
    tasks = (Task(slab.fetch_bytes * SPREAD, partial(work, slab)) for slab in chosen)
    workers = query.workers or default_workers(query.snapshot.store)
    return run_in_order(tasks, workers=workers, budget_bytes=query.budget_bytes)


def live_positions(slab: Slab) -> tuple[Positions, NDArray[np.bool_]]:
    """The positions of all rows of a slab, and which of them are not deleted."""
    runs = zip(slab.first_rows, slab.row_counts, strict=True)
    positions = np.concatenate([np.arange(first, first + count, dtype=np.int64) for first, count in runs])
    keep = np.ones(len(positions), dtype=np.bool_)
    keep[slab.deleted_rows()] = False
    return positions, keep


def file_may_match(schema: TableSchema, predicate: Predicate) -> Callable[[FileEntry], bool]:
    """Whether a new file may hold a row that matches, judging by its entry."""

    def may_match(file: FileEntry) -> bool:
        part = Part(segment=Segment.of_entries([file], schema))
        return bool(make_plan([part], schema, predicate).kept.blocks)

    return may_match


def _matching(query: Query, row_filter: RowFilter | None, slab: Slab) -> MatchedRows:
    positions, keep = live_positions(slab)
    is_filtered = row_filter is not None and not all(slab.must)
    is_read = is_filtered or query.rest is not None or bool(query.columns)
    rows = slab.open(query.files).read() if is_read else pa.table({})
    if row_filter is not None and is_filtered:
        keep &= row_filter(rows) | np.repeat(slab.must, slab.row_counts)
    if query.rest is None:
        positions = positions[keep]
        rows = keep_rows(rows.select(query.columns), keep) if query.columns else rows
    else:
        left = query.apply_rest(keep_rows(rows.append_column(_POSITION, pa.array(positions)), keep))
        positions, rows = left.column(_POSITION).to_numpy(), left.select(query.columns)
    return MatchedRows(
        location=slab.location,
        positions=positions,
        rows=rows,
        block_count=len(slab.blocks) if is_read else 0,
        fetch_bytes=slab.fetch_bytes if is_read else 0,
    )
