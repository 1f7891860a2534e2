"""How bounds of a column type are stored in the index, and how they are ordered.

Bounds are stored in the *table's* type: a file's bounds are converted exactly when the file comes in, or left out.
"""

from __future__ import annotations

from enum import Enum

from underlay.prune import (
    Binary,
    Booleans,
    Decimals,
    Domain,
    FixedBinary,
    Floats,
    Integers,
    Text,
    Times,
    TimesOfDay,
    Unit,
    Unordered,
    Uuids,
)
from underlay.schema.types import Scalar, TypeKind

INT64_DECIMAL_DIGITS = 18
WIDE_DECIMAL_BYTES = 16


class Storage(Enum):
    """How a bound is packed; see `index.entry`."""

    INT = "<i8"
    """Integers, booleans, dates, times, and decimals of up to 18 digits as unscaled integers."""
    UINT = "<u8"
    """Unsigned integers."""
    FLOAT = "<f8"
    """Both floats, which a double holds exactly."""
    BYTES = "bytes"
    """Text, binary, UUIDs, and wider decimals as 16 bytes in big-endian two's complement."""
    NONE = "none"
    """No bounds: the type has no order that all engines agree on."""


_UNITS = {"s": Unit.SECOND, "ms": Unit.MILLISECOND, "us": Unit.MICROSECOND, "ns": Unit.NANOSECOND}
_INTEGERS = {
    TypeKind.INT8: Integers(32),
    TypeKind.INT16: Integers(32),
    TypeKind.INT32: Integers(32),
    TypeKind.INT64: Integers(64),
    TypeKind.UINT8: Integers(32, signed=False),
    TypeKind.UINT16: Integers(32, signed=False),
    TypeKind.UINT32: Integers(32, signed=False),
    TypeKind.UINT64: Integers(64, signed=False),
}


def storage_of(scalar: Scalar) -> Storage:
    """How bounds of this type are packed."""
    match scalar.kind:
        case TypeKind.UINT8 | TypeKind.UINT16 | TypeKind.UINT32 | TypeKind.UINT64:
            return Storage.UINT
        case TypeKind.FLOAT32 | TypeKind.FLOAT64:
            return Storage.FLOAT
        case TypeKind.STRING | TypeKind.BINARY | TypeKind.FIXED | TypeKind.UUID:
            return Storage.BYTES
        case TypeKind.DECIMAL if scalar.precision > INT64_DECIMAL_DIGITS:
            return Storage.BYTES
        case TypeKind.FLOAT16:
            return Storage.NONE
    return Storage.INT


def bound_domain(scalar: Scalar) -> Domain:
    """How values of this type are ordered, and what a literal means in it."""
    kind = scalar.kind
    if kind in _INTEGERS:
        return _INTEGERS[kind]
    match kind:
        case TypeKind.BOOLEAN:
            return Booleans()
        case TypeKind.FLOAT32 | TypeKind.FLOAT64:
            return Floats(32 if kind is TypeKind.FLOAT32 else 64)
        case TypeKind.DECIMAL:
            is_wide = scalar.precision > INT64_DECIMAL_DIGITS
            return Decimals(scalar.precision, scalar.scale, WIDE_DECIMAL_BYTES if is_wide else 8, big_endian=is_wide)
        case TypeKind.STRING:
            return Text()
        case TypeKind.BINARY:
            return Binary()
        case TypeKind.FIXED:
            return FixedBinary(scalar.length)
        case TypeKind.UUID:
            return Uuids()
        case TypeKind.DATE:
            return Times(Unit.DAY, 32)
        case TypeKind.TIMESTAMP:
            return Times(_UNITS[scalar.unit or "us"])
        case TypeKind.TIME:
            return TimesOfDay(_UNITS[scalar.unit or "us"])
    return Unordered(str(scalar))
