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
from underlay.schema.types import Kind, Scalar

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
    Kind.INT8: Integers(32),
    Kind.INT16: Integers(32),
    Kind.INT32: Integers(32),
    Kind.INT64: Integers(64),
    Kind.UINT8: Integers(32, signed=False),
    Kind.UINT16: Integers(32, signed=False),
    Kind.UINT32: Integers(32, signed=False),
    Kind.UINT64: Integers(64, signed=False),
}


def storage_of(scalar: Scalar) -> Storage:
    """How bounds of this type are packed."""
    match scalar.kind:
        case Kind.UINT8 | Kind.UINT16 | Kind.UINT32 | Kind.UINT64:
            return Storage.UINT
        case Kind.FLOAT32 | Kind.FLOAT64:
            return Storage.FLOAT
        case Kind.STRING | Kind.BINARY | Kind.FIXED | Kind.UUID:
            return Storage.BYTES
        case Kind.DECIMAL if scalar.precision > INT64_DECIMAL_DIGITS:
            return Storage.BYTES
        case Kind.FLOAT16:
            return Storage.NONE
    return Storage.INT


def domain_of(scalar: Scalar) -> Domain:
    """How values of this type are ordered, and what a literal means in it."""
    kind = scalar.kind
    if kind in _INTEGERS:
        return _INTEGERS[kind]
    match kind:
        case Kind.BOOLEAN:
            return Booleans()
        case Kind.FLOAT32 | Kind.FLOAT64:
            return Floats(32 if kind is Kind.FLOAT32 else 64)
        case Kind.DECIMAL:
            is_wide = scalar.precision > INT64_DECIMAL_DIGITS
            return Decimals(scalar.precision, scalar.scale, WIDE_DECIMAL_BYTES if is_wide else 8, big_endian=is_wide)
        case Kind.STRING:
            return Text()
        case Kind.BINARY:
            return Binary()
        case Kind.FIXED:
            return FixedBinary(scalar.length)
        case Kind.UUID:
            return Uuids()
        case Kind.DATE:
            return Times(Unit.DAY, 32)
        case Kind.TIMESTAMP:
            return Times(_UNITS[scalar.unit or "us"])
        case Kind.TIME:
            return TimesOfDay(_UNITS[scalar.unit or "us"])
    return Unordered(str(scalar))
