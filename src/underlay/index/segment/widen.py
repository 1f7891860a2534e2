"""Converts bounds of a leaf to its table's current type, where that was widened after they were stored.

They are converted exactly or dropped: a bound that does not fit, or would change its meaning, is dropped (T8, T14).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.index.entry import Flag
from underlay.index.segment.arrays import ChunkStatistics
from underlay.index.segment.packed import BoundColumn, empty_bounds
from underlay.schema.bound_storage import WIDE_DECIMAL_BYTES, Storage, storage_of
from underlay.schema.types import Scalar, TypeKind

Objects = NDArray[np.object_]
"""Python integers."""

_UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_DAY_NS = 86_400_000_000_000
_SIGNED = (TypeKind.INT8, TypeKind.INT16, TypeKind.INT32, TypeKind.INT64)
_UNSIGNED = (TypeKind.UINT8, TypeKind.UINT16, TypeKind.UINT32, TypeKind.UINT64)
_DOUBLE_EXACT = 2**53
UUID_BYTES = 16
_LOW = Flag.HAS_LOW | Flag.IS_LOW_EXACT
_HIGH = Flag.HAS_HIGH | Flag.IS_HIGH_EXACT


def widened(statistics: ChunkStatistics, scalar: Scalar) -> ChunkStatistics:
    """The statistics in another type; unchanged when it is the same."""
    found = statistics.type
    if found == scalar:
        return statistics
    if _has_same_bounds(found, scalar):
        return replace(statistics, type=scalar)
    factor = _factor(found, scalar)
    if factor is None or statistics.low is None or statistics.high is None or storage_of(scalar) is Storage.NONE:
        return _without_bounds(statistics, scalar)
    low, is_low_lost = _multiplied(statistics.low, factor, scalar)
    high, is_high_lost = _multiplied(statistics.high, factor, scalar)
    flags = statistics.flags.copy()
    flags[is_low_lost] &= np.uint8(0xFF ^ _LOW)
    flags[is_high_lost] &= np.uint8(0xFF ^ _HIGH)
    return replace(statistics, type=scalar, low=low, high=high, flags=flags)


def _has_same_bounds(found: Scalar, wanted: Scalar) -> bool:
    """Whether every bound of one type is stored alike in the other, with the same meaning."""
    for kinds in (_SIGNED, _UNSIGNED, (TypeKind.FLOAT32, TypeKind.FLOAT64), (TypeKind.FIXED, TypeKind.BINARY)):
        if found.kind in kinds and wanted.kind in kinds:
            return kinds.index(found.kind) < kinds.index(wanted.kind)
    if found.kind is TypeKind.FIXED and wanted.kind is TypeKind.UUID:
        return found.length == UUID_BYTES
    return found.kind is wanted.kind is TypeKind.DECIMAL and (
        found.scale == wanted.scale and found.precision <= wanted.precision and storage_of(found) is storage_of(wanted)
    )


def _factor(found: Scalar, wanted: Scalar) -> int | None:
    """The factor by which an integer of one type means the same in the other; None when there is none."""
    is_integer = found.kind in (*_SIGNED, *_UNSIGNED)
    match wanted.kind:
        case TypeKind.DECIMAL if is_integer:
            return int(10**wanted.scale)
        case TypeKind.DECIMAL if found.kind is TypeKind.DECIMAL and wanted.scale >= found.scale:
            return int(10 ** (wanted.scale - found.scale))
        case TypeKind.INT64 | TypeKind.INT32 | TypeKind.INT16 | TypeKind.FLOAT64 if is_integer:
            return 1
        case TypeKind.TIMESTAMP if wanted.unit is not None and (wanted.zone is None) == (found.zone is None):
            source = _DAY_NS if found.kind is TypeKind.DATE else _UNIT_NS.get(found.unit or "", 0)
            is_time = found.kind in (TypeKind.DATE, TypeKind.TIMESTAMP) and source >= _UNIT_NS[wanted.unit]
            return source // _UNIT_NS[wanted.unit] if is_time else None
    return None


def _multiplied(bounds: BoundColumn, factor: int, scalar: Scalar) -> tuple[BoundColumn, NDArray[np.bool_]]:
    """The bounds in the new storage, and which of them the new type cannot hold."""
    values = _integers(bounds) * factor
    limit = _limit(scalar)
    is_lost = np.asarray((values > limit[1]) | (values < limit[0]), dtype=np.bool_)
    values[is_lost] = 0
    storage = storage_of(scalar)
    if storage is Storage.BYTES:
        packed = [value.to_bytes(WIDE_DECIMAL_BYTES, "big", signed=True) for value in values]
        return pa.array(packed, pa.binary()), is_lost
    return values.astype(storage.value), is_lost


def _integers(bounds: BoundColumn) -> Objects:
    found = np.empty(len(bounds), dtype=np.object_)
    if isinstance(bounds, np.ndarray):
        found[:] = bounds.tolist()
    else:
        found[:] = [int.from_bytes(value or b"", "big", signed=True) for value in bounds.to_pylist()]
    return found


def _limit(scalar: Scalar) -> tuple[int, int]:
    match scalar.kind:
        case TypeKind.DECIMAL:
            return 1 - 10**scalar.precision, 10**scalar.precision - 1
        case TypeKind.FLOAT64:
            return -_DOUBLE_EXACT, _DOUBLE_EXACT
        case TypeKind.INT16 | TypeKind.INT32:
            bits = 15 if scalar.kind is TypeKind.INT16 else 31
            return -(1 << bits), (1 << bits) - 1
    return -(1 << 63), (1 << 63) - 1


def _without_bounds(statistics: ChunkStatistics, scalar: Scalar) -> ChunkStatistics:
    empty = empty_bounds(storage_of(scalar), len(statistics.flags))
    flags = (statistics.flags & np.uint8(0xFF ^ (_LOW | _HIGH))) | np.uint8(Flag.MAY_HOLD_NAN)
    return replace(statistics, type=scalar, low=empty, high=empty, flags=flags)
