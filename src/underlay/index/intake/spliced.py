"""The entry of a file assembled from blocks of others: what is known about each block moves with it.

The footer is not read again: entries know more, such as which chunks their writer saw to hold no NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from msgspec.structs import replace as with_values

from underlay.errors import Malformed
from underlay.index.entry import FileEntry, Flag
from underlay.index.segment.arrays import I64, ChunkPlaces, ChunkStatistics
from underlay.index.segment.entries import ColumnCutter, EntryArrays
from underlay.index.segment.packed import BoundColumn
from underlay.index.segment.segment import Segment
from underlay.index.segment.widen import widened
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.table_schema import TableSchema

_NO_BLOOM = np.uint8(0xFF ^ Flag.HAS_BLOOM)


class EntryPart(NamedTuple):
    """Some blocks of a file, and how far the bytes of each moved."""

    entry: FileEntry
    blocks: Sequence[int]
    deltas: Sequence[int]


def kind_of(entry: FileEntry) -> tuple[object, ...]:
    """What the entries of files must have in common to be spliced."""
    columns = tuple((column.field, column.column) for column in entry.columns)
    return entry.spec, entry.partition, entry.layout, columns, entry.constants


def spliced_entry(parts: Sequence[EntryPart], schema: TableSchema, place: FileEntry) -> FileEntry:
    """The entry of the file with these blocks, in their order. `place` has its location, size and footer."""
    first = parts[0].entry
    if any(kind_of(part.entry) != kind_of(first) for part in parts):
        raise Malformed("blocks of files of different kinds", place=place.location)
    arrays = EntryArrays([part.entry for part in parts], schema)
    begins = arrays.files.block_begin.tolist()
    chosen = np.concatenate(
        [begin + np.array(part.blocks, np.int64) for begin, part in zip(begins, parts, strict=False)]
    )
    deltas = np.concatenate([np.array(part.deltas, np.int64) for part in parts])
    columns = tuple(
        _cutter(arrays, column.field, chosen, deltas).cut(column.column, 0, len(chosen))
        for column in first.columns
        if column.field in arrays.files.fields
    )
    return with_values(
        place,
        etag=None,
        layout=first.layout,
        block_rows=arrays.block_rows[chosen].astype("<i8").tobytes(),
        columns=columns,
        partition=first.partition,
        spec=first.spec,
        deletes=None,
        deleted_rows=0,
        constants=(),
    )


def current_entries(segment: Segment, rows: Sequence[int], schema: TableSchema) -> Iterator[FileEntry]:
    """The entries of these files, with bounds in the table's current types: a segment keeps older ones."""
    cutters = {
        field: ColumnCutter(field, _asked(widened(known, leaf.type)), places)
        for field, leaf in schema.leaf_by_id.items()
        if (known := segment.statistics(field)) is not None
        and known.type != leaf.type
        and (places := segment.places(field)) is not None
    }
    begins = segment.block_begin
    for row, entry in zip(rows, segment.entries(rows), strict=True):
        begin, end = int(begins[row]), int(begins[row + 1])
        columns = tuple(
            cutters[one.field].cut(one.column, begin, end) if one.field in cutters else one for one in entry.columns
        )
        yield with_values(entry, columns=columns) if cutters else entry


def _asked(found: ChunkStatistics) -> ChunkStatistics:
    """No entry claims a bloom filter for a column of floats, whether its file was copied or came in."""
    return replace(found, flags=found.flags & _NO_BLOOM) if storage_of(found.type) is Storage.FLOAT else found


def _cutter(arrays: EntryArrays, field: int, chosen: I64, deltas: I64) -> ColumnCutter:
    statistics, places = arrays.statistics(field), arrays.places(field)
    if statistics is None or places is None:
        raise Malformed("a leaf of some file lacks statistics or places", place=f"field {field}")
    return ColumnCutter(field, _statistics(statistics, chosen), _places(places, chosen, deltas))


def _statistics(found: ChunkStatistics, chosen: I64) -> ChunkStatistics:
    return replace(
        found,
        low=_bounds(found.low, chosen),
        high=_bounds(found.high, chosen),
        null_counts=found.null_counts[chosen],
        flags=found.flags[chosen],
    )


def _bounds(found: BoundColumn | None, chosen: I64) -> BoundColumn | None:
    if found is None or isinstance(found, np.ndarray):
        return None if found is None else found[chosen]
    return found.take(pa.array(chosen, pa.int64()))


def _places(found: ChunkPlaces, chosen: I64, deltas: I64) -> ChunkPlaces:
    return ChunkPlaces(
        begins=found.begins[chosen] + deltas,
        sizes=found.sizes[chosen],
        codecs=found.codecs[chosen],
        value_counts=None if found.value_counts is None else found.value_counts[chosen],
    )
