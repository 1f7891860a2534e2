"""What the index keeps about a file's chunks: places, bounds in the table's types, null counts, and what is unknown.

Statistics come from footers and are used only as far as `trust` allows. When in doubt a bound is left out: a missing
one costs a read, a wrong one costs rows. Files with equal schemas are handled together, as one `Stack`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.errors import Malformed, Unsupported
from underlay.index.entry import ColumnEntry, FileLayout, Flag
from underlay.index.intake.file_type import file_type
from underlay.index.intake.schema_match import NO_FIELD
from underlay.index.intake.stored_bounds import (
    BoundForm,
    Bounds,
    Side,
    StoredSide,
    decode_bounds,
    drop_both,
    is_inverted,
)
from underlay.index.intake.trust import MAX_KNOWN_LEAVES, drop_old_times, trusts_of
from underlay.index.segment.arrays import ChunkPlaces, ChunkStatistics
from underlay.index.segment.entries import ColumnCutter
from underlay.index.segment.packed import BoundColumn, empty_bounds
from underlay.parquet.footer.schema import Leaf, Schema
from underlay.parquet.footer.stack import Stack
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
_MAX_CODEC = np.int64(max(Codec))


class LeafArrays(NamedTuple):
    """One leaf of files over all their row groups. `column` is its position among the leaves of the files' schema."""

    field: int
    column: int
    statistics: ChunkStatistics
    places: ChunkPlaces


class Leaves(NamedTuple):
    """Some leaves of a schema, and columns [leaves, 1] of which may be null and which may occur other than once a
    row."""

    indices: NDArray[np.intp]
    is_nullable: Flags
    is_repeated: Flags


@dataclass(frozen=True, slots=True)
class _Alike:
    """Leaves whose bounds are decoded as one column. `rows` are their positions among the leaves of the plan."""

    form: BoundForm
    rows: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a file's schema and the table's determine: which leaves exist, and how each is read."""

    leaves: Leaves
    columns: tuple[LeafColumn, ...]
    alike: tuple[_Alike, ...]
    is_float: Flags
    """Of the values in the file [leaves, 1]."""
    is_hashed: Flags
    """Whether a bloom filter of the file may be asked [leaves, 1]."""


def column_arrays(
    stack: Stack, layout: FileLayout, table: TableSchema, *, nan_free: Flags | None = None
) -> tuple[LeafArrays, ...]:
    """Every leaf that the table has, in the order of the files' schema.

    `nan_free` marks the chunks [row groups, leaves] in which the writer saw no NaN. Raises Unsupported for unknown
    codecs.
    """
    is_small = len(layout.fields) <= MAX_KNOWN_LEAVES
    plan = (_known_plan if is_small else _make_plan)(stack.schema, layout.fields, table)
    return tuple(_Columns(stack, plan).arrays(nan_free)) if plan.columns else ()


def column_entries(
    stack: Stack, layout: FileLayout, table: TableSchema, *, nan_free: Flags | None = None
) -> list[tuple[ColumnEntry, ...]]:
    """For each file, an entry for every leaf that the table has; see `column_arrays`."""
    leaves = column_arrays(stack, layout, table, nan_free=nan_free)
    cutters = [(ColumnCutter(leaf.field, leaf.statistics, leaf.places), leaf.column) for leaf in leaves]
    return [
        tuple(cutter.cut(column, begin, end) for cutter, column in cutters) for begin, end in pairwise(stack.begins)
    ]


def _make_plan(schema: Schema, fields: tuple[int, ...], table: TableSchema) -> _Plan:
    known = [
        (leaf, table.leaf_by_id[ident])
        for leaf, ident in zip(schema.leaves, fields, strict=True)
        if ident != NO_FIELD and ident in table.leaf_by_id
    ]
    held = [file_type(leaf.node) for leaf, _ in known]
    alike: dict[object, list[int]] = {}
    for row, (leaf, column) in enumerate(known):
        alike.setdefault(_form(leaf, column.type), []).append(row)
    return _Plan(
        leaves=leaves_of([leaf for leaf, _ in known]),
        columns=tuple(column for _, column in known),
        alike=tuple(
            _Alike(
                BoundForm(
                    leaf=known[rows[0]][0],
                    held=held[rows[0]] or known[rows[0]][1].type,
                    wanted=known[rows[0]][1].type,
                    storage=storage_of(known[rows[0]][1].type),
                ),
                np.array(rows, np.intp),
            )
            for rows in alike.values()
        ),
        is_float=_upright([type_ is not None and type_.kind in _FLOATS for type_ in held]),
        is_hashed=_upright([column.type.kind not in _FLOATS for _, column in known]),
    )


_known_plan = lru_cache(maxsize=64)(_make_plan)


def _form(leaf: Leaf, wanted: Scalar) -> object:
    """What leaves must have in common for their bounds to be decoded as one column."""
    return wanted, leaf.physical_type, leaf.node.logical, leaf.node.type_length


def leaves_of(leaves: Sequence[Leaf]) -> Leaves:
    """Some leaves of a schema."""
    return Leaves(
        np.array([leaf.index for leaf in leaves], np.intp),
        _upright([leaf.max_def_level > 0 for leaf in leaves]),
        _upright([leaf.max_rep_level > 0 for leaf in leaves]),
    )


def _upright(flags: list[bool]) -> Flags:
    """A column [leaves, 1] of flags."""
    return np.array(flags, np.bool_)[:, None]


def count_nulls(stack: Stack, leaves: Leaves) -> tuple[Integers, Flags]:
    """The null counts of some leaves in each row group [leaves, row groups], and where they are known. Impossible ones
    are not.
    """
    values = _rows(stack.chunks.num_values, leaves)
    counts = _rows(stack.chunks.statistics.null_count, leaves)
    known = _rows(stack.chunks.statistics.has_null_count, leaves) & (counts >= 0) & (counts <= values)
    known &= leaves.is_repeated | (values == stack.row_counts)
    return counts * (known & leaves.is_nullable), known | ~leaves.is_nullable


def _rows(chunks: NDArray[Number], leaves: Leaves) -> NDArray[Number]:
    """Some leaves of an array [row groups, leaves], a row for each."""
    return chunks.T.take(leaves.indices, axis=0)


class _Columns:
    """The leaves of a plan over all row groups of a stack, as arrays [leaves, row groups].

    Work that all leaves share is one numpy call for all of them, so a file of one row group costs little more than its
    bounds do.
    """

    def __init__(self, stack: Stack, plan: _Plan) -> None:
        self.stack = stack
        self.plan = plan
        self.null_counts, self.has_null_count = count_nulls(stack, plan.leaves)
        self.is_all_null = self.has_null_count & (self.null_counts == stack.row_counts)
        trusts = trusts_of(stack.origins, stack.schema)
        self.uses_values = self._over_files([trust.values for trust in trusts])
        self.uses_deprecated = self._over_files([trust.deprecated for trust in trusts])
        is_legacy = [trust.is_legacy_calendar for trust in trusts]
        self.is_legacy_calendar = self._repeated(np.array(is_legacy, np.bool_)) if any(is_legacy) else None

    def arrays(self, nan_free: Flags | None) -> Iterator[LeafArrays]:
        """Leaf by leaf."""
        chunks, plan, leaves = self.stack.chunks, self.plan, self.plan.leaves
        flags = self._flags(nan_free)
        lows: list[BoundColumn | None] = [None] * len(plan.columns)
        highs = lows.copy()
        for alike in plan.alike:
            self._decode(alike, flags, lows, highs)
        null_counts = self.null_counts * ~leaves.is_repeated
        begins = _rows(chunk_begins(self.stack), leaves)
        sizes = _rows(chunks.total_compressed_bytes, leaves)
        values = _rows(chunks.num_values, leaves)
        codecs = _codecs(_rows(chunks.codec, leaves))
        is_repeated = leaves.is_repeated[:, 0].tolist()
        for row, (index, column) in enumerate(zip(leaves.indices.tolist(), plan.columns, strict=True)):
            yield LeafArrays(
                column.id,
                index,
                ChunkStatistics(
                    type=column.type, low=lows[row], high=highs[row], null_counts=null_counts[row], flags=flags[row]
                ),
                ChunkPlaces(
                    begins=begins[row],
                    sizes=sizes[row],
                    codecs=codecs[row],
                    value_counts=values[row] if is_repeated[row] else None,
                ),
            )

    def _over_files(self, of_files: list[tuple[bool, ...]]) -> Flags:
        """Flags by leaf and file, spread over the row groups of the files."""
        return self._repeated(np.array(of_files, np.bool_).T.take(self.plan.leaves.indices, axis=0))

    def _repeated(self, of_files: Flags) -> Flags:
        """The flags of each file, repeated for each of its row groups along the last axis."""
        return of_files.repeat([origin.row_group_count for origin in self.stack.origins], axis=-1)

    def _decode(
        self,
        alike: _Alike,
        flags: NDArray[np.uint8],
        lows: list[BoundColumn | None],
        highs: list[BoundColumn | None],
    ) -> None:
        """Fill in the bounds of some leaves and their flags."""
        storage, row_groups = alike.form.storage, self.stack.row_counts.size
        low, high = self._bounds(alike)
        if low is None or high is None:
            for row in alike.rows.tolist():
                lows[row] = highs[row] = empty_bounds(storage, row_groups)
            return
        found = low.has * _HAS_LOW | high.has * _HAS_HIGH
        found |= low.exact * _IS_LOW_EXACT | high.exact * _IS_HIGH_EXACT
        flags[alike.rows] |= found.reshape(alike.rows.size, row_groups)
        stored_low, stored_high = _stored(low, storage), _stored(high, storage)
        for rank, row in enumerate(alike.rows.tolist()):
            here = slice(rank * row_groups, (rank + 1) * row_groups)
            lows[row], highs[row] = stored_low[here], stored_high[here]

    def _bounds(self, alike: _Alike) -> tuple[Bounds | None, Bounds | None]:
        """Both sides, leaf after leaf; None when no file has a bound that counts."""
        uses_values = self.uses_values[alike.rows].ravel()
        uses_deprecated = self.uses_deprecated[alike.rows].ravel()
        if alike.form.storage is Storage.NONE or not (uses_values | uses_deprecated).any():
            return None, None
        low = self._side(alike, "low", uses_values, uses_deprecated)
        high = self._side(alike, "high", uses_values, uses_deprecated)
        drop_both(low, high, is_inverted(low, high, alike.form.wanted) | self.is_all_null[alike.rows].ravel())
        if self.is_legacy_calendar is not None:
            drop_old_times(low, high, alike.form.wanted, np.tile(self.is_legacy_calendar, alike.rows.size))
        return low, high

    def _side(self, alike: _Alike, side: Side, uses_values: Flags, uses_deprecated: Flags) -> Bounds:
        statistics = self.stack.chunks.statistics
        is_low = side == "low"
        newer = self._spans(alike, statistics.min_value if is_low else statistics.max_value)
        uses_newer = uses_values & (newer.begin >= 0)
        exact = self._flat(alike, statistics.is_min_exact if is_low else statistics.is_max_exact)
        found = StoredSide(self.stack.data, newer.begin, newer.length, uses_newer, exact)
        if (uses_deprecated > uses_newer).any():  # somewhere the older fields count, and there are no newer ones
            older = self._spans(alike, statistics.deprecated_min if is_low else statistics.deprecated_max)
            found.has = uses_newer | (uses_deprecated & (older.begin >= 0))
            found.begin = np.where(uses_newer, newer.begin, older.begin)
            found.length = np.where(uses_newer, newer.length, older.length)
            found.exact = np.where(uses_newer, exact, np.int8(-1))
        return decode_bounds(found, alike.form, side)

    def _spans(self, alike: _Alike, spans: Spans) -> Spans:
        return Spans(self._flat(alike, spans.begin), self._flat(alike, spans.length))

    def _flat(self, alike: _Alike, chunks: NDArray[Number]) -> NDArray[Number]:
        """Some leaves of an array [row groups, leaves], one after the other."""
        return chunks.T.take(self.plan.leaves.indices[alike.rows], axis=0).ravel()

    def _flags(self, nan_free: Flags | None) -> NDArray[np.uint8]:
        """All flags but those of bounds."""
        chunks, plan, leaves = self.stack.chunks, self.plan, self.plan.leaves
        flags = (self.has_null_count & ~leaves.is_repeated) * _HAS_NULL_COUNT
        has_bloom = (chunks.bloom_filter_offset > 0) & (chunks.bloom_filter_length > 0)
        flags |= (_rows(has_bloom, leaves) & plan.is_hashed) * _HAS_BLOOM
        if plan.is_float.any():
            is_free = chunks.statistics.has_nan_count & (chunks.statistics.nan_count == 0)
            if nan_free is not None:
                is_free = is_free | nan_free
            flags |= (plan.is_float & ~_rows(is_free, leaves)) * _MAY_HOLD_NAN
        return flags


def _stored(bounds: Bounds, storage: Storage) -> BoundColumn:
    """One side's bounds as a segment has them, zeros where there is none."""
    if isinstance(bounds.values, np.ndarray):
        return np.where(bounds.has, bounds.values, 0).astype(storage.value, copy=False)
    if isinstance(bounds.values, pa.BinaryArray):
        return bounds.values if bounds.has.all() else pc.if_else(pa.array(bounds.has), bounds.values, b"")
    pairs = zip(bounds.values, bounds.has.tolist(), strict=True)
    found: BoundColumn = pa.array([value if has else b"" for value, has in pairs], pa.binary())
    return found


def chunk_begins(stack: Stack) -> Integers:
    """Where each chunk begins: at its dictionary page, if that lies before the first data page."""
    chunks = stack.chunks
    dictionary, data = chunks.dictionary_page_offset, chunks.data_page_offset
    return np.where((dictionary > 0) & (dictionary < data), dictionary, data)


def _codecs(codecs: Integers) -> NDArray[np.uint8]:
    unknown = (codecs < 0) | (codecs > _MAX_CODEC)
    if unknown.any():
        found = int(codecs[unknown][0])
        raise Unsupported("a chunk's compression codec is not known", expected="0 to 7", found=found)
    return codecs.astype(np.uint8)


def check_counts(stack: Stack) -> None:
    """Refuse chunks with a negative number of values."""
    if (stack.chunks.num_values < 0).any():
        raise Malformed("a column chunk has a negative number of values")
