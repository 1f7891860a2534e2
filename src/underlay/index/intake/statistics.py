"""What the index keeps about a file's chunks: places, bounds in the table's types, null counts, and what is unknown.

Statistics come from footers and are used only as far as `trust` allows. When in doubt a bound is left out: a missing
one costs a read, a wrong one costs rows. Files with equal schemas are handled together, as one `Stack`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
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
    HIGH,
    LOW,
    BoundForm,
    BoundValues,
    StoredBounds,
    decode_bounds,
    is_inverted,
)
from underlay.index.intake.trust import MAX_KNOWN_LEAVES, Trust, is_old_time, trusts_of
from underlay.index.segment.arrays import ChunkPlaces, ChunkStatistics
from underlay.index.segment.entries import ColumnCutter
from underlay.index.segment.packed import BoundColumn, empty_bounds
from underlay.parquet.footer.schema import Leaf, Schema
from underlay.parquet.footer.stack import Stack
from underlay.parquet.records.records import Flags, Integers, Spans
from underlay.runtime.locks import cached_property
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Scalar, TypeKind
from underlay.values.physical import Codec

Number = TypeVar("Number", bound=np.generic)

_HAS_SIDE = np.array([[Flag.HAS_LOW], [Flag.HAS_HIGH]], np.uint8)
_IS_SIDE_EXACT = np.array([[Flag.IS_LOW_EXACT], [Flag.IS_HIGH_EXACT]], np.uint8)
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
    """Leaves whose bounds are decoded as one column. `rows` are their positions among the leaves of the plan, and
    `ranks` those among the leaves in the order in which bounds are decoded."""

    form: BoundForm
    rows: tuple[int, ...]
    ranks: slice


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a file's schema and the table's determine: which leaves exist, and how each is read."""

    leaves: Leaves
    columns: tuple[LeafColumn, ...]
    alike: tuple[_Alike, ...]
    ordered: NDArray[np.intp]
    """The leaves in the order in which bounds are decoded, each `_Alike` after the other: positions in the plan."""
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
    ends = accumulate(map(len, alike.values()))
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
                tuple(rows),
                slice(end - len(rows), end),
            )
            for rows, end in zip(alike.values(), ends, strict=True)
        ),
        ordered=np.array([row for rows in alike.values() for row in rows], np.intp),
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

    What all leaves have in common is one step of numpy for all of them, so that a file of one row group costs little
    more than its bounds do.
    """

    def __init__(self, stack: Stack, plan: _Plan) -> None:
        self.stack = stack
        self.plan = plan
        self.null_counts, self.has_null_count = count_nulls(stack, plan.leaves)

    def arrays(self, nan_free: Flags | None) -> Iterator[LeafArrays]:
        """Leaf by leaf."""
        chunks, plan, leaves = self.stack.chunks, self.plan, self.plan.leaves
        flags = self._flags(nan_free)
        lows, highs = self._bounds(flags)
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

    def _bounds(self, flags: NDArray[np.uint8]) -> tuple[list[BoundColumn | None], list[BoundColumn | None]]:
        """The lower and the upper bounds of each leaf; the flags get what they say of them."""
        plan = self.plan
        trusts = trusts_of(self.stack.origins, self.stack.schema)
        legacy = [trust.is_legacy_calendar for trust in trusts]
        is_legacy = self._over_row_groups(np.array(legacy, np.bool_)) if any(legacy) else None
        found = self._stored(trusts)
        is_there = np.any(found.has, axis=(1, 2)).tolist()
        has, exact = np.zeros_like(found.has), np.zeros_like(found.has)
        is_all_null = self.has_null_count & (self.null_counts == self.stack.row_counts)
        is_dropped = is_all_null.take(plan.ordered, axis=0)
        decoded: list[tuple[_Alike, BoundValues | None]] = []
        for alike in plan.alike:
            form, ranks = alike.form, alike.ranks
            if form.storage is Storage.NONE or not any(is_there[ranks]):
                decoded.append((alike, None))
                continue
            bounds = decode_bounds(_part(found, ranks), form)
            is_dropped[ranks] |= is_inverted(bounds, form.wanted)
            if is_legacy is not None:
                is_dropped[ranks] |= is_old_time(bounds, form.wanted, is_legacy)
            has[ranks], exact[ranks] = bounds.has, bounds.exact
            decoded.append((alike, bounds.values))
        kept = ~is_dropped[:, None]
        has &= kept
        exact &= kept
        flags[plan.ordered] |= np.bitwise_or.reduce(has * _HAS_SIDE | exact * _IS_SIDE_EXACT, axis=1)
        lows: list[BoundColumn | None] = [None] * len(plan.columns)
        highs = lows.copy()
        for alike, values in decoded:
            storage = alike.form.storage
            for row, sides in zip(alike.rows, _sides(values, has[alike.ranks], storage), strict=True):
                lows[row], highs[row] = sides
        return lows, highs

    def _stored(self, trusts: Sequence[Trust]) -> StoredBounds:
        """The bounds that count, as the files have them: of all leaves, in the order in which they are decoded."""
        statistics = self.stack.chunks.statistics
        uses_values = self._over_leaves([trust.values for trust in trusts])
        uses_deprecated = self._over_leaves([trust.deprecated for trust in trusts])
        newer = self._spans(statistics.min_value, statistics.max_value)
        uses_newer = uses_values & (newer.begin >= 0)
        exact = self._both(statistics.is_min_exact, statistics.is_max_exact)
        if not (uses_deprecated > uses_newer).any():
            return StoredBounds(self.stack.data, newer.begin, newer.length, uses_newer, exact)
        # Somewhere the older fields count, and there are no newer ones.
        older = self._spans(statistics.deprecated_min, statistics.deprecated_max)
        return StoredBounds(
            self.stack.data,
            np.where(uses_newer, newer.begin, older.begin),
            np.where(uses_newer, newer.length, older.length),
            uses_newer | (uses_deprecated & (older.begin >= 0)),
            np.where(uses_newer, exact, np.int8(-1)),
        )

    def _over_leaves(self, of_files: list[tuple[bool, ...]]) -> Flags:
        """What is known of each leaf of each file, as [leaves, 1, row groups]."""
        known = np.array(of_files, np.bool_).T.take(self._ordered, axis=0)
        return self._over_row_groups(known)[:, None]

    def _over_row_groups(self, of_files: Flags) -> Flags:
        """For each row group what is known of its file: the last axis."""
        return of_files.repeat([origin.row_group_count for origin in self.stack.origins], axis=-1)

    @cached_property
    def _ordered(self) -> NDArray[np.intp]:
        return self.plan.leaves.indices[self.plan.ordered]

    def _spans(self, low: Spans, high: Spans) -> Spans:
        return Spans(self._both(low.begin, high.begin), self._both(low.length, high.length))

    def _both(self, low: NDArray[Number], high: NDArray[Number]) -> NDArray[Number]:
        """Two arrays [row groups, leaves] as one [leaves, 2, row groups]."""
        return np.array((low, high)).transpose(2, 0, 1).take(self._ordered, axis=0)

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


def _part(found: StoredBounds, ranks: slice) -> StoredBounds:
    return StoredBounds(found.data, found.begin[ranks], found.length[ranks], found.has[ranks], found.exact[ranks])


def _sides(
    values: BoundValues | None, has: Flags, storage: Storage
) -> Iterator[tuple[BoundColumn | None, BoundColumn | None]]:
    """For each leaf its lower and upper bounds as a segment has them, zeros where there is none."""
    leaves, _, row_groups = has.shape
    if values is None:
        none = empty_bounds(storage, row_groups)
        yield from [(none, none)] * leaves
        return
    if isinstance(values, np.ndarray):
        stored = np.where(has, values, 0).astype(storage.value, copy=False)
        yield from zip(stored[:, LOW], stored[:, HIGH], strict=True)
        return
    found: BoundColumn
    if isinstance(values, pa.BinaryArray):
        found = values if has.all() else pc.if_else(pa.array(has.ravel()), values, b"")
    else:
        pairs = zip(values, has.ravel().tolist(), strict=True)
        found = pa.array([value if is_there else b"" for value, is_there in pairs], pa.binary())
    for low in range(0, len(found), 2 * row_groups):
        high = low + row_groups
        yield found[low:high], found[high : high + row_groups]


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
    """Refuse chunks with a negative number of values, and chunks of rows without bytes: there is nothing to read."""
    chunks = stack.chunks
    if (chunks.num_values < 0).any():
        raise Malformed("a column chunk has a negative number of values")
    if ((chunks.total_compressed_bytes == 0) & (stack.row_counts[:, None] > 0)).any():
        raise Malformed("a column chunk of a row group with rows has no bytes")
