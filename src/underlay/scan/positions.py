"""Where the rows of a query lie: their positions in the table's files, for deleting them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.index.deletion_vectors import unpack
from underlay.index.entry import FileEntry
from underlay.index.segment.segment import Segment
from underlay.plan.part import Part
from underlay.plan.plan import make_plan
from underlay.prune import Predicate
from underlay.scan.query import SPREAD, Query, row_filter_of
from underlay.scan.read.pipeline import Task, default_workers, run_in_order
from underlay.scan.slabs import RowFilter, Slab, keep_rows
from underlay.schema.table_schema import TableSchema

Positions = NDArray[np.int64]
_POSITION = "underlay position"


def row_positions(query: Query) -> Iterator[tuple[str, Positions]]:
    """The location of a file, and the positions in it of rows that match and are not deleted; a file may come again.

    Reads the conditions' columns of the blocks that may match; nothing of blocks of which every row does.
    """
    row_filter = row_filter_of(query.predicate)
    tasks = (Task(slab.fetch_bytes * SPREAD, partial(_matching, slab, query, row_filter)) for slab in query.slabs())
    workers = query.workers or default_workers(query.snapshot.store)
    for location, positions in run_in_order(tasks, workers=workers, budget_bytes=query.budget_bytes):
        if len(positions):
            yield location, positions


def file_may_match(schema: TableSchema, predicate: Predicate) -> Callable[[FileEntry], bool]:
    """Whether a new file may hold a row that matches, by what its entry says."""

    def may_match(file: FileEntry) -> bool:
        part = Part(segment=Segment.of_entries([file], schema))
        return bool(make_plan([part], schema, predicate).kept.blocks)

    return may_match


def _matching(slab: Slab, query: Query, row_filter: RowFilter | None) -> tuple[str, Positions]:
    counts = slab.row_counts
    runs = zip(slab.first_rows, counts, strict=True)
    positions = np.concatenate([np.arange(first, first + count, dtype=np.int64) for first, count in runs])
    keep = np.ones(len(positions), dtype=np.bool_)
    if slab.deletes is not None:
        keep = ~np.isin(positions, unpack(slab.deletes))
    is_filtered = row_filter is not None and not all(slab.must)
    if not is_filtered and query.rest is None:
        return slab.location, positions[keep]
    rows = slab.open(query.files).read()
    if row_filter is not None and is_filtered:
        keep &= row_filter(rows) | np.repeat(slab.must, counts)
    if query.rest is None:
        return slab.location, positions[keep]
    left = query.apply_rest(keep_rows(rows.append_column(_POSITION, pa.array(positions)), keep))
    return slab.location, left.column(_POSITION).to_numpy()
