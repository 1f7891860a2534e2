"""A segment: many files of a table, as the arrays that a planner works on.

The stored object is immutable: self-contained pieces one after another, each fetched, checked and decoded on first use.
A root's tail has the same arrays without I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import UnderlayError
from underlay.index.entry import FileEntry
from underlay.index.root import SegmentRef
from underlay.index.segment.arrays import I64, Arrays, ChunkPlaces, ChunkStatistics, FileArrays
from underlay.index.segment.directory import NO_FIELD, Piece, PieceKey, PieceKind, decode_directory
from underlay.index.segment.entries import EntryArrays, entries_of
from underlay.index.segment.piece import decode_blocks, decode_files, decode_places, decode_statistics
from underlay.runtime.locks import ProcessLock
from underlay.schema.table_schema import TableSchema
from underlay.values.ranges import ByteRange

T = TypeVar("T")
Fetch = Callable[[Sequence[ByteRange]], Sequence[memoryview]]
"""The bytes of each range of one segment."""

_OBJECT_BYTES = 64
"""About what a Python object of a key takes."""
_FILES: PieceKey = (PieceKind.FILES, NO_FIELD)
_BLOCKS: PieceKey = (PieceKind.BLOCKS, NO_FIELD)


class _StoredArrays:
    """Arrays from a stored segment's pieces. Each piece is fetched once; the caller holds a lock."""

    def __init__(self, ref: SegmentRef, fetch: Fetch, place: str) -> None:
        self._ref, self._fetch, self._place = ref, fetch, place
        self._loaded: dict[PieceKey, object] = {}
        self.nbytes = 0
        try:
            self._pieces = decode_directory(ref.pieces, ref.size_bytes)
        except UnderlayError as error:
            raise error.at(place) from None

    def load(self, keys: Iterable[PieceKey]) -> None:
        """Fetch, in one batch, those of these pieces that exist and are not loaded yet."""
        wanted = [key for key in dict.fromkeys(keys) if key in self._pieces and key not in self._loaded]
        if not wanted:
            return
        pieces = [self._pieces[key] for key in wanted]
        try:
            for key, piece, data in zip(wanted, pieces, self._fetch([piece.range for piece in pieces]), strict=True):
                self._loaded[key] = self._decode(piece, data)
                self.nbytes += piece.size_bytes
        except UnderlayError as error:
            raise error.at(self._place) from None

    def has_loaded(self, keys: Iterable[PieceKey]) -> bool:
        """Whether all of these pieces that exist are loaded."""
        return all(key in self._loaded or key not in self._pieces for key in keys)

    def missing_bytes(self, keys: Iterable[PieceKey]) -> int:
        """The size of those of these pieces that exist and are not loaded yet."""
        return sum(self._pieces[key].size_bytes for key in keys if key in self._pieces and key not in self._loaded)

    def _decode(self, piece: Piece, data: memoryview) -> object:
        match PieceKind(piece.kind):
            case PieceKind.FILES:
                return decode_files(data, piece, self._ref.file_count, self._ref.block_count)
            case PieceKind.BLOCKS:
                return decode_blocks(data, piece, self._ref.block_count)
            case PieceKind.STATISTICS:
                return decode_statistics(data, piece, self._ref.block_count)
            case PieceKind.PLACES:
                return decode_places(data, piece, self._ref.block_count)

    def _get(self, key: PieceKey) -> object | None:
        self.load([key])
        return self._loaded.get(key)

    @property
    def files(self) -> FileArrays:
        """See Arrays."""
        return cast(FileArrays, self._get(_FILES))

    @property
    def block_rows(self) -> I64:
        """See Arrays."""
        return cast(I64, self._get(_BLOCKS))

    def statistics(self, field: int) -> ChunkStatistics | None:
        """See Arrays."""
        return cast("ChunkStatistics | None", self._get((PieceKind.STATISTICS, field)))

    def places(self, field: int) -> ChunkPlaces | None:
        """See Arrays."""
        return cast("ChunkPlaces | None", self._get((PieceKind.PLACES, field)))


class Segment:
    """The arrays of many files. Safe for many threads; `remember` keeps derived values."""

    def __init__(self, arrays: Arrays, file_count: int) -> None:
        self.file_count = file_count
        self._arrays = arrays
        self._lock = ProcessLock(reentrant=True)
        self._kept: dict[object, object] = {}
        self._kept_bytes = 0

    @staticmethod
    def of_entries(entries: Sequence[FileEntry], schema: TableSchema) -> Segment:
        """The arrays of entries whose bounds have the schema's types; leaves that the schema does not have are left
        out."""
        return Segment(EntryArrays(entries, schema), len(entries))

    @staticmethod
    def open(ref: SegmentRef, fetch: Fetch, place: str) -> Segment:
        """A stored segment, with nothing fetched yet. Raises Malformed for a wrong directory; later accesses raise
        Damaged, naming `place` and the piece."""
        return Segment(_StoredArrays(ref, fetch, place), ref.file_count)

    def prefetch(self, statistics: Iterable[int] = (), places: Iterable[int] = ()) -> None:
        """Fetch those of files, blocks and these leaves' pieces that are missing, in one batch."""
        if isinstance(self._arrays, _StoredArrays):
            with self._lock:
                self._arrays.load(
                    [
                        _FILES,
                        _BLOCKS,
                        *((PieceKind.STATISTICS, field) for field in statistics),
                        *((PieceKind.PLACES, field) for field in places),
                    ]
                )

    def has_loaded(self, statistics: Iterable[int]) -> bool:
        """Whether a prefetch of these leaves' statistics would fetch nothing."""
        return not isinstance(self._arrays, _StoredArrays) or self._arrays.has_loaded(
            [_FILES, _BLOCKS, *((PieceKind.STATISTICS, field) for field in statistics)]
        )

    def missing_bytes(self, statistics: Iterable[int] = (), places: Iterable[int] = ()) -> int:
        """How much a prefetch of these leaves' pieces would fetch."""
        if not isinstance(self._arrays, _StoredArrays):
            return 0
        wanted = [(PieceKind.STATISTICS, field) for field in statistics] + [
            (PieceKind.PLACES, field) for field in places
        ]
        return self._arrays.missing_bytes(wanted)

    def remember(self, key: object, make: Callable[[], T]) -> T:
        """The result of `make`, which is called once for each key. The key's first item names the kind of value."""
        found = self._kept.get(key)
        if found is None:
            with self._lock:
                found = self._kept.get(key)
                if found is None:
                    found = self._kept[key] = make()
                    if not (isinstance(self._arrays, _StoredArrays) and _is_view(key)):
                        self._kept_bytes += _size_bytes(found)
        return cast(T, found)

    def account(self, size_bytes: int) -> None:
        """Count memory that something kept by `remember` has taken since."""
        with self._lock:
            self._kept_bytes += size_bytes

    @property
    def files(self) -> FileArrays:
        """All files."""
        return self.remember("files", lambda: self._arrays.files)

    @property
    def block_rows(self) -> I64:
        """The rows of each block."""
        return self.remember("block_rows", lambda: self._arrays.block_rows)

    @property
    def block_count(self) -> int:
        """The number of blocks."""
        return len(self.block_rows)

    @property
    def block_begin(self) -> I64:
        """The first block of each file, and the number of blocks after the last."""
        return self.files.block_begin

    @property
    def file_of_block(self) -> I64:
        """The file of each block."""
        return self.files.file_of_block

    @property
    def locations(self) -> pa.StringArray:
        """The location of each file."""
        return self.files.locations

    @property
    def first_rows(self) -> I64:
        """The position in its file of each block's first row."""
        return self.remember("first_rows", lambda: _first_rows(self.files, self.block_rows))

    @property
    def file_rows(self) -> I64:
        """The rows of each file, deleted ones included."""
        return self.remember("file_rows", lambda: sum_by_file(self.block_rows, self.block_begin))

    def statistics(self, field: int) -> ChunkStatistics | None:
        """What is known about one leaf's chunks; None when no file has the leaf."""
        with self._lock:
            return self.remember(("statistics", field), lambda: (self._arrays.statistics(field),))[0]

    def places(self, field: int) -> ChunkPlaces | None:
        """Where one leaf's chunks lie; None when no file has the leaf."""
        with self._lock:
            return self.remember(("places", field), lambda: (self._arrays.places(field),))[0]

    def columns_of(self, field: int) -> NDArray[np.int32]:
        """For each file the position of a leaf in the file's own schema, -1 where it has no such leaf."""
        return self.remember(("columns_of", field), lambda: self.files.columns_of(field))

    def entry(self, row: int) -> FileEntry:
        """The entry of one file."""
        return self.entries([row])[0]

    def entries(self, rows: Iterable[int] | None = None) -> list[FileEntry]:
        """The entries of these files, or of all, as they were written."""
        fields = self.files.fields
        self.prefetch(fields, fields)
        return entries_of(self, range(self.file_count) if rows is None else rows)

    @property
    def nbytes(self) -> int:
        """About how much memory it holds: fetched pieces, and what was derived from them."""
        fetched = self._arrays.nbytes if isinstance(self._arrays, _StoredArrays) else 0
        return fetched + self._kept_bytes


def sum_by_file(values: I64, block_begin: I64) -> I64:
    """The sum over each file's blocks."""
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=sums[1:])
    return sums[block_begin[1:]] - sums[block_begin[:-1]]


def _first_rows(files: FileArrays, block_rows: I64) -> I64:
    before = np.cumsum(block_rows) - block_rows
    starts = np.zeros(files.file_count, dtype=np.int64)
    has_blocks = files.block_counts > 0
    starts[has_blocks] = before[files.block_begin[:-1][has_blocks]]
    return before - np.repeat(starts, files.block_counts)


def _is_view(key: object) -> bool:
    """Whether the value kept under a key is a view of a fetched piece."""
    return (key[0] if isinstance(key, tuple) else key) in ("files", "block_rows", "statistics", "places")


def _size_bytes(value: object) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes + (value.size * _OBJECT_BYTES if value.dtype.hasobject else 0)
    if isinstance(value, pa.Array):
        return value.nbytes
    if isinstance(value, tuple):
        return sum(map(_size_bytes, value))
    if is_dataclass(value):
        return sum(_size_bytes(getattr(value, field.name)) for field in fields(value))
    return 0
