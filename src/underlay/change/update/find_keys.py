"""Finds the rows of a table with one of some keys, by reading the key's columns of the blocks that may hold one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial, reduce
from operator import and_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.change.update.edit import RowEdit
from underlay.change.update.keys import KeySet, Rows
from underlay.index.deletion_vectors import unpack
from underlay.index.entry import FileEntry
from underlay.index.segment.segment import Segment
from underlay.plan.by_part import PartChoice
from underlay.plan.leaf_bounds import block_bounds
from underlay.plan.part import BoolArray
from underlay.prune import FALSE, TRUE, Between, In, Predicate
from underlay.prune.domains.domain import KeyArray
from underlay.prune.parse.arrow_literal import NotTranslated, value_of
from underlay.scan.positions import MatchedRows, run_slabs
from underlay.scan.query import Query
from underlay.scan.slabs import Slab
from underlay.schema.arrow_aliases import AnyArray
from underlay.schema.bound_storage import Storage, bound_domain, storage_of
from underlay.schema.convert.stored_values import stored_array
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import TypeKind

MOST_LITERALS = 32
"""At most this many keys are looked up one by one, in partitions and bloom filters; more are looked up by their
range."""

KEY_BYTES = 1 << 20
"""Bytes of chunks that are fetched together to find keys, unless one block has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKeys:
    """Rows of some blocks of a file that have one of the keys, and for each the row of the update set with that key."""

    found: MatchedRows
    key_rows: Rows


def find_keys(edit: RowEdit, keys: KeySet, columns: tuple[str, ...] = ()) -> Iterator[FoundKeys]:
    """The rows of the edited version that have one of the keys, with these columns; counts what is read.

    Reads the key's columns, and these, of blocks whose bounds and bloom filters do not rule out all keys, with the
    threads of a scan. A file may come repeatedly.
    """
    if keys.is_empty:
        return
    named = tuple(dict.fromkeys((*(leaf.path[0] for leaf in keys.leaves), *columns)))
    query = Query(
        snapshot=edit.snapshot,
        columns=named,
        stores=edit.files.stores,
        cache=edit.files.cache,
        predicate=bounds_of(keys),
    )
    plan = query.plan.narrowed(blocks_with_values(_columns_of(keys)))
    slabs = (piece for slab in query.slabs(plan) for piece in slab.cut(KEY_BYTES))
    for found in run_slabs(query, partial(_find_in, query, keys, columns), slabs):
        edit.read(found.found)
        yield found


def may_hold_keys(schema: TableSchema, keys: KeySet) -> Callable[[FileEntry], bool]:
    """Whether a new file may hold a row with one of the keys, judging by its entry."""
    return may_hold_values(schema, _columns_of(keys))


def bounds_of(keys: KeySet) -> Predicate:
    """Conditions that every row with one of the keys meets, for the planner: ranges of columns, or lists of few
    values."""
    return reduce(and_, (column.predicate for column in _columns_of(keys)), TRUE)


def _columns_of(keys: KeySet) -> list[ColumnValues]:
    return [ColumnValues(leaf=leaf, values=array) for array, leaf in zip(keys.values, keys.leaves, strict=True)]


def _bounds(values: AnyArray, leaf: LeafColumn) -> list[Predicate]:
    is_float = leaf.type.kind in (TypeKind.FLOAT32, TypeKind.FLOAT64)
    if leaf.type.kind is TypeKind.FLOAT16 or (is_float and pc.any(pc.is_nan(values)).as_py()):
        return []
    plain: AnyArray = values.storage if isinstance(values, pa.ExtensionArray) else values
    is_few = len(plain) <= MOST_LITERALS
    ends = plain.unique() if is_few else [pc.min(plain), pc.max(plain)]
    is_uuid = leaf.type.kind is TypeKind.UUID
    try:
        literals = [value_of(end, is_uuid=is_uuid) for end in ends]
    except NotTranslated:
        return []
    return [In(leaf.path, tuple(literals)) if is_few else Between(leaf.path, *literals)]


def _find_in(query: Query, keys: KeySet, columns: tuple[str, ...], slab: Slab) -> FoundKeys:
    places, key_places, kept = [], [], []
    # Block by block: sorted keys take ten times as much memory as in a file, so all blocks of a slab may take too much.
    for rows, first in zip(slab.open(query.files).blocks_in_turn(), slab.first_rows, strict=True):
        at, found_keys = keys.find(rows)
        places.append(at + first)
        key_places.append(found_keys)
        kept.append(rows.select(columns).take(at) if columns else pa.table({}))
    # Each thread of Arrow's allocator keeps what it freed: a fifth to a third of the peak memory of an upsert
    # (`python -m bench.changes.memory`), for 2 % of its CPU time.
    pa.default_memory_pool().release_unused()
    positions, key_rows, kept_rows = np.concatenate(places), np.concatenate(key_places), pa.concat_tables(kept)
    if slab.deletes is not None:
        is_live = ~np.isin(positions, unpack(slab.deletes), assume_unique=True)
        key_rows, positions = key_rows[is_live], positions[is_live]
        kept_rows = kept_rows.filter(pa.array(is_live)) if columns else kept_rows
    found = MatchedRows(
        location=slab.location,
        positions=positions,
        rows=kept_rows,
        block_count=len(slab.blocks),
        fetch_bytes=slab.fetch_bytes,
    )
    return FoundKeys(found=found, key_rows=key_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SortedKeys:
    """The sorted values of one column of the keys, in the form of bounds; None for a type without bounds."""

    leaf: LeafColumn
    keys: KeyArray | None
    has_nan: bool

    @staticmethod
    def of(array: AnyArray, leaf: LeafColumn) -> _SortedKeys:
        if storage_of(leaf.type) is Storage.NONE:
            return _SortedKeys(leaf=leaf, keys=None, has_nan=True)
        keys, is_number = bound_domain(leaf.type).keys(stored_array(array.drop_null(), leaf.type))
        return _SortedKeys(leaf=leaf, keys=np.sort(keys[is_number]), has_nan=not is_number.all())

    def may_be_in(self, segment: Segment, blocks: NDArray[np.int64]) -> BoolArray:
        """Which of these blocks may hold one of the values."""
        if self.keys is None:
            return np.ones(len(blocks), np.bool_)
        bounds = block_bounds(segment, self.leaf, blocks)
        (ranges,) = bounds.ranges
        firsts = np.searchsorted(self.keys, ranges.minimum, "left")
        ends = np.searchsorted(self.keys, ranges.maximum, "right")
        firsts[~ranges.has_minimum] = 0
        ends[~ranges.has_maximum] = len(self.keys)
        may_be = (firsts < ends) & ~bounds.is_all_null
        return may_be | bounds.may_hold_nan if self.has_nan else may_be


def _may_hold(ranges: list[_SortedKeys], segment: Segment, blocks: NDArray[np.int64]) -> BoolArray:
    """Which of these blocks may hold a row with one of the keys, by the bounds of each column."""
    may_hold = np.ones(len(blocks), np.bool_)
    for column in ranges:
        may_hold[may_hold] = column.may_be_in(segment, blocks[may_hold])
    return may_hold


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnValues:
    """A column, and values in its type; every row that matters has one of these values in the column."""

    leaf: LeafColumn
    values: AnyArray

    @property
    def predicate(self) -> Predicate:
        """True for every row that matters."""
        values = self.values.drop_null()
        return reduce(and_, _bounds(values, self.leaf), TRUE) if len(values) else FALSE


def blocks_with_values(columns: Sequence[ColumnValues]) -> Callable[[PartChoice], BoolArray]:
    """Narrows a plan to the blocks that may hold one of the values in each of the columns."""
    ranges = [_SortedKeys.of(one.values, one.leaf) for one in columns]
    return lambda choice: _may_hold(ranges, choice.part.segment, choice.blocks)


def may_hold_values(schema: TableSchema, columns: Sequence[ColumnValues]) -> Callable[[FileEntry], bool]:
    """Whether a new file may hold a row that has one of the values in each of the columns, judging by its entry."""

    @cache
    def ranges() -> list[_SortedKeys]:  # only a commit that lost a race calls this, and sorting many keys is slow
        return [_SortedKeys.of(one.values, one.leaf) for one in columns]

    def may_hold(file: FileEntry) -> bool:
        segment = Segment.of_entries([file], schema)
        return bool(_may_hold(ranges(), segment, np.arange(segment.block_count)).any())

    return may_hold
