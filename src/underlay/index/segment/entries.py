"""Builds a segment's arrays from entries, and entries from a segment's arrays: each exactly inverts the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from underlay.errors import Malformed
from underlay.index.constants import pack_constants, unpack_constants
from underlay.index.entry import ColumnEntry, FileEntry, Flag
from underlay.index.segment.arrays import I64, Arrays, ChunkPlaces, ChunkStatistics, FileArrays, Shape
from underlay.index.segment.packed import BoundColumn, BytesArray, bytes_array, pack_bytes
from underlay.runtime.locks import cached_property
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar

_NUMBER_BYTES = 8
_OFFSET_BYTES = 4
_MAX_BYTES = np.iinfo(np.int32).max


class EntryArrays:
    """The arrays of entries, each built on demand. Columns that the schema does not have are left out."""

    def __init__(self, entries: Sequence[FileEntry], schema: TableSchema) -> None:
        self._entries = entries
        self._types = {leaf.id: leaf.type for leaf in schema.leaves}

    @cached_property
    def _columns(self) -> list[dict[int, ColumnEntry]]:
        known = self._types
        return [{column.field: column for column in entry.columns if column.field in known} for entry in self._entries]

    @cached_property
    def _block_counts(self) -> list[int]:
        return [len(entry.block_rows) // _NUMBER_BYTES for entry in self._entries]

    @cached_property
    def files(self) -> FileArrays:
        """See Arrays."""
        entries, known = self._entries, self._types
        numbers: dict[Shape, int] = {}
        ids = [
            numbers.setdefault(tuple([(c.field, c.column) for c in e.columns if c.field in known]), len(numbers))
            for e in entries
        ]
        return FileArrays(
            locations=pa.array([e.location for e in entries], pa.string()),
            size_bytes=_numbers(e.size_bytes for e in entries),
            etags=pa.array([e.etag for e in entries], pa.string()),
            footer_bytes=_numbers(e.footer_bytes for e in entries),
            footer_crcs=_numbers(e.footer_crc for e in entries),
            layouts=pa.array([e.layout for e in entries], pa.string()),
            partitions=_array([e.partition for e in entries], pa.list_(pa.binary())),
            specs=_numbers(e.spec for e in entries),
            deletes=pa.array([e.deletes for e in entries], pa.binary()),
            deleted_rows=_numbers(e.deleted_rows for e in entries),
            sidecar_bytes=_numbers(e.sidecar_bytes for e in entries),
            sidecar_crcs=_numbers(e.sidecar_crc for e in entries),
            constants=pa.array([pack_constants(e.constants) for e in entries], pa.binary()),
            block_counts=np.array(self._block_counts, dtype=np.int64),
            shape_ids=np.array(ids, dtype=np.int32),
            shapes=tuple(numbers),
        )

    @cached_property
    def block_rows(self) -> I64:
        """See Arrays."""
        return np.frombuffer(b"".join([entry.block_rows for entry in self._entries]), "<i8")

    def statistics(self, field: int) -> ChunkStatistics | None:
        """See Arrays."""
        columns = [found.get(field) for found in self._columns]
        if field not in self._types or not any(column is not None for column in columns):
            return None
        flags = self._joined(columns, lambda c: c.flags, 1, bytes([Flag.IS_ABSENT]))
        return ChunkStatistics(
            type=self._types[field],
            low=self._bounds(columns, lambda c: c.low, self._types[field]),
            high=self._bounds(columns, lambda c: c.high, self._types[field]),
            null_counts=np.frombuffer(self._joined(columns, lambda c: c.null_counts, _NUMBER_BYTES), "<i8"),
            flags=np.frombuffer(flags, np.uint8),
        )

    def places(self, field: int) -> ChunkPlaces | None:
        """See Arrays."""
        columns = [found.get(field) for found in self._columns]
        if not any(column is not None for column in columns):
            return None
        has_counts = any(column is not None and column.value_counts for column in columns)
        return ChunkPlaces(
            begins=np.frombuffer(self._joined(columns, lambda c: c.begins, _NUMBER_BYTES), "<i8"),
            sizes=np.frombuffer(self._joined(columns, lambda c: c.sizes, _NUMBER_BYTES), "<i8"),
            codecs=np.frombuffer(self._joined(columns, lambda c: c.codecs, 1), np.uint8),
            value_counts=self._value_counts(columns) if has_counts else None,
        )

    def _value_counts(self, columns: Sequence[ColumnEntry | None]) -> I64:
        none = (-1).to_bytes(_NUMBER_BYTES, "little", signed=True)
        given = [column if column is not None and column.value_counts else None for column in columns]
        return np.frombuffer(self._joined(given, lambda c: c.value_counts, _NUMBER_BYTES, none), "<i8")

    def _joined(
        self,
        columns: Sequence[ColumnEntry | None],
        part: Callable[[ColumnEntry], bytes],
        width: int,
        absent: bytes = b"",
    ) -> bytes:
        """The packed numbers of all files; `absent` for each block of a file that has none."""
        filler = absent or bytes(width)
        parts = [
            filler * count if column is None else part(column)
            for column, count in zip(columns, self._block_counts, strict=True)
        ]
        found = b"".join(parts)
        if any(len(data) != count * width for data, count in zip(parts, self._block_counts, strict=True)):
            raise Malformed("an entry's packed numbers are not one for each block", place="entry")
        return found

    def _bounds(
        self, columns: Sequence[ColumnEntry | None], part: Callable[[ColumnEntry], bytes], scalar: Scalar
    ) -> BoundColumn | None:
        match storage_of(scalar):
            case Storage.NONE:
                return None
            case Storage.BYTES:
                return self._joined_bytes(columns, part)
            case storage:
                return np.frombuffer(self._joined(columns, part, _NUMBER_BYTES), storage.value)

    def _joined_bytes(self, columns: Sequence[ColumnEntry | None], part: Callable[[ColumnEntry], bytes]) -> BytesArray:
        """The packed values of all files as one array: their offsets are shifted, their bytes joined."""
        counts = self._block_counts
        parts = [bytes(_OFFSET_BYTES * (n + 1)) if c is None else part(c) for c, n in zip(columns, counts, strict=True)]
        heads = [_OFFSET_BYTES * (count + 1) for count in counts]
        joined = b"".join([data[:head] for data, head in zip(parts, heads, strict=True)])
        values = b"".join([data[head:] for data, head in zip(parts, heads, strict=True)])
        if len(joined) != sum(heads) or len(values) > _MAX_BYTES:
            raise Malformed("an entry's packed values are shorter than their offsets, or too long", place="entry")
        every = np.frombuffer(joined, "<i4").astype(np.int64)
        lasts = np.cumsum([count + 1 for count in counts], dtype=np.int64) - 1
        lengths = np.delete(np.diff(every), lasts[:-1]) if len(every) else every
        firsts = np.concatenate([[0], lasts[:-1] + 1]) if counts else lasts
        sizes = np.array([len(data) for data in parts], dtype=np.int64) - heads
        if every[firsts].any() or (lengths < 0).any() or (every[lasts] != sizes).any():
            raise Malformed("offsets of an entry's packed values do not ascend from 0 to their end", place="entry")
        offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
        np.cumsum(lengths, out=offsets[1:])
        return bytes_array(offsets, values)


def _array(values: Sequence[object], type_: pa.DataType) -> Any:  # noqa: ANN401  # of that type, which the stubs lose
    return pa.array(values, type_)


def _numbers(values: Iterable[int]) -> I64:
    return np.fromiter(values, dtype=np.int64)


def entries_of(arrays: Arrays, rows: Iterable[int]) -> list[FileEntry]:
    """The entries of these files."""
    chosen, files = list(rows), arrays.files
    columns = {field: _cutter(arrays, field) for field in files.fields}
    begins, block_rows = files.block_begin.tolist(), arrays.block_rows
    partitions: list[list[bytes | None]] = files.partitions.take(pa.array(chosen, pa.int64())).to_pylist()  # type: ignore[assignment]  # the stubs lose the list
    found = []
    for position, row in enumerate(chosen):
        begin, end = begins[row], begins[row + 1]
        found.append(
            FileEntry(
                location=files.locations[row].as_py(),
                size_bytes=int(files.size_bytes[row]),
                etag=files.etags[row].as_py(),
                footer_bytes=int(files.footer_bytes[row]),
                footer_crc=int(files.footer_crcs[row]),
                layout=files.layouts[row].as_py(),
                block_rows=block_rows[begin:end].tobytes(),
                columns=tuple(
                    columns[field].cut(column, begin, end) for field, column in files.shapes[files.shape_ids[row]]
                ),
                partition=tuple(partitions[position]),
                deletes=files.deletes[row].as_py(),
                deleted_rows=int(files.deleted_rows[row]),
                sidecar_bytes=int(files.sidecar_bytes[row]),
                sidecar_crc=int(files.sidecar_crcs[row]),
                constants=unpack_constants(files.constants[row].as_py()),
                spec=int(files.specs[row]),
            )
        )
    return found


def _cutter(arrays: Arrays, field: int) -> ColumnCutter:
    statistics, places = arrays.statistics(field), arrays.places(field)
    if statistics is None or places is None:
        raise Malformed("a leaf of some file lacks statistics or places", place=f"field {field}")
    return ColumnCutter(field, statistics, places)


class ColumnCutter:
    """Cuts one leaf's arrays into the entries of single files."""

    def __init__(self, field: int, statistics: ChunkStatistics, places: ChunkPlaces) -> None:
        self._field, self._statistics, self._places = field, statistics, places

    def cut(self, column: int, begin: int, end: int) -> ColumnEntry:
        """The entry of the file with these blocks."""
        statistics, places = self._statistics, self._places
        counts = places.value_counts[begin:end] if places.value_counts is not None else None
        return ColumnEntry(
            field=self._field,
            column=column,
            low=_cut_bounds(statistics.low, begin, end),
            high=_cut_bounds(statistics.high, begin, end),
            null_counts=statistics.null_counts[begin:end].tobytes(),
            flags=statistics.flags[begin:end].tobytes(),
            begins=places.begins[begin:end].tobytes(),
            sizes=places.sizes[begin:end].tobytes(),
            codecs=places.codecs[begin:end].tobytes(),
            value_counts=b"" if counts is None or (counts < 0).any() else counts.tobytes(),
        )


def _cut_bounds(bounds: BoundColumn | None, begin: int, end: int) -> bytes:
    if bounds is None:
        return b""
    if isinstance(bounds, np.ndarray):
        return bounds[begin:end].tobytes()
    return pack_bytes([value or b"" for value in bounds[begin:end].to_pylist()])
