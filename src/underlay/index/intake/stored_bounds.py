"""Converts bounds of one leaf over many row groups from the file's bytes to the table's storage, exactly or not at all.

A lower bound may only fall and an upper bound only rise on the way. What cannot be converted becomes no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

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

Side = Literal["low", "high"]

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


@dataclass(slots=True)
class StoredSide:
    """Stored bounds of one side: bytes of `data` from `begin` on, where `has`. `exact` is 1, 0, or -1 for not said."""

    data: bytes
    begin: Integers
    length: Integers
    has: Flags
    exact: NDArray[np.int8]


@dataclass(slots=True)
class Bounds:
    """Bounds of one side in the table's storage. Values where `has` is false mean nothing."""

    values: NDArray[Any] | list[bytes] | pa.BinaryArray  # Any: int64, uint64 or float64, by storage
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


def decode_bounds(found: StoredSide, form: BoundForm, side: Side) -> Bounds:
    """One side's bounds, as values of the table's type."""
    if form.leaf.physical_type in _DTYPES:
        return _from_numbers(found, form, side)
    if form.wanted.kind is TypeKind.DECIMAL:
        return _from_decimals(found, form)
    return _from_bytes(found, form.leaf, form.wanted, side)


def _from_numbers(found: StoredSide, form: BoundForm, side: Side) -> Bounds:
    leaf, held, wanted = form.leaf, form.held, form.wanted
    dtype = np.dtype(_UNSIGNED.get(held.kind, _DTYPES[leaf.physical_type]))
    has = found.has & (found.length == dtype.itemsize)
    stored = _numbers_at(found.data, np.where(has, found.begin, 0), dtype)
    exact = has & (found.exact != 0)
    if wanted.kind is TypeKind.DECIMAL and form.storage is Storage.BYTES:
        return _wide_decimals(stored.tolist(), has, exact, wanted.scale - held.scale)
    if form.storage is Storage.FLOAT:
        return _from_floats(stored.astype(np.float64), has, exact, side)
    values = stored.astype(np.uint64 if form.storage is Storage.UINT else np.int64)
    bounds = Bounds(values, has, exact)
    if wanted.kind is TypeKind.DECIMAL:
        return _multiplied(bounds, 10 ** (wanted.scale - held.scale))
    if held.kind is TypeKind.DATE and wanted.kind is TypeKind.TIMESTAMP:
        return _multiplied(bounds, _DAY_SECONDS * 1000 ** UNITS.index(wanted.unit or ""))
    if wanted.kind in (TypeKind.TIME, TypeKind.TIMESTAMP):
        return _in_unit(bounds, held.unit or "", wanted.unit or "", side)
    return bounds


def _numbers_at(data: bytes, begins: Integers, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers at any positions. Any: the type is known only at run time."""
    if len(data) < dtype.itemsize:  # a footer without bounds
        return np.zeros(begins.size, dtype)
    # All windows of a number's size, one at each byte: opaque items need no alignment.
    window = np.ndarray((len(data) - dtype.itemsize + 1,), f"V{dtype.itemsize}", buffer=data, strides=(1,))
    return window[begins].view(dtype)


def _from_floats(values: NDArray[np.float64], has: Flags, exact: Flags, side: Side) -> Bounds:
    """NaN is not a bound, and a bound of zero covers both zeros."""
    has = has & ~np.isnan(values)
    values = np.where(values == 0.0, -0.0 if side == "low" else 0.0, values)
    return Bounds(values, has, exact & has)


def _multiplied(bounds: Bounds, factor: int) -> Bounds:
    """The bounds times `factor`; those that would not fit are dropped."""
    values = np.asarray(bounds.values, np.int64)
    limit = _MAX_INT64 // factor
    has = bounds.has & (values >= -limit) & (values <= limit)
    return Bounds(np.where(has, values, 0) * min(factor, _MAX_INT64), has, bounds.exact & has)


def _in_unit(bounds: Bounds, unit: str, wanted: str, side: Side) -> Bounds:
    steps = UNITS.index(wanted) - UNITS.index(unit)
    if steps >= 0:
        return _multiplied(bounds, 1000**steps)
    values, divisor = np.asarray(bounds.values, np.int64), 1000**-steps
    whole = values // divisor
    is_whole = values % divisor == 0
    if side == "high":
        whole = whole + ~is_whole
    return Bounds(whole, bounds.has, bounds.exact & is_whole)


def _raw(found: StoredSide) -> list[bytes]:
    """The stored bytes, empty where there is no bound."""
    spans = zip(found.begin.tolist(), found.length.tolist(), found.has.tolist(), strict=True)
    return [found.data[begin : begin + length] if has else b"" for begin, length, has in spans]


def _raw_array(found: StoredSide, has: Flags) -> pa.BinaryArray:
    """As `_raw`, for many short ones, without an object for each."""
    lengths = found.length * has
    offsets = np.zeros(lengths.size + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    octets = np.frombuffer(found.data, np.uint8).take(ragged_ranges(found.begin, lengths))
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(octets.data)]
    array = pa.Array.from_buffers(pa.binary(), lengths.size, buffers)
    assert isinstance(array, pa.BinaryArray)
    return array


def _from_decimals(found: StoredSide, form: BoundForm) -> Bounds:
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
    fits = np.array([-_MAX_INT64 <= number <= _MAX_INT64 for number in scaled], np.bool_)
    values = [number if fit else 0 for number, fit in zip(scaled, fits.tolist(), strict=True)]
    return Bounds(np.array(values, np.int64), has & fits, exact & fits)


def _wide_decimals(numbers: list[int], has: Flags, exact: Flags, steps: int) -> Bounds:
    """Unscaled integers as 16 bytes that are ordered as signed numbers."""
    limit = 1 << (8 * WIDE_DECIMAL_BYTES - 1)
    scaled = [number * 10**steps for number in numbers]
    fits = np.array([-limit <= number < limit for number in scaled], np.bool_)
    values = [
        number.to_bytes(WIDE_DECIMAL_BYTES, "big", signed=True) if fit else b""
        for number, fit in zip(scaled, fits.tolist(), strict=True)
    ]
    return Bounds(values, has & fits, exact & fits)


def _from_bytes(found: StoredSide, leaf: Leaf, wanted: Scalar, side: Side) -> Bounds:
    """Text and bytes, cut to a bounded length; exact only where the file says so, or where the length is fixed."""
    width = leaf.node.type_length if leaf.physical_type is PhysicalType.FIXED_LEN_BYTE_ARRAY else None
    has = found.has.copy()
    exact = has & (found.exact == 1)
    if width is not None:
        has &= found.length == width if wanted.kind is TypeKind.UUID else found.length <= width
        exact = has & (found.exact != 0) & (found.length == width)
    is_long = has & (found.length > MAX_BOUND_BYTES)
    if has.size >= _MANY and not is_long.any():
        return Bounds(_raw_array(found, has), has, exact & has)
    values = _raw(found)
    for index in np.flatnonzero(is_long).tolist():
        short = (
            shorten_low(values[index]) if side == "low" else shorten_high(values[index], wanted.kind is TypeKind.STRING)
        )
        values[index] = short or b""
        has[index] = short is not None
        exact[index] = False
    return Bounds(values, has, exact & has)


def is_inverted(low: Bounds, high: Bounds, wanted: Scalar) -> Flags:
    """Where the lower bound is above the upper one: neither can be trusted."""
    return low.has & high.has & _is_above(low, high, wanted)


def drop_both(low: Bounds, high: Bounds, where: Flags) -> None:
    """Drop both sides where `where` is true."""
    kept = ~where
    for bounds in (low, high):
        bounds.has &= kept
        bounds.exact &= kept


def _is_above(low: Bounds, high: Bounds, wanted: Scalar) -> Flags:
    if isinstance(low.values, np.ndarray):
        above: Flags = low.values > high.values
        return above
    if isinstance(low.values, pa.BinaryArray) and isinstance(high.values, pa.BinaryArray):
        return pc.greater(low.values, high.values).to_numpy(zero_copy_only=False)
    left, right = _listed(low), _listed(high)
    if wanted.kind is TypeKind.DECIMAL:  # two's complement: with the sign bit flipped, bytes sort as numbers
        left, right = [_turn_sign(value) for value in left], [_turn_sign(value) for value in right]
    return np.array([one > other for one, other in zip(left, right, strict=True)], np.bool_)


def _listed(bounds: Bounds) -> list[bytes]:
    return (
        [value or b"" for value in bounds.values.to_pylist()]
        if isinstance(bounds.values, pa.Array)
        else list(bounds.values)
    )


def _turn_sign(value: bytes) -> bytes:
    return bytes([value[0] ^ 0x80]) + value[1:] if value else value
