"""The keys of an update set, and a search for the rows that have one of them.

Keys are compared in the table's types: numbers by value, text by its bytes. NaN equals NaN, the two zeros are one, and
null equals nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.errors import InvalidRequest
from underlay.index.root import Definition
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyArray, AnyChunks
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.convert.stored_values import one_array, stored_array
from underlay.schema.names import find_named
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import TypeKind

Rows = NDArray[np.intp]
"""Numbers of rows."""
Comparable: TypeAlias = "NDArray[np.int64] | AnyArray"
"""Values that are equal where keys are: integers, or binary."""

_SHOWN_KEYS = 3
_MIXER = np.uint64(0x9E3779B97F4A7C15)
_MOST_SLOT_BITS = 22


def key_leaves(schema: TableSchema, definition: Definition, key: str | Sequence[str] | None) -> tuple[LeafColumn, ...]:
    """The columns of these names, or of the table's key. Raises InvalidRequest when there is none, UnknownColumn."""
    is_list = isinstance(key, Sequence) and all(isinstance(name, str) for name in key)
    if not (key is None or is_list) or key == [] or key == ():
        raise InvalidRequest("a key is a column or a list of columns", found=repr(key), hint='Write key=["id"].')
    if key is None:
        found = tuple(schema.leaf_by_id[field] for field in definition.key if field in schema.leaf_by_id)
    else:
        names = [key] if isinstance(key, str) else list(key)
        found = tuple(find_named(schema, name) for name in names)
        if len({leaf.id for leaf in found}) < len(found):
            raise InvalidRequest("the key lists a column twice", found=", ".join(names))
    if not found:
        raise InvalidRequest("the table has no key", hint='Name the columns that identify a row: key=["id"].')
    return found


def leaf_values(rows: pa.Table | pa.RecordBatch, leaf: LeafColumn) -> AnyArray:
    """A key's column as one array."""
    top, *inner = leaf.path
    column: AnyChunks | AnyArray = rows.column(top)
    for name in inner:
        column = pc.struct_field(column, name)
    return one_array(column)


class KeySet:
    """The keys of some rows, which have the table's types. Immutable, and safe for many threads.

    Rows with a null in their key are left out.
    """

    def __init__(self, rows: pa.Table, leaves: Sequence[LeafColumn]) -> None:
        self.leaves = tuple(leaves)
        self.values = [leaf_values(rows, leaf) for leaf in leaves]
        self.has_null = np.logical_or.reduce([_null_mask(array) for array in self.values])
        at: Rows = np.flatnonzero(~self.has_null)
        self.is_empty = not len(at)
        self._columns: list[_KeyColumn] = []
        self._pairs: list[NDArray[np.int64]] = []
        codes = np.zeros(len(at), np.int64)
        for leaf, array in zip(leaves, self.values, strict=True):
            column = _KeyColumn(_comparable(array.take(pa.array(at)), leaf))
            numbers = codes * column.count + column.codes
            pairs = np.unique(numbers)
            codes = np.searchsorted(pairs, numbers)
            self._columns.append(column)
            self._pairs.append(pairs)
        self.codes = codes
        self._rows_with_key = at
        self._row_of_code = np.zeros(int(codes.max(initial=-1)) + 1, np.intp)
        self._row_of_code[codes[::-1]] = at[::-1]  # the first if there are several

    def check_distinct(self) -> None:
        """Raise InvalidRequest when a key is null, or several rows have the same."""
        if self.has_null.any():
            raise InvalidRequest(
                f"the key is null in row {int(np.argmax(self.has_null))}",
                place=", ".join(format_column(leaf.path) for leaf in self.leaves),
                hint="Null equals nothing, so such a row can only be appended. Fill it, or leave the row out.",
            )
        if len(self._row_of_code) == len(self.codes):
            return
        _, firsts, counts = np.unique(self.codes, return_index=True, return_counts=True)
        repeated = np.sort(firsts[counts > 1])
        shown = [self._show(int(self._rows_with_key[at]), int(self.codes[at])) for at in repeated[:_SHOWN_KEYS]]
        more = f", and {len(repeated) - _SHOWN_KEYS} more keys" if len(repeated) > _SHOWN_KEYS else ""
        raise InvalidRequest(
            "several rows have the same key",
            found=f"{'; '.join(shown)}{more}",
            hint="Keep one row per key.",
        )

    def find(self, rows: pa.Table) -> tuple[Rows, Rows]:
        """Which of these rows of the table have one of the keys, ascending, and the row of the update set that has
        it."""
        found: list[tuple[Rows, Rows]] = []
        first = 0
        for batch in rows.to_batches():  # block by block, so that no column is copied into one piece
            at, key_rows = self._find(batch)
            found.append((at + first, key_rows))
            first += batch.num_rows
        nothing = np.zeros(0, np.intp)
        return (
            np.concatenate([nothing, *(at for at, _ in found)]),
            np.concatenate([nothing, *(key_rows for _, key_rows in found)]),
        )

    def _find(self, rows: pa.RecordBatch) -> tuple[Rows, Rows]:
        at: Rows | None = None
        codes = np.zeros(0, np.int64)
        for leaf, column, pairs in zip(self.leaves, self._columns, self._pairs, strict=True):
            array = leaf_values(rows, leaf)
            if at is not None:
                array = array.take(pa.array(at))
            chosen, numbers = column.find(_comparable(array, leaf), array)
            if at is None:
                at, codes = chosen, numbers
            else:
                at, numbers = at[chosen], codes[chosen] * column.count + numbers
                places = np.searchsorted(pairs, numbers).clip(max=len(pairs) - 1)
                is_key = pairs[places] == numbers
                at, codes = at[is_key], places[is_key]
            if not len(at):
                break
        if at is None or not len(at):
            return np.zeros(0, np.intp), np.zeros(0, np.intp)
        return at, self._row_of_code[codes]

    def _show(self, row: int, code: int) -> str:
        values = [
            f"{format_column(leaf.path)} = {array.slice(row, 1).to_string(indent=0).strip('[]').strip()}"
            for leaf, array in zip(self.leaves, self.values, strict=True)
        ]
        numbers = self._rows_with_key[np.flatnonzero(self.codes == code)[:2]].tolist()
        return f"{' and '.join(values)} in rows {numbers[0]} and {numbers[1]}"


class _KeyColumn:
    """The distinct values of one column of the keys, each with a number; `codes` has the number for each key."""

    def __init__(self, values: Comparable) -> None:
        self._octets: AnyArray = pa.nulls(0, pa.binary())
        if isinstance(values, np.ndarray):
            self._numbers, self.codes = np.unique(values, return_inverse=True)
            self.count = len(self._numbers)
            bits = min(_MOST_SLOT_BITS, max(8, (16 * self.count).bit_length()))
            self._shift = np.uint64(64 - bits)
            self._slots = np.zeros(1 << bits, np.bool_)
            self._slots[self._slot(self._numbers)] = True
        else:
            encoded = values.dictionary_encode()
            self._octets = encoded.dictionary
            self.codes = encoded.indices.to_numpy().astype(np.int64)
            self.count = len(encoded.dictionary)

    def find(self, values: Comparable, array: AnyArray) -> tuple[Rows, NDArray[np.int64]]:
        """Which values are among these, ascending, and their numbers; `array` knows which of them are null."""
        if not isinstance(values, np.ndarray):
            found: AnyArray = pc.index_in(values, value_set=self._octets)
            at = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
            return at, found.drop_null().to_numpy().astype(np.int64)
        if not self.count or not len(values):
            return np.zeros(0, np.intp), np.zeros(0, np.int64)
        if not array.null_count and (values[1:] >= values[:-1]).all():
            return self._find_sorted(values)
        # Most rows have none of the keys. Two bounds and a table of hashes rule out nearly all of them without a
        # search.
        is_near = (values >= self._numbers[0]) & (values <= self._numbers[-1])
        if array.null_count:
            is_near &= ~_null_mask(array)
        at = np.flatnonzero(is_near)
        at = at[self._slots[self._slot(values[at])]]
        wanted = values[at]
        places = np.searchsorted(self._numbers, wanted).clip(max=self.count - 1)
        is_found = self._numbers[places] == wanted
        return at[is_found], places[is_found]

    def _find_sorted(self, values: NDArray[np.int64]) -> tuple[Rows, NDArray[np.int64]]:
        """As `find`, for sorted values: only keys between the first and the last of them are searched for."""
        first, end = (
            np.searchsorted(self._numbers, values[0], "left"),
            np.searchsorted(self._numbers, values[-1], "right"),
        )
        wanted = self._numbers[first:end]
        begins = np.searchsorted(values, wanted, "left")
        counts = np.searchsorted(values, wanted, "right") - begins
        skipped = np.cumsum(counts) - counts
        at = np.repeat(begins - skipped, counts) + np.arange(int(counts.sum()))
        return at, np.repeat(np.arange(first, end), counts)

    def _slot(self, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
        slots: NDArray[np.uint64] = (numbers.view(np.uint64) * _MIXER) >> self._shift
        return slots


def _comparable(array: AnyArray, leaf: LeafColumn) -> Comparable:
    """The values in a form in which equal keys are equal; undefined where they are null."""
    if leaf.type.kind is TypeKind.FLOAT16:
        floats: NDArray[np.float64] = array.cast(pa.float32()).fill_null(0).to_numpy(zero_copy_only=False)
        return _bits(floats)
    values = stored_array(array, leaf.type)
    if not isinstance(values, np.ndarray):
        return values
    return _bits(values) if storage_of(leaf.type) is Storage.FLOAT else values.view(np.int64)


def _bits(floats: NDArray[np.floating]) -> NDArray[np.int64]:
    """Floats as the bits of doubles, with a single NaN and an unsigned zero."""
    doubles = floats.astype(np.float64) + 0.0
    doubles[np.isnan(doubles)] = np.nan
    return doubles.view(np.int64)


def _null_mask(array: AnyArray) -> NDArray[np.bool_]:
    if not array.null_count:
        return np.zeros(len(array), np.bool_)
    found: NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return found
