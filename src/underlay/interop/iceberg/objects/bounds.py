"""Bounds and counts of a leaf by file, as Iceberg's readers may have them.

Readers answer min() and max() from bounds, so a bound of a number is a value of the file or is left out (X4). There are
none for UUIDs, which Java orders differently (X7), none where NaN may be (X8), and none that are zero for floats, since
the widened one would be answered as -0.0 (X13).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from underlay.index.entry import Flag
from underlay.index.segment.arrays import Arrays, ChunkStatistics
from underlay.index.segment.bounds import has_flag, trusted_bounds
from underlay.index.segment.packed import MAX_BOUND_BYTES
from underlay.interop.iceberg.columns.types import IcebergType, scalar_type
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.table_schema import LeafColumn
from underlay.schema.types import Scalar, TypeKind

BoolArray = NDArray[np.bool_]
Numbers = NDArray[np.int64]
_FLOATS = (TypeKind.FLOAT32, TypeKind.FLOAT64)
_INEXACT = (TypeKind.STRING, TypeKind.BINARY)
"""Types whose bounds need not be values: no reader answers with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafMetrics:
    """What is known of one leaf, a value for each file; None where nothing is."""

    field: int
    sizes: Sequence[int | None]
    values: Sequence[int | None]
    nulls: Sequence[int | None]
    nans: Sequence[int | None]
    lows: Sequence[bytes | None]
    highs: Sequence[bytes | None]


def leaf_metrics(arrays: Arrays, leaf: LeafColumn) -> LeafMetrics | None:
    """The metrics of one leaf; None when no file has it."""
    statistics, places = arrays.statistics(leaf.id), arrays.places(leaf.id)
    if statistics is None or places is None:
        return None
    files = arrays.files
    has_column = files.columns_of(leaf.id) >= 0
    none: list[Any] = [None] * files.file_count
    sizes = _known(_summed(places.sizes, arrays), has_column)
    if leaf.is_repeated or places.value_counts is not None:
        return LeafMetrics(field=leaf.id, sizes=sizes, values=none, nulls=none, nans=none, lows=none, highs=none)
    rows = _summed(arrays.block_rows, arrays)
    has_nulls = has_column & _all(has_flag(statistics.flags, Flag.HAS_NULL_COUNT), arrays)
    bounds = trusted_bounds(statistics, arrays.block_rows)
    has_nulls &= _all(bounds.null_count >= 0, arrays)
    is_nan_free = has_column & _all(~bounds.may_hold_nan, arrays)
    lows, highs = _bounds(
        arrays, leaf.type, statistics, has_column & (is_nan_free | np.bool_(leaf.type.kind not in _FLOATS))
    )
    return LeafMetrics(
        field=leaf.id,
        sizes=sizes,
        values=_known(rows, has_column),
        nulls=_known(_summed(np.maximum(bounds.null_count, 0), arrays), has_nulls),
        nans=_known(np.zeros(files.file_count, np.int64), is_nan_free) if leaf.type.kind in _FLOATS else none,
        lows=lows,
        highs=highs,
    )


def _bounds(
    arrays: Arrays, scalar: Scalar, statistics: ChunkStatistics, may_have: BoolArray
) -> tuple[Sequence[bytes | None], Sequence[bytes | None]]:
    none: list[bytes | None] = [None] * arrays.files.file_count
    type_ = scalar_type(scalar)
    if not isinstance(type_, IcebergType) or storage_of(scalar) is Storage.NONE or scalar.kind is TypeKind.UUID:
        return none, none
    (ranges,) = trusted_bounds(statistics, arrays.block_rows).ranges
    counts = ~(trusted_bounds(statistics, arrays.block_rows).is_all_null | (arrays.block_rows == 0))
    is_low = ranges.has_minimum & _is_usable(scalar, statistics, Flag.IS_LOW_EXACT)
    is_high = ranges.has_maximum & _is_usable(scalar, statistics, Flag.IS_HIGH_EXACT)
    has_value = _any(counts, arrays) & may_have
    lows = _extremes(arrays, ranges.minimum, counts, has_value & _all(is_low | ~counts, arrays), np.minimum)
    highs = _extremes(arrays, ranges.maximum, counts, has_value & _all(is_high | ~counts, arrays), np.maximum)
    return [_packed(one, type_, scalar) for one in lows], [_packed(one, type_, scalar) for one in highs]


def _is_usable(scalar: Scalar, statistics: ChunkStatistics, exact: Flag) -> BoolArray:
    if scalar.kind in _INEXACT:
        return np.ones(len(statistics.flags), dtype=np.bool_)
    found: BoolArray = has_flag(statistics.flags, exact)
    return found if scalar.length <= MAX_BOUND_BYTES else np.zeros(len(found), dtype=np.bool_)


def _packed(value: Any, type_: IcebergType, scalar: Scalar) -> bytes | None:  # noqa: ANN401  # a number or bytes, by type
    if value is None or (scalar.kind in _FLOATS and value == 0):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    return type_.pack(value)


def _extremes(arrays: Arrays, keys: Any, counts: BoolArray, has: BoolArray, pick: Any) -> list[Any]:  # noqa: ANN401  # keys of any domain
    """The least or greatest of the keys that count, by file; None where `has` is false."""
    begins, found = arrays.files.block_begin.tolist(), list[Any]()
    values = np.asarray(keys)
    is_one = np.diff(arrays.files.block_begin) == 1
    for file, (is_there, is_single) in enumerate(zip(has.tolist(), is_one.tolist(), strict=True)):
        begin, end = begins[file], begins[file + 1]
        if not is_there:
            found.append(None)
        elif is_single:
            found.append(values[begin])
        else:
            some = values[begin:end][counts[begin:end]]
            found.append(min(some) if pick is np.minimum else max(some))
    return found


def _summed(values: Numbers, arrays: Arrays) -> Numbers:
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=sums[1:])
    begin = arrays.files.block_begin
    return sums[begin[1:]] - sums[begin[:-1]]


def _all(holds: BoolArray, arrays: Arrays) -> BoolArray:
    return np.asarray(_summed((~holds).astype(np.int64), arrays) == 0, dtype=np.bool_)


def _any(holds: BoolArray, arrays: Arrays) -> BoolArray:
    return np.asarray(_summed(holds.astype(np.int64), arrays) > 0, dtype=np.bool_)


def _known(values: Numbers, is_known: BoolArray) -> list[int | None]:
    return [value if known else None for value, known in zip(values.tolist(), is_known.tolist(), strict=True)]
