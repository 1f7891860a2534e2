"""What the index keeps of a file's chunks: places, bounds in the table's types, null counts, and what is unknown.

Statistics come from footers and are believed only as far as `trust` says. When in doubt a bound is left out: a missing
one costs a read, a wrong one costs rows. Files with equal schemas are worked on together, as one `Stack`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import Malformed, Unsupported
from underlay.index.entry import ColumnEntry, FileLayout, Flag
from underlay.index.intake.file_type import file_type
from underlay.index.intake.schema_match import NO_FIELD
from underlay.index.intake.stored_bounds import Bounds, Side, StoredSide, decode_bounds, drop_both, drop_inverted
from underlay.index.intake.trust import drop_old_times, trusts_of
from underlay.index.segment.arrays import ChunkPlaces, ChunkStatistics
from underlay.index.segment.entries import ColumnCutter
from underlay.index.segment.packed import BoundColumn, empty_bounds
from underlay.parquet.bulk.stack import Stack
from underlay.parquet.footer.schema import Leaf
from underlay.parquet.records.records import Flags, Integers, Spans
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Scalar, TypeKind
from underlay.values.physical import Codec

Number = TypeVar("Number", bound=np.generic)

_HAS_LOW, _HAS_HIGH = np.uint8(Flag.HAS_LOW), np.uint8(Flag.HAS_HIGH)
_IS_LOW_EXACT, _IS_HIGH_EXACT = np.uint8(Flag.IS_LOW_EXACT), np.uint8(Flag.IS_HIGH_EXACT)
_MAY_HOLD_NAN, _HAS_NULL_COUNT = np.uint8(Flag.MAY_HOLD_NAN), np.uint8(Flag.HAS_NULL_COUNT)
_HAS_BLOOM = np.uint8(Flag.HAS_BLOOM)
_FLOATS = (TypeKind.FLOAT16, TypeKind.FLOAT32, TypeKind.FLOAT64)


@dataclass(frozen=True, slots=True)
class _Believed:
    """The trust in each file as arrays over row groups."""

    values: Flags
    deprecated: Flags
    is_legacy_calendar: Flags


class LeafArrays(NamedTuple):
    """One leaf of files over all their row groups. `column` is its position among the leaves of the files' schema."""

    field: int
    column: int
    statistics: ChunkStatistics
    places: ChunkPlaces


def column_arrays(
    stack: Stack, layout: FileLayout, table: TableSchema, *, nan_free: Flags | None = None
) -> tuple[LeafArrays, ...]:
    """Every leaf that the table has, in the order of the files' schema.

    `nan_free` says of each chunk [row groups, leaves] whether its writer saw that it holds no NaN. Raises Unsupported
    for unknown codecs.
    """
    believed = _believed(stack)
    alike: dict[object, list[Leaf]] = {}
    for leaf, ident in zip(stack.schema.leaves, layout.fields, strict=True):
        if ident != NO_FIELD and ident in table.leaf_by_id:
            alike.setdefault(_form(leaf, table.leaf_by_id[ident].type), []).append(leaf)
    found: list[LeafArrays] = []
    for leaves in alike.values():
        columns = [table.leaf_by_id[layout.fields[leaf.index]] for leaf in leaves]
        found += _Columns(stack, believed, leaves, columns[0].type, nan_free).arrays(columns)
    return tuple(sorted(found, key=lambda leaf: leaf.column))


def column_entries(
    stack: Stack, layout: FileLayout, table: TableSchema, *, nan_free: Flags | None = None
) -> list[tuple[ColumnEntry, ...]]:
    """For each file, an entry for every leaf that the table has; see `column_arrays`."""
    leaves = column_arrays(stack, layout, table, nan_free=nan_free)
    cutters = [(ColumnCutter(leaf.field, leaf.statistics, leaf.places), leaf.column) for leaf in leaves]
    return [
        tuple(cutter.cut(column, begin, end) for cutter, column in cutters) for begin, end in pairwise(stack.begins)
    ]


def _form(leaf: Leaf, wanted: Scalar) -> object:
    """What leaves must have in common to be worked on as one."""
    node = leaf.node
    is_nullable, is_repeated = leaf.max_def_level > 0, leaf.max_rep_level > 0
    return wanted, leaf.physical_type, node.logical, node.type_length, is_nullable, is_repeated


def count_nulls(stack: Stack, leaves: Sequence[Leaf]) -> tuple[Integers, Flags]:
    """Nulls of some leaves in each row group, leaf after leaf, and where their number is known.

    The leaves are all nullable or none is, and all repeated or none. An impossible number is not known.
    """
    indices = [leaf.index for leaf in leaves]
    values = _flat(stack.chunks.num_values, indices)
    if not leaves[0].max_def_level:
        return np.zeros(values.size, np.int64), np.ones(values.size, np.bool_)
    counts = _flat(stack.chunks.statistics.null_count, indices)
    known = _flat(stack.chunks.statistics.has_null_count, indices) & (counts >= 0) & (counts <= values)
    if not leaves[0].max_rep_level:
        known &= values == np.tile(stack.row_counts, len(leaves))
    return np.where(known, counts, 0), known


def _flat(chunks: NDArray[Number], indices: list[int]) -> NDArray[Number]:
    """Some columns of an array [row groups, columns], one after the other."""
    return chunks[:, indices].ravel(order="F")


def _believed(stack: Stack) -> _Believed:
    trusts = trusts_of(stack.origins, stack.schema)
    counts = [origin.row_group_count for origin in stack.origins]
    shape = (len(trusts), len(stack.schema.leaves))
    return _Believed(
        np.repeat(np.array([trust.values for trust in trusts], np.bool_).reshape(shape), counts, axis=0),
        np.repeat(np.array([trust.deprecated for trust in trusts], np.bool_).reshape(shape), counts, axis=0),
        np.repeat(np.array([trust.is_legacy_calendar for trust in trusts], np.bool_), counts),
    )


class _Columns:
    """Leaves of one form over all row groups of a stack, as one long column: all of the first leaf's come first."""

    def __init__(
        self, stack: Stack, believed: _Believed, leaves: list[Leaf], wanted: Scalar, nan_free: Flags | None
    ) -> None:
        self.stack = stack
        self.leaf = leaves[0]
        self.indices = [leaf.index for leaf in leaves]
        self.wanted = wanted
        self.storage = storage_of(wanted)
        self.row_counts = np.tile(stack.row_counts, len(leaves))
        self.null_counts, self.has_null_count = count_nulls(stack, leaves)
        self.low, self.high = self._bounds(believed)
        self.flags = self._flags(None if nan_free is None else _flat(nan_free, self.indices))

    def arrays(self, columns: list[LeafColumn]) -> Iterator[LeafArrays]:
        """Leaf by leaf, for these columns of the table."""
        chunks = self.stack.chunks
        is_repeated = self.leaf.max_rep_level > 0
        low, high = _stored(self.low, self.storage), _stored(self.high, self.storage)
        null_counts = np.zeros_like(self.null_counts) if is_repeated else self.null_counts
        begins = _flat(chunk_begins(self.stack), self.indices)
        sizes = _flat(chunks.total_compressed_bytes, self.indices)
        values = _flat(chunks.num_values, self.indices)
        codecs = _codecs(_flat(chunks.codec, self.indices))
        row_groups = self.stack.row_counts.size
        for rank, (index, column) in enumerate(zip(self.indices, columns, strict=True)):
            here = slice(rank * row_groups, (rank + 1) * row_groups)
            yield LeafArrays(
                column.id,
                index,
                ChunkStatistics(
                    type=column.type,
                    low=_cut(low, self.storage, here),
                    high=_cut(high, self.storage, here),
                    null_counts=null_counts[here],
                    flags=self.flags[here],
                ),
                ChunkPlaces(
                    begins=begins[here],
                    sizes=sizes[here],
                    codecs=codecs[here],
                    value_counts=values[here] if is_repeated else None,
                ),
            )

    def _bounds(self, believed: _Believed) -> tuple[Bounds | None, Bounds | None]:
        """Both sides; None when no file has any that counts."""
        use_values, use_deprecated = _flat(believed.values, self.indices), _flat(believed.deprecated, self.indices)
        if self.storage is Storage.NONE or not (use_values.any() or use_deprecated.any()):
            return None, None
        low = self._side("low", use_values, use_deprecated)
        high = self._side("high", use_values, use_deprecated)
        drop_inverted(low, high, self.wanted)
        drop_both(low, high, self.has_null_count & (self.null_counts == self.row_counts))
        drop_old_times(low, high, self.wanted, np.tile(believed.is_legacy_calendar, len(self.indices)))
        return low, high

    def _side(self, side: Side, use_values: Flags, use_deprecated: Flags) -> Bounds:
        statistics = self.stack.chunks.statistics
        is_low = side == "low"
        newer = self._spans(statistics.min_value if is_low else statistics.max_value)
        use_newer = use_values & (newer.begin >= 0)
        exact = _flat(statistics.is_min_exact if is_low else statistics.is_max_exact, self.indices)
        found = StoredSide(self.stack.data, newer.begin, newer.length, use_newer, exact)
        if use_deprecated.any() and not use_newer.all():
            older = self._spans(statistics.deprecated_min if is_low else statistics.deprecated_max)
            found.has = use_newer | (use_deprecated & (older.begin >= 0))
            found.begin = np.where(use_newer, newer.begin, older.begin)
            found.length = np.where(use_newer, newer.length, older.length)
            found.exact = np.where(use_newer, exact, np.int8(-1))
        return decode_bounds(found, self.leaf, self.wanted, side)

    def _spans(self, spans: Spans) -> Spans:
        return Spans(_flat(spans.begin, self.indices), _flat(spans.length, self.indices))

    def _flags(self, nan_free: Flags | None) -> NDArray[np.uint8]:
        chunks = self.stack.chunks
        flags = np.zeros(self.row_counts.size, np.uint8)
        if self.low is not None and self.high is not None:
            flags |= self.low.has * _HAS_LOW | self.high.has * _HAS_HIGH
            flags |= self.low.exact * _IS_LOW_EXACT | self.high.exact * _IS_HIGH_EXACT
        if not self.leaf.max_rep_level:
            flags |= self.has_null_count * _HAS_NULL_COUNT
        held = file_type(self.leaf.node)
        if held is not None and held.kind in _FLOATS:
            statistics = chunks.statistics
            without = _flat(statistics.has_nan_count, self.indices) & (_flat(statistics.nan_count, self.indices) == 0)
            if nan_free is not None:
                without = without | nan_free
            flags |= ~without * _MAY_HOLD_NAN
        if self.wanted.kind not in _FLOATS:
            lengths = _flat(chunks.bloom_filter_length, self.indices)
            flags |= ((_flat(chunks.bloom_filter_offset, self.indices) > 0) & (lengths > 0)) * _HAS_BLOOM
        return flags


def _stored(bounds: Bounds | None, storage: Storage) -> BoundColumn | None:
    """One side's bounds as a segment has them, zeros where there is none; None when no file has any."""
    if bounds is None:
        return None
    if isinstance(bounds.values, np.ndarray):
        return np.where(bounds.has, bounds.values, 0).astype(storage.value)
    pairs = zip(bounds.values, bounds.has.tolist(), strict=True)
    found: BoundColumn = pa.array([value if has else b"" for value, has in pairs], pa.binary())
    return found


def _cut(bounds: BoundColumn | None, storage: Storage, here: slice) -> BoundColumn | None:
    return empty_bounds(storage, here.stop - here.start) if bounds is None else bounds[here]


def chunk_begins(stack: Stack) -> Integers:
    """Where each chunk begins: at its dictionary page, if that lies before the first data page."""
    chunks = stack.chunks
    dictionary, data = chunks.dictionary_page_offset, chunks.data_page_offset
    return np.where((dictionary > 0) & (dictionary < data), dictionary, data)


def _codecs(codecs: Integers) -> NDArray[np.uint8]:
    unknown = codecs[(codecs < 0) | (codecs > max(Codec))]
    if unknown.size:
        raise Unsupported("a chunk's compression codec is not known", expected="0 to 7", found=int(unknown[0]))
    return codecs.astype(np.uint8)


def check_counts(stack: Stack) -> None:
    """Refuse chunks with a negative number of values."""
    if (stack.chunks.num_values < 0).any():
        raise Malformed("a column chunk has a negative number of values")
