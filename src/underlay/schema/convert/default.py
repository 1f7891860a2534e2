"""A column's default: a value as the text that a schema stores, and back.

Numbers are in decimal digits, bytes in hexadecimal, points in time as ISO text in UTC. Nested columns have no default
but null.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache
from uuid import UUID

import pyarrow as pa

from underlay.errors import InvalidRequest
from underlay.prune.predicates.instant import DAY_NS, SECOND_NS, format_ns, parse_instant
from underlay.schema.arrow_aliases import AnyScalar
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.types import Field, Scalar, TypeKind

UNIT_NS = {"s": SECOND_NS, "ms": 1_000_000, "us": 1_000, "ns": 1}
_MIDNIGHT = "1970-01-01 "


@lru_cache(maxsize=1024)
def default_scalar(field: Field) -> AnyScalar | None:
    """The default of a field as a value of its Arrow type; None when it is null. Raises InvalidRequest."""
    if field.default is None:
        return None
    if not isinstance(field.type, Scalar):
        raise InvalidRequest("a nested column has no default", place=field.name, hint="Leave the default out.")
    return _parse(field.default, field.type)


def format_default(value: object, type_: Scalar) -> str:
    """The text that is stored for a default. Text is read as a value of the type. Raises InvalidRequest."""
    if isinstance(value, str):
        return _format(_parse(value, type_), type_)
    if isinstance(value, UUID):
        value = value.bytes
    arrow = to_arrow_type(type_)
    try:
        scalar = value.cast(arrow) if isinstance(value, pa.Scalar) else pa.scalar(value, arrow)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise _refused(value, type_) from None
    if not scalar.is_valid or not (isinstance(value, pa.Scalar) or _is_equal(scalar, value, type_)):
        raise _refused(value, type_)
    return _format(scalar, type_)


def _is_equal(scalar: AnyScalar, value: object, type_: Scalar) -> bool:
    """Whether Arrow kept the value: it silently cuts off fractions, the hours of dates, and zones."""
    if type_.kind in (TypeKind.FLOAT16, TypeKind.FLOAT32, TypeKind.FLOAT64):
        return True
    found = scalar.as_py()
    return (found.bytes if isinstance(found, UUID) else found) == value


def _parse(text: str, type_: Scalar) -> AnyScalar:
    found = parse_text(text, type_)
    if found is None:
        raise _refused(text, type_)
    return found


def parse_text(text: str, type_: Scalar) -> AnyScalar | None:
    """The value that a text is in a type; None when it is not exactly one."""
    arrow = to_arrow_type(type_)
    try:
        match type_.kind:
            case TypeKind.BOOLEAN:
                return pa.scalar({"true": True, "false": False}[text.lower()], arrow)
            case TypeKind.STRING:
                return pa.scalar(text, arrow)
            case TypeKind.BINARY | TypeKind.FIXED:
                return pa.scalar(bytes.fromhex(text), arrow)
            case TypeKind.UUID:
                return pa.scalar(UUID(text).bytes, arrow)
            case TypeKind.DECIMAL:
                return pa.scalar(Decimal(text), arrow)
            case TypeKind.DATE | TypeKind.TIME | TypeKind.TIMESTAMP:
                integer = pa.int32() if arrow.bit_width == 32 else pa.int64()
                return pa.scalar(_parse_time(text, type_), integer).cast(arrow)
            case TypeKind.FLOAT16 | TypeKind.FLOAT32 | TypeKind.FLOAT64:
                return pa.scalar(float(text), arrow)
        return pa.scalar(int(text), arrow)
    except (pa.ArrowException, ValueError, KeyError, ArithmeticError, UnicodeEncodeError):
        return None


def _parse_time(text: str, type_: Scalar) -> int:
    """Units since 1970, or since midnight."""
    unit_ns = DAY_NS if type_.unit is None else UNIT_NS[type_.unit]
    if type_.kind is TypeKind.TIME and not set(text) <= set("0123456789:."):
        raise ValueError(text)
    instant = parse_instant(_MIDNIGHT + text if type_.kind is TypeKind.TIME else text)
    if instant is None or instant.ns % unit_ns:
        raise ValueError(text)
    return instant.ns // unit_ns


def _format(scalar: AnyScalar, type_: Scalar) -> str:
    match type_.kind:
        case TypeKind.BOOLEAN:
            return "true" if scalar.as_py() else "false"
        case TypeKind.BINARY | TypeKind.FIXED:
            return bytes(scalar.as_py()).hex()
        case TypeKind.FLOAT16 | TypeKind.FLOAT32 | TypeKind.FLOAT64:
            number = float(scalar.as_py())
            return "nan" if math.isnan(number) else repr(number)
        case TypeKind.DECIMAL:
            return f"{scalar.as_py():f}"
        case TypeKind.DATE | TypeKind.TIME | TypeKind.TIMESTAMP:
            return _format_time(scalar, type_)
    return str(scalar.as_py())


def _format_time(scalar: AnyScalar, type_: Scalar) -> str:
    unit_ns = DAY_NS if type_.unit is None else UNIT_NS[type_.unit]
    integer = scalar.cast(pa.int32() if scalar.type.bit_width == 32 else pa.int64())
    text = format_ns(int(integer.as_py()) * unit_ns)
    if parse_instant(text) is None:
        raise _refused(text, type_)
    if type_.kind is TypeKind.TIME:
        return text.removeprefix(_MIDNIGHT)
    return text.removesuffix(" 00:00:00") if type_.kind is TypeKind.DATE else text


def _refused(value: object, type_: Scalar) -> InvalidRequest:
    return InvalidRequest(
        "the default is not a value of the column's type",
        expected=type_,
        found=ascii(str(value)),
        hint="Give a value that the type holds exactly, or leave it out for null.",
    )
