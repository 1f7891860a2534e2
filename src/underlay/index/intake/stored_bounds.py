"""Converts bounds of leaves over many row groups from the file's bytes to the table's storage, exactly or not at all.

A lower bound may only fall and an upper bound only rise on the way. What cannot be converted becomes no bound. Both
sides are in one array, [leaves, 2, row groups], since the cost of a small file is the number of numpy calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.index.segment.packed import MAX_BOUND_BYTES, shorten_high, shorten_low
from underlay.parquet.footer.schema import Leaf
from underlay.parquet.records.records import Flags, Integers
from underlay.parquet.thrift.tape import ragged_ranges
from underlay.schema.bound_storage import WIDE_DECIMAL_BYTES, Storage
from underlay.schema.types import UNITS, Scalar, TypeKind
from underlay.values.physical import PhysicalType

_DTYPES = {
    PhysicalType.BOOLEAN: "u1",
    PhysicalType.INT32: "<i4",
    PhysicalType.INT64: "<i8",
    PhysicalType.FLOAT: "<f4",
    PhysicalType.DOUBLE: "<f8",
}
_UNSIGNED = {TypeKind.UINT8: "<u4", TypeKind.UINT16: "<u4", TypeKind.UINT32: "<u4", TypeKind.UINT64: "<u8"}
_DAY_SECONDS = 86_400
_MAX_INT64 = 2**63 - 1
_MANY = 64
"""From here on one Arrow array is faster than a Python object for each bound."""


LOW, HIGH = 0, 1
"""The sides, by their positions."""

_ZEROS = np.array([[-0.0], [0.0]])
"""A bound of zero on either side: it covers both zeros."""


@dataclass(slots=True)
class StoredBounds:
    """Stored bounds of leaves [leaves, 2, row groups]: bytes of `data` from `begin` on, where `has`. `exact` is 1, 0,
    or -1 where the file does not say."""

    data: bytes
    begin: Integers
    length: Integers
    has: Flags
    exact: NDArray[np.int8]


BoundValues: TypeAlias = "NDArray[Any] | list[bytes] | pa.BinaryArray"  # Any: int64, uint64 or float64, by storage


@dataclass(slots=True)
class Bounds:
    """Bounds in the table's storage; `has` and `exact` are [leaves, 2, row groups], and so are values of numbers. Those
    of bytes are in the same order. Values where `has` is false mean nothing."""

    values: BoundValues
    has: Flags
    exact: Flags


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundForm:
    """How bounds are stored in a file and in the index: the leaf, the type it holds, and the table's type.

    `wanted` is a type that takes every value of `held`.
    """

    leaf: Leaf
    held: Scalar
    wanted: Scalar
    storage: Storage


def decode_bounds(found: StoredBounds, form: BoundForm) -> Bounds:
    """The bounds as values of the table's type."""
    if form.leaf.physical_type in _DTYPES:
        return _from_numbers(found, form)
    if form.wanted.kind is TypeKind.DECIMAL:
        return _from_decimals(found, form)
    return _from_bytes(found, form.leaf, form.wanted)


def _from_numbers(found: StoredBounds, form: BoundForm) -> Bounds:
    leaf, held, wanted = form.leaf, form.held, form.wanted
    dtype = np.dtype(_UNSIGNED.get(held.kind, _DTYPES[leaf.physical_type]))
    has = found.has & (found.length == dtype.itemsize)
    stored = _numbers_at(found.data, found.begin * has, dtype)
    exact = has & (found.exact != 0)
    if wanted.kind is TypeKind.DECIMAL and form.storage is Storage.BYTES:
        return _wide_decimals(stored.ravel().tolist(), has, exact, wanted.scale - held.scale)
    if form.storage is Storage.FLOAT:
        return _from_floats(stored.astype(np.float64), has, exact)
    values = stored.astype(np.uint64 if form.storage is Storage.UINT else np.int64)
    bounds = Bounds(values, has, exact)
    if wanted.kind is TypeKind.DECIMAL:
        return _multiplied(bounds, 10 ** (wanted.scale - held.scale))
    if held.kind is TypeKind.DATE and wanted.kind is TypeKind.TIMESTAMP:
        return _multiplied(bounds, _DAY_SECONDS * 1000 ** UNITS.index(wanted.unit or ""))
    if wanted.kind in (TypeKind.TIME, TypeKind.TIMESTAMP):
        return _in_unit(bounds, held.unit or "", wanted.unit or "")
    return bounds


def _numbers_at(data: bytes, begins: Integers, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers at any positions. Any: the type is known only at run time."""
    if len(data) < dtype.itemsize:  # a footer without bounds
        return np.zeros(begins.shape, dtype)
    # All windows of a number's size, one at each byte: opaque items need no alignment.
    window = np.ndarray((len(data) - dtype.itemsize + 1,), f"V{dtype.itemsize}", buffer=data, strides=(1,))
    return window[begins].view(dtype)


def _from_floats(values: NDArray[np.float64], has: Flags, exact: Flags) -> Bounds:
    """NaN is not a bound, and a bound of zero covers both zeros."""
    has = has & ~np.isnan(values)
    return Bounds(np.where(values == 0.0, _ZEROS, values), has, exact & has)


def _multiplied(bounds: Bounds, factor: int) -> Bounds:
    """The bounds times `factor`; those that would not fit are dropped."""
    values = np.asarray(bounds.values, np.int64)
    limit = _MAX_INT64 // factor
    has = bounds.has & (values >= -limit) & (values <= limit)
    return Bounds(np.where(has, values, 0) * min(factor, _MAX_INT64), has, bounds.exact & has)


def _in_unit(bounds: Bounds, unit: str, wanted: str) -> Bounds:
    steps = UNITS.index(wanted) - UNITS.index(unit)
    if steps >= 0:
        return _multiplied(bounds, 1000**steps)
    values, divisor = np.asarray(bounds.values, np.int64), 1000**-steps
    whole = values // divisor
    is_whole = values % divisor == 0
    whole[:, HIGH] += ~is_whole[:, HIGH]
    return Bounds(whole, bounds.has, bounds.exact & is_whole)


def _raw(found: StoredBounds) -> list[bytes]:
    """The stored bytes, empty where there is no bound."""
    columns = (found.begin, found.length, found.has)
    spans = zip(*(column.ravel().tolist() for column in columns), strict=True)
    return [found.data[begin : begin + length] if has else b"" for begin, length, has in spans]


def _raw_array(found: StoredBounds, has: Flags) -> pa.BinaryArray:
    """As `_raw`, for many short ones, without an object for each."""
    lengths = (found.length * has).ravel()
    offsets = np.zeros(lengths.size + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    octets = np.frombuffer(found.data, np.uint8).take(ragged_ranges(found.begin.ravel(), lengths))
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(octets.data)]
    array = pa.Array.from_buffers(pa.binary(), lengths.size, buffers)
    assert isinstance(array, pa.BinaryArray)
    return array


def _from_decimals(found: StoredBounds, form: BoundForm) -> Bounds:
    """Big-endian two's complement of any length. A truncated one is not a number; one of variable length may be one."""
    leaf, held, wanted = form.leaf, form.held, form.wanted
    is_fixed = leaf.physical_type is PhysicalType.FIXED_LEN_BYTE_ARRAY
    is_whole = found.length == (leaf.node.type_length or 0) if is_fixed else found.length > 0
    has = found.has & is_whole & (found.exact != 0)
    exact = has & ((found.exact == 1) | is_fixed)
    numbers = [int.from_bytes(value, "big", signed=True) for value in _raw(found)]
    steps = wanted.scale - held.scale
    if form.storage is Storage.BYTES:
        return _wide_decimals(numbers, has, exact, steps)
    scaled = [number * 10**steps for number in numbers]
    fit = [-_MAX_INT64 <= number <= _MAX_INT64 for number in scaled]
    fits = np.array(fit, np.bool_).reshape(has.shape)
    values = [number if does_fit else 0 for number, does_fit in zip(scaled, fit, strict=True)]
    return Bounds(np.array(values, np.int64).reshape(has.shape), has & fits, exact & fits)


def _wide_decimals(numbers: list[int], has: Flags, exact: Flags, steps: int) -> Bounds:
    """Unscaled integers as 16 bytes that are ordered as signed numbers."""
    limit = 1 << (8 * WIDE_DECIMAL_BYTES - 1)
    scaled = [number * 10**steps for number in numbers]
    fit = [-limit <= number < limit for number in scaled]
    fits = np.array(fit, np.bool_).reshape(has.shape)
    values = [
        number.to_bytes(WIDE_DECIMAL_BYTES, "big", signed=True) if does_fit else b""
        for number, does_fit in zip(scaled, fit, strict=True)
    ]
    return Bounds(values, has & fits, exact & fits)


def _from_bytes(found: StoredBounds, leaf: Leaf, wanted: Scalar) -> Bounds:
    """Text and bytes, cut to a bounded length; exact only where the file says so, or where the length is fixed."""
    width = leaf.node.type_length if leaf.physical_type is PhysicalType.FIXED_LEN_BYTE_ARRAY else None
    has = found.has.copy()
    exact = has & (found.exact == 1)
    if width is not None:
        has &= found.length == width if wanted.kind is TypeKind.UUID else found.length <= width
        exact = has & (found.exact != 0) & (found.length == width)
    is_long = has & (found.length > MAX_BOUND_BYTES)
    is_any_long = is_long.any()
    if has.size >= _MANY and not is_any_long:
        return Bounds(_raw_array(found, has), has, exact & has)
    values = _raw(found)
    if is_any_long:
        row_groups = has.shape[-1]
        for index in np.flatnonzero(is_long).tolist():
            is_low = index // row_groups % 2 == LOW
            value, is_text = values[index], wanted.kind is TypeKind.STRING
            short = shorten_low(value) if is_low else shorten_high(value, is_text)
            values[index] = short or b""
            has.flat[index] = short is not None
            exact.flat[index] = False
    return Bounds(values, has, exact & has)


def is_inverted(bounds: Bounds, wanted: Scalar) -> Flags:
    """Where the lower bound is above the upper one, so that neither can be trusted [leaves, row groups]."""
    has = bounds.has
    return has[:, LOW] & has[:, HIGH] & _is_above(bounds, wanted)


def _is_above(bounds: Bounds, wanted: Scalar) -> Flags:
    """Where the lower bound is above the upper one [leaves, row groups]."""
    values, shape = bounds.values, bounds.has.shape
    if isinstance(values, np.ndarray):
        above: Flags = values[:, LOW] > values[:, HIGH]
        return above
    places = np.arange(len(values)).reshape(shape)
    low, high = places[:, LOW].ravel(), places[:, HIGH].ravel()
    if isinstance(values, pa.BinaryArray):
        found = pc.greater(values.take(low), values.take(high)).to_numpy(zero_copy_only=False)
    else:
        if wanted.kind is TypeKind.DECIMAL:  # two's complement: with the sign bit flipped, bytes sort as numbers
            values = [_turn_sign(value) for value in values]
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        found = np.array([values[one] > values[other] for one, other in pairs], np.bool_)
    return found.reshape(shape[0], shape[-1])


def _turn_sign(value: bytes) -> bytes:
    return bytes([value[0] ^ 0x80]) + value[1:] if value else value
