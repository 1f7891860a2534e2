"""Adds files to a transaction: a few go into the root's tail, many become segments of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from underlay.index.entry import FileEntry, FileLayout
from underlay.index.root import Definition
from underlay.index.segment.arrays import I64
from underlay.index.segment.segment import Segment
from underlay.index.segment.subset import FileSubset
from underlay.index.segment.tiers import MAX_FILES
from underlay.index.segment.write import encode_segment
from underlay.plan.leaf_bounds import file_bounds
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.table.commit.flush_and_merge import TAIL_BYTES, bounded_fields
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.environment import uuid7

_FEW = 64


def add_files(transaction: Transaction, entries: Sequence[FileEntry], layouts: Iterable[FileLayout]) -> None:
    """Add the files."""
    if len(entries) <= _FEW and len(msgspec.json.encode(entries)) <= TAIL_BYTES:
        by_id = {layout.id: layout for layout in layouts}
        for entry in entries:
            transaction.add_file(entry, by_id.get(entry.layout))
    else:
        schema = from_record(transaction.base.definition.schema)
        _add_segments(transaction, Segment.of_entries(entries, schema), transaction.base.definition, layouts)


def add_segment_files(
    transaction: Transaction, files: Segment, layouts: Iterable[FileLayout], definition: Definition | None = None
) -> None:
    """Add all files of a segment; many of them need no entry each. `definition` is the table's new one, if it
    changes."""
    definition = definition or transaction.base.definition
    entries = files.entries() if files.file_count <= _FEW else []
    if entries and len(msgspec.json.encode(entries)) <= TAIL_BYTES:
        add_files(transaction, entries, layouts)
    elif files.file_count:
        _add_segments(transaction, files, definition, layouts)


def _add_segments(
    transaction: Transaction, files: Segment, definition: Definition, layouts: Iterable[FileLayout]
) -> None:
    """Segments are cut along the order of the first column whose range the root keeps."""
    schema, fields = from_record(definition.schema), bounded_fields(definition)
    rows = _in_order(files, schema, fields)
    parts = [files]
    if rows is not None:
        cuts = [rows[begin : begin + MAX_FILES] for begin in range(0, len(rows), MAX_FILES)]
        parts = [Segment(FileSubset(files, chosen), len(chosen)) for chosen in cuts]
    for part in parts:
        data, ref = encode_segment(part, segment_id=uuid7(), bounded_fields=fields)
        constants = part.files.constants
        transaction.add_segment(ref, data, layouts, has_constants=constants.null_count < len(constants))


def _in_order(files: Segment, schema: TableSchema, fields: Sequence[int]) -> I64 | None:
    """The files ordered by their least value of the first of these columns, those without one first; None to keep the
    order."""
    if files.file_count <= MAX_FILES:
        return None
    if not fields:
        return np.arange(files.file_count)
    bounds = file_bounds(files, schema.leaf_by_id[fields[0]]).ranges[0]
    least = [(known, low if known else 0) for known, low in zip(bounds.has_minimum, bounds.minimum, strict=True)]
    return np.array(sorted(range(files.file_count), key=least.__getitem__), np.int64)
