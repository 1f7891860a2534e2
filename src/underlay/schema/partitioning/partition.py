"""Partition values: computed from a column, and the bounds that they imply for it.

Points in time are counted in UTC, and rounded down before 1970 as after it. Nulls stay null. Minus zero is stored as
zero, and every NaN as one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.errors import BadPredicate
from underlay.prune import BoundArray, Operand
from underlay.schema.arrow_aliases import AnyArray, AnyChunks
from underlay.schema.bound_storage import bound_domain
from underlay.schema.convert.default import UNIT_NS
from underlay.schema.convert.stored_values import from_stored, null_mask, one_array, stored_array
from underlay.schema.partitioning.bucket import bucket_of_key, buckets_of
from underlay.schema.partitioning.transform import BUCKET, HOUR, IDENTITY, MONTH, TRUNCATE, YEAR, PartitionField
from underlay.schema.types import TypeKind

_HOUR_NS = 3_600 * UNIT_NS["s"]
_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_INT64 = np.iinfo(np.int64)

Integers = NDArray[np.int64]


def apply_transform(field: PartitionField, array: AnyArray | AnyChunks) -> AnyArray:
    """The partition value of each row, as an Arrow array of `field.type`."""
    plain = one_array(array)
    if field.transform == IDENTITY:
        return _one_zero(plain) if field.source.kind in (TypeKind.FLOAT32, TypeKind.FLOAT64) else plain
    if field.transform == TRUNCATE and field.source.kind is TypeKind.STRING:
        return pc.utf8_slice_codeunits(plain, 0, field.width)
    if field.transform == TRUNCATE and field.source.kind is TypeKind.BINARY:
        return pc.binary_slice(plain, 0, field.width)
    values = stored_array(plain, field.source)
    if field.transform == BUCKET:
        return from_stored(buckets_of(values, field.source, field.width, field.hash), field.type, null_mask(plain))
    numbers = np.asarray(values)
    found = _truncated(numbers, field) if field.transform == TRUNCATE else _periods(numbers, field)
    return from_stored(found, field.type, null_mask(plain))


def source_bounds(field: PartitionField, values: BoundArray) -> tuple[BoundArray, BoundArray] | None:
    """The least and greatest value of the source that each partition value allows; None for buckets.

    Values and bounds are as `Storage` has them: numpy numbers, where the caller knows which are null, or a pyarrow
    binary array. A null greatest value means unbounded. Bounds of text bound the values and need not occur.
    """
    if field.transform == BUCKET:
        return None
    if field.transform == IDENTITY:
        return values, values
    if isinstance(values, np.ndarray):
        return _truncated_span(values, field) if field.transform == TRUNCATE else _period_span(values, field)
    return values, _prefix_ends(values, field)


def bucket_of_literal(field: PartitionField, literal: Operand) -> int | None:
    """The only bucket with rows that equal the literal; None when that is not certain."""
    if field.transform != BUCKET or literal is None:
        return None
    try:
        key = bound_domain(field.source).exact_key(literal)
    except BadPredicate:
        return None
    return bucket_of_key(key, field.source, field.width, field.hash) if isinstance(key, int | bytes) else None


def _one_zero(array: AnyArray) -> AnyArray:
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes the quiet one
        clean = np.where(np.isnan(values), np.array(np.nan, dtype=values.dtype), values + values.dtype.type(0))
    return pa.array(clean, array.type, mask=null_mask(array))


def _periods(values: Integers, field: PartitionField) -> Integers:
    """Years, months, days or hours since 1970."""
    if field.transform == HOUR:
        return values // (_HOUR_NS // UNIT_NS[field.source.unit or "us"])
    days = values // _units_per_day(field)
    if field.transform == MONTH:
        return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return days.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) if field.transform == YEAR else days


def _period_span(values: Integers, field: PartitionField) -> tuple[Integers, Integers]:
    if field.transform == HOUR:
        units = _HOUR_NS // UNIT_NS[field.source.unit or "us"]
        return _begin(values, units), _end(values + 1, units)
    units = _units_per_day(field)
    return _begin(_first_days(values, field), units), _end(_first_days(values + 1, field), units)


def _first_days(periods: Integers, field: PartitionField) -> Integers:
    if field.transform == MONTH:
        return periods.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return (
        periods.astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64) if field.transform == YEAR else periods
    )


def _begin(periods: Integers, units: int) -> Integers:
    """The first unit of a period, or the first that 64 bits hold."""
    fits = periods >= -(-int(_INT64.min) // units)
    return np.where(fits, np.where(fits, periods, 0) * units, _INT64.min)


def _end(next_periods: Integers, units: int) -> Integers:
    """The last unit before a period, or the last that 64 bits hold."""
    fits = next_periods <= int(_INT64.max) // units
    return np.where(fits, np.where(fits, next_periods, 0) * units - 1, _INT64.max)


def _units_per_day(field: PartitionField) -> int:
    unit = field.source.unit
    return 1 if unit is None else 24 * _HOUR_NS // UNIT_NS[unit]


def _truncated(values: NDArray[Any], field: PartitionField) -> NDArray[Any]:
    """Rounded down to a multiple, or to the least value of the type where that is greater."""
    limits = np.iinfo(_integer_name(field))
    remainder = values % values.dtype.type(field.width)
    fits = values >= limits.min + remainder
    return np.where(fits, values - np.where(fits, remainder, 0), limits.min)


def _truncated_span(values: NDArray[Any], field: PartitionField) -> tuple[NDArray[Any], NDArray[Any]]:
    limits = np.iinfo(_integer_name(field))
    width = values.dtype.type(field.width)
    further = width - values % width - values.dtype.type(1)
    last = values.dtype.type(limits.max)
    fits = further <= last - np.maximum(values, 0)  # no value below zero has a multiple so far above it
    return values, np.where(fits, values + np.where(fits, further, 0), last)


def _integer_name(field: PartitionField) -> str:
    return str(field.source.kind.value)


def _prefix_ends(values: AnyArray, field: PartitionField) -> AnyArray:
    """At or above every value with this prefix; the value itself when it is shorter than the prefixes are."""
    end_of = _text_end if field.source.kind is TypeKind.STRING else _bytes_end
    encoded = values.dictionary_encode()
    ends = pa.array([end_of(value, field.width) for value in encoded.dictionary.to_pylist()], pa.binary())
    return ends.take(encoded.indices)


def _text_end(prefix: bytes, width: int) -> bytes | None:
    text = prefix.decode()
    if len(text) < width:
        return prefix
    text = text.rstrip(chr(_LAST_CHARACTER))
    if not text:
        return None
    following = ord(text[-1]) + 1
    return (text[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)).encode()


def _bytes_end(prefix: bytes, width: int) -> bytes | None:
    if len(prefix) < width:
        return prefix
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None
