"""The types of the fuzz: values rich in edges, literals, and a key for each by which they compare, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from underlay.prune import Instant

DAY_NS = 86_400 * 10**9
UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
NAN, INF = math.nan, math.inf


def number_key(value: Any) -> Any:
    """Exact, NaN and the infinities as they are."""
    value = float(value) if isinstance(value, np.floating) else value
    return value if isinstance(value, float) and not math.isfinite(value) else Fraction(value)


def bytes_key(value: str | bytes | UUID) -> bytes:
    return value.encode() if isinstance(value, str) else value.bytes if isinstance(value, UUID) else value


def instant_key(value: date | Instant) -> int:
    """Nanoseconds since 1970."""
    if isinstance(value, Instant):
        return value.ns
    return (value.toordinal() - date(1970, 1, 1).toordinal()) * DAY_NS


def time_key(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000


@dataclass(frozen=True)
class Kind:
    """`values` are what rows hold, raw integers for points in time; `literals` what predicates compare with."""

    type: pa.DataType
    values: tuple[Any, ...]
    literals: tuple[Any, ...]
    key: Callable[[Any], Any]
    """The key of a literal."""
    value_key: Callable[[Any], Any]
    """The key of a value."""
    is_ordered: bool = True
    """Whether the index keeps bounds of it."""

    def array(self, values: list[Any]) -> pa.Array:
        if pa.types.is_temporal(self.type):
            return pa.array(values, pa.int32() if self.type.bit_width == 32 else pa.int64()).cast(self.type)
        if self.type == pa.uuid():
            return pa.array([None if value is None else value.bytes for value in values], pa.uuid())
        return pa.array(values, self.type)

    def scalar_key(self, scalar: pa.Scalar) -> Any:
        """The key of a value as Arrow has it."""
        if not scalar.is_valid:
            return None
        if pa.types.is_temporal(self.type):
            return self.value_key(scalar.cast(pa.int32() if self.type.bit_width == 32 else pa.int64()).as_py())
        return self.value_key(scalar.as_py())


def numbers(type_: pa.DataType, values: tuple[Any, ...], literals: tuple[Any, ...] | None = None, **more: Any) -> Kind:
    return Kind(type_, values, values if literals is None else literals, number_key, number_key, **more)


def integers(bits: int, signed: bool) -> Kind:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    middle = (5, -3) if signed else (5, 2 ** (bits - 1))
    values = (low, high, 0, 1, 7, *middle)
    type_ = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
    return numbers(type_, values, (*values, low - 1, high + 1, 2, 6, Decimal("1.5")))


def instants(type_: pa.DataType) -> Kind:
    unit = UNIT_NS[type_.unit]
    values = (0, -1, 1, 10**9 // unit, -(2**62) if unit == 1 else -(10**11), 86_400 * 10**9 // unit, 123_456_789)
    literals = tuple(Instant(ns) for ns in (*(value * unit for value in values), 5, -(10**9) - 1))
    return Kind(type_, values, literals, instant_key, lambda value: value * unit)


def times(type_: pa.DataType) -> Kind:
    unit = UNIT_NS[type_.unit]
    values = (0, 1, 86_400 * 10**9 // unit - 1, 3600 * 10**9 // unit)
    literals = (time(0), time(1), time(23, 59, 59, 999999), time(0, 0, 0, 1))
    return Kind(type_, values, literals, time_key, lambda value: value * unit)


FLOATS = (0.0, -0.0, 1.5, NAN, INF, -INF, -2.25, 5e-324)
TEXTS = ("", "a", "ab", "b", "é", "\ud7ff", "\U0010ffff", "a" * 70, "a" * 70 + "b", "a_b", "a\0", "￿", "\U00010000")
OCTETS = (b"", b"\0", b"a", b"\xff" * 70, b"\xff", b"ab", b"\x80")
UUIDS = (UUID(int=0), UUID(int=2**128 - 1), UUID(int=2**127), UUID(int=5))
DATES = (0, -1, 1, 19_000, -719_162, 2_932_896)

KINDS: dict[str, Kind] = {
    "boolean": numbers(pa.bool_(), (True, False)),
    **{f"int{bits}": integers(bits, True) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": integers(bits, False) for bits in (8, 16, 32, 64)},
    "half": numbers(pa.float16(), tuple(map(np.float16, (0.0, -0.0, 1.5, NAN, INF, -2.25))), FLOATS, is_ordered=False),
    "float": numbers(pa.float32(), (*FLOATS[:-1], float(np.float32(0.1))), (*FLOATS, 0.1)),
    "double": numbers(pa.float64(), (*FLOATS, 0.1), (*FLOATS, 0.1, 7)),
    **{
        f"decimal{digits}": numbers(
            pa.decimal128(digits, 2),
            tuple(Decimal(text) for text in ("-1.00", "1.00", "0.00", "99.99", "-99.99", "12.34")),
            tuple(Decimal(text) for text in ("-1", "1.000", "0.995", "99.99", "100", "-99.99")),
        )
        for digits in (4, 12, 25, 38)
    },
    "string": Kind(pa.string(), TEXTS[:5] + TEXTS[6:], TEXTS[:5] + TEXTS[6:], bytes_key, bytes_key),
    "binary": Kind(pa.binary(), OCTETS, OCTETS, bytes_key, bytes_key),
    "fixed": Kind(
        pa.binary(2), (b"\0\0", b"ab", b"\xff\xff", b"\x80a"), (b"\0\0", b"ab", b"b\0"), bytes_key, bytes_key
    ),
    "uuid": Kind(pa.uuid(), UUIDS, (*UUIDS, UUID(int=6)), bytes_key, bytes_key),
    "date": Kind(
        pa.date32(),
        DATES,
        (date(1970, 1, 1), date(1969, 12, 31), date(9999, 12, 31), date(1, 1, 1), date(2000, 2, 29)),
        instant_key,
        lambda days: days * DAY_NS,
    ),
    **{f"time_{unit}": times(pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)) for unit in UNIT_NS},
    **{f"timestamp_{unit}": instants(pa.timestamp(unit)) for unit in UNIT_NS},
    **{f"timestamptz_{unit}": instants(pa.timestamp(unit, "Asia/Kolkata")) for unit in ("ms", "us", "ns")},
}
IN_SECONDS = frozenset({"time_s", "timestamp_s"})
"""Kinds that Parquet does not have, so that no foreign file does."""
TEXTUAL = frozenset({"string", "binary", "fixed"})
FLOATING = frozenset({"half", "float", "double"})
