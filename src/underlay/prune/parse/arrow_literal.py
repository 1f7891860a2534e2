"""Converts Arrow scalars to literals without losing a digit, and tells which of them a column may be compared with."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID

import pyarrow as pa

from underlay.prune.parse.arrow_form import AnyScalar
from underlay.prune.predicates.instant import DAY_NS, SECOND_NS, Instant
from underlay.prune.predicates.operand import Operand

AnyList: TypeAlias = "pa.ListScalar[Any]"  # Any: of every type

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_UNIT_NS = {"s": SECOND_NS, "ms": 1_000_000, "us": 1_000, "ns": 1}
_MILLISECOND_NS = 1_000_000

_ALIKE = frozenset((
    ("int", "float64"), ("int", "decimal"), ("float64", "int"), ("float64", "float32"), ("float64", "decimal"),
    ("float32", "int"), ("float32", "float64"), ("decimal", "int"), ("decimal", "float64"),
    ("date", "timestamp"), ("timestamp", "date"), ("uuid", "binary"),
))  # fmt: skip
"""Families of a column and of a literal that Arrow and our own rules compare as the same values.

Not a FLOAT literal with whole numbers or decimals, nor a FLOAT column with decimals: Arrow rounds there to FLOAT or
DOUBLE by rules of its own."""


class NotTranslated(Exception):
    """The expression holds something that has no exact counterpart among predicates."""


def operand_of(scalar: AnyScalar, column: pa.DataType) -> Operand:
    """The value of a scalar that is compared with a column. Raises NotTranslated when it has no exact counterpart."""
    if not scalar.is_valid:
        return None
    families = family_of(column), family_of(scalar.type)
    if families[0] != families[1] and families not in _ALIKE:
        raise NotTranslated(f"{column} with {scalar.type}")
    return value_of(scalar, is_uuid=families[0] == "uuid")


def operands_of(values: AnyList, column: pa.DataType) -> tuple[Operand, ...]:
    """The values of a list that a column's are looked up in. Raises NotTranslated.

    Arrow casts the list to the column's type, and so loses digits where a comparison would not.
    """
    families = family_of(column), family_of(values.type.value_type)
    if families[0] != families[1] and families not in (("uuid", "binary"), ("float32", "float64")):
        raise NotTranslated(f"{values.type} for {column}")
    operands = tuple(operand_of(value, column) for value in values.values or ())
    if families == ("float32", "float64") and not all(map(_is_float32, operands)):
        raise NotTranslated("a DOUBLE for FLOAT")
    return operands


def value_of(scalar: AnyScalar, *, is_uuid: bool = False) -> Operand:
    """The value of a scalar that is not null. Raises NotTranslated."""
    match scalar:
        case pa.TimestampScalar():
            return Instant(_count(scalar) * _UNIT_NS[scalar.type.unit])
        case pa.Date32Scalar():
            return _day(_count(scalar) * DAY_NS)
        case pa.Date64Scalar():
            return _day(_count(scalar) * _MILLISECOND_NS)
        case pa.Time32Scalar() | pa.Time64Scalar():
            return _time_of_day(_count(scalar) * _UNIT_NS[scalar.type.unit])
    try:
        value = scalar.as_py()
    except UnicodeDecodeError:
        raise NotTranslated("text that is not UTF-8") from None
    if is_uuid and isinstance(value, bytes):
        if len(value) != 16:
            raise NotTranslated("not 16 bytes")
        return UUID(bytes=value)
    if family_of(scalar.type) is None:
        raise NotTranslated(f"literal {scalar.type}")
    operand: Operand = value
    return operand


def family_of(type_: pa.DataType) -> str | None:
    """What kind of values a type has; None for one that predicates do not compare."""
    types = pa.types
    if isinstance(type_, pa.TimestampType):
        return "timestamp" if type_.tz is None else "timestamptz"
    is_family: dict[str, Callable[[pa.DataType], bool]] = {
        "bool": types.is_boolean,
        "int": types.is_integer,
        "float32": types.is_float32,
        "float64": types.is_float64,
        "decimal": types.is_decimal,
        "text": _is_text,
        "binary": _is_binary,
        "date": types.is_date,
        "time": types.is_time,
        "uuid": lambda one: isinstance(one, pa.UuidType),
    }
    return next((name for name, is_one in is_family.items() if is_one(type_)), None)


def _is_text(type_: pa.DataType) -> bool:
    return pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)


def _is_binary(type_: pa.DataType) -> bool:
    types = pa.types
    is_any_length = types.is_binary(type_) or types.is_large_binary(type_) or types.is_binary_view(type_)
    return is_any_length or types.is_fixed_size_binary(type_)


def _count(scalar: AnyScalar) -> int:
    """Units since the type's epoch: `as_py` is limited to microseconds and the year 9999."""
    return int(scalar.value)  # type: ignore[attr-defined]  # scalars of times have it


def _day(ns: int) -> date | Instant:
    """A date; the instant if it is not midnight, or beyond the years of Python's dates."""
    days, rest = divmod(ns, DAY_NS)
    ordinal = days + _EPOCH_ORDINAL
    return date.fromordinal(ordinal) if not rest and 1 <= ordinal <= date.max.toordinal() else Instant(ns)


def _time_of_day(ns: int) -> Operand:
    if not 0 <= ns < DAY_NS or ns % 1_000:
        raise NotTranslated("not a time of day in microseconds")
    return (datetime.min + timedelta(microseconds=ns // 1_000)).time()


def _is_float32(value: object) -> bool:
    return not isinstance(value, float) or math.isnan(value) or pa.scalar(value, pa.float32()).as_py() == value
