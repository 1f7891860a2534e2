"""New files of a transaction: a few ride in the root's tail, many are segments of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from underlay.index.entry import FileEntry, Layout
from underlay.index.segment import Segment
from underlay.index.segment_write import write_segment
from underlay.index.tiers import MAX_FILES
from underlay.plan.leaf_bounds import file_bounds
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.table.surroundings import uuid7
from underlay.table.tidy import TAIL_BYTES, bounded_fields
from underlay.table.transaction import Transaction

_FEW = 64


def add_files(transaction: Transaction, entries: Sequence[FileEntry], layouts: Iterable[Layout]) -> None:
    """Add the files. Segments are cut along the order of the first column whose range the root keeps."""
    if len(entries) <= _FEW and len(msgspec.json.encode(entries)) <= TAIL_BYTES:
        by_id = {layout.id: layout for layout in layouts}
        for entry in entries:
            transaction.add_file(entry, by_id.get(entry.layout))
        return
    definition = transaction.base.definition
    schema = from_record(definition.schema)
    fields = bounded_fields(definition)
    ordered = _in_order(entries, schema, fields)
    for begin in range(0, len(ordered), MAX_FILES):
        data, ref = write_segment(ordered[begin : begin + MAX_FILES], schema, segment_id=uuid7(), bounded_fields=fields)
        transaction.add_segment(ref, data, layouts)


def _in_order(entries: Sequence[FileEntry], schema: TableSchema, fields: Sequence[int]) -> Sequence[FileEntry]:
    """The files by their least value of the first of these columns; those without one come first."""
    if not fields or len(entries) <= MAX_FILES:
        return entries
    bounds = file_bounds(Segment.of_entries(entries, schema), schema.leaf_by_id[fields[0]]).ranges[0]
    least = [(known, low if known else 0) for known, low in zip(bounds.has_minimum, bounds.minimum, strict=True)]
    return [entries[at] for at in sorted(range(len(entries)), key=least.__getitem__)]
