"""The column types under test, each with values and literals rich in edges, and its own meaning of a literal."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from tests.prune.oracles.reference import HIGHEST, LOWEST, number
from underlay.prune import (
    Addresses,
    Binary,
    Booleans,
    Characters,
    Decimals,
    Domain,
    FixedBinary,
    Floats,
    Instant,
    Integers,
    Text,
    Times,
    Unit,
    Uuids,
)

DAY_S = 86_400
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAN = math.nan
U = UUID("01234567-89ab-cdef-0123-456789abcdef")


@dataclass(frozen=True)
class Kind:
    """`values` are stored values; `key` orders them; `readings` gives a literal's keys.

    `exact` literals mean one key in every engine; `loose` ones have several readings.
    """

    name: str
    domain: Domain
    values: tuple[Any, ...]
    exact: tuple[Any, ...]
    readings: Callable[[Any], list[Any]]
    loose: tuple[Any, ...] = ()
    key: Callable[[Any], Any] = number
    array: Callable[[list[Any]], Any] = lambda values: np.array([v or 0 for v in values])
    lowest: Any = LOWEST
    highest: Any = HIGHEST
    step: Any = None
    may_hold_nan: bool = False

    def __repr__(self):
        return self.name


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def as_double(value):
    try:
        return number(float(value))
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def number_readings(literal):
    """The one exact value."""
    value = Decimal(literal.strip()) if isinstance(literal, str) else literal
    exact = number(float(value) if isinstance(value, Decimal) and not value.is_finite() else value)
    return [exact]


def rounded_text_readings(scale):
    """Text is also rounded to the column's scale, by either neighbour."""

    def readings(literal):
        (exact,) = number_readings(literal)
        if not isinstance(literal, str):
            return [exact]
        unit = Fraction(1, 10**scale)
        return [exact, exact // unit * unit, -(-exact // unit) * unit]

    return readings


def double_readings(literal):
    exact = number_readings(literal)[0]
    return [exact, as_double(exact)]


def single_readings(literal):
    exact, double = double_readings(literal)
    with np.errstate(over="ignore"):
        return [exact, double, number(float(np.float32(float(double))))]


def text_readings(literal):
    return [literal.encode() if isinstance(literal, str) else literal]


def uuid_readings(literal):
    return [UUID(literal).bytes if isinstance(literal, str) else getattr(literal, "bytes", literal)]


def time_ns(literal):
    if isinstance(literal, Instant):
        return literal.ns
    if isinstance(literal, datetime):
        moment = literal if literal.tzinfo else literal.replace(tzinfo=UTC)
        return (moment - EPOCH) // timedelta(microseconds=1) * 1000
    if isinstance(literal, date):
        return (literal - date(1970, 1, 1)).days * DAY_S * 10**9
    return TIME_TEXTS[literal]


def time_readings(unit_ns):
    def readings(literal):
        ns = time_ns(literal)
        if isinstance(literal, str):
            return [Fraction(ns), Fraction(ns // unit_ns * unit_ns), Fraction(-(-ns // unit_ns) * unit_ns)]
        if isinstance(literal, Instant) and literal.coarse:
            return [Fraction(ns), Fraction(ns // 1000 * 1000)]
        return [Fraction(ns)]

    return readings


def octet_array(values):
    return pa.array(values, pa.binary())


def signed_octets(value, size=None):
    size = size or (value.bit_length() + 8) // 8
    return value.to_bytes(size, "big", signed=True)


def integer_kind(bits, signed):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    edges = (low, low + 1, 0, 1, 2, 7, 100, 2**31 - 1, high - 1, high, *((-1, -7) if signed else (2**31 + 5,)))
    literals = (*edges, low - 1, high + 1, 10**30, -(10**30), Decimal("1.5"), Decimal("7.000"), 1.5, -0.0, 7.0)
    return Kind(
        f"{'' if signed else 'u'}int{bits}",
        Integers(bits, signed=signed),
        edges,
        (*literals, math.inf, -math.inf, "7", " 100 "),
        rounded_text_readings(0),
        loose=("1.5", "-0.5", 2.0**53, 2.0**63, Decimal("6.99999999999999999999999999")),
        array=lambda values: np.array([v or 0 for v in values], dtype=np.int64 if signed else np.uint64),
        lowest=low,
        highest=high,
        step=1,
    )


FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.5,
    5.0,
    2.0**-149,
    -(2.0**-149),
    f32(0.1),
    16777216.0,
    math.inf,
    -math.inf,
    NAN,
)


def float_kind(bits):
    return Kind(
        f"float{bits}",
        Floats(bits),
        (*FLOATS, 2.0**127),
        (0, 1, 0.0, -0.0, 1.5, 5, -1, Decimal("1.5"), math.inf, -math.inf, NAN, "1.5", "nan", f32(0.1)),
        lambda literal: [NAN] if literal == "nan" else (single_readings if bits == 32 else double_readings)(literal),
        loose=(0.1, Decimal("0.1"), Decimal("0.3"), 16777217, 2**53 + 1, "0.1", 1e300, Decimal("16777216.000")),
        array=lambda values: np.array([0.0 if v is None else v for v in values], dtype=np.float64),
        may_hold_nan=True,
    )


TEXTS = (
    "",
    "a",
    "a\0",
    "ab",
    "b",
    "b" * 100,
    "é",
    "e\u0301",
    "z ",
    "\ud7ff" * 3,
    "\ue000",
    "\uffff",
    "\U00010000",
    "\U0010ffff",
)
OCTETS = (b"", b"\0", b"\x01", b"a", b"a\0", b"\x7f", b"\x80", b"\xff", b"\xff" * 20)
MOMENT = datetime(2020, 1, 1, 0, 0, 0, 123456)
MOMENT_NS = 1_577_836_800_123_456_000
TIME_TEXTS = {
    "2020-01-01": MOMENT_NS - 123_456_000,
    "2020-01-01T00:00:00.123456": MOMENT_NS,
    "2020-01-01 05:30:00.123456789+05:30": MOMENT_NS + 789,
    "2020-01-01 12:00": MOMENT_NS - 123_456_000 + DAY_S // 2 * 10**9,
    "1850-06-01 00:53:28.5+00:53:28": (date(1850, 6, 1) - date(1970, 1, 1)).days * DAY_S * 10**9 + 5 * 10**8,
    "9999-12-31 23:59:59.999999999Z": 253_402_300_800 * 10**9 - 1,
}


def time_kind(unit, bits=64):
    size = unit.value
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    at = MOMENT_NS // size
    return Kind(
        f"{unit.name.lower()}{bits}",
        Times(unit, bits),
        (low, -1, 0, 1, at - 1, at, at + 1, high),
        (
            MOMENT,
            MOMENT.replace(microsecond=123000),
            MOMENT.replace(tzinfo=timezone(timedelta(hours=5, minutes=30))),
            date(2020, 1, 1),
            date(1970, 1, 1),
            date(1, 1, 1),
            datetime(9999, 12, 31, 23, 59, 59, 999999),
            Instant(MOMENT_NS + 789),
            Instant(-1),
            "2020-01-01",
        ),
        time_readings(size),
        loose=(*TIME_TEXTS, Instant(MOMENT_NS + 789, coarse=True)),
        key=lambda value: Fraction(value) * size,
        lowest=Fraction(low) * size,
        highest=Fraction(high) * size,
        step=size,
    )


def decimal_kind(name, domain, array, width):
    limit = 2 ** (8 * width - 1) if width else None
    far = (limit - 1, -limit) if limit else (10**30, -(10**30))
    return Kind(
        name,
        domain,
        (-100, -1, 0, 1, 99, 100, 101, 127, 128, -128, -129, 12345, *far),
        (0, 1, -1, Decimal("1.000"), Decimal("-0.995"), Decimal("0.99"), Decimal("1.001"), 10**40),
        rounded_text_readings(2),
        loose=(1.0, 0.99, -1.0, math.inf, "1.00", "0.995", Decimal("1." + "0" * 40 + "1")),
        key=lambda value: Fraction(value, 100),
        array=array,
        lowest=Fraction(-limit, 100) if limit else LOWEST,
        highest=Fraction(limit - 1, 100) if limit else HIGHEST,
        step=Fraction(1, 100),
    )


def octet_kind(name, domain, values, literals, readings=text_readings):
    key = (lambda v: v.encode()) if isinstance(values[0], str) else bytes
    return Kind(name, domain, values, literals, readings, key=key, lowest=b"", array=octet_array)


KINDS = (
    integer_kind(32, True),
    integer_kind(64, True),
    integer_kind(32, False),
    integer_kind(64, False),
    float_kind(32),
    float_kind(64),
    Kind(
        "boolean",
        Booleans(),
        (False, True),
        (False, True, "true"),
        lambda v: [int(v in (True, "true"))],
        key=int,
        array=lambda values: np.array([bool(v) for v in values]),
        lowest=0,
        highest=1,
        step=1,
    ),
    octet_kind("text", Text(), TEXTS, (*TEXTS, "b" * 60)),
    octet_kind("binary", Binary(), OCTETS, (*OCTETS, "a")),
    octet_kind("fixed", FixedBinary(2), (b"\0\0", b"a\0", b"aa", b"\xff\xff"), (b"a\0", b"a", b"\xff\xff", b"aaa")),
    octet_kind("uuid", Uuids(), (bytes(16), U.bytes, b"\xff" * 16), (U, str(U), bytes(16), UUID(int=5)), uuid_readings),
    time_kind(Unit.DAY, 32),
    time_kind(Unit.SECOND),
    time_kind(Unit.MILLISECOND),
    time_kind(Unit.MICROSECOND),
    time_kind(Unit.NANOSECOND),
    decimal_kind("decimal_int32", Decimals(9, 2, 4, big_endian=False), lambda v: np.array([x or 0 for x in v]), 4),
    decimal_kind("decimal_int64", Decimals(18, 2, 8, big_endian=False), lambda v: np.array([x or 0 for x in v]), 8),
    decimal_kind(
        "decimal_flba",
        Decimals(20, 2, 9),
        lambda v: octet_array([x if x is None else signed_octets(x, 9) for x in v]),
        9,
    ),
    decimal_kind(
        "decimal_bytes",
        Decimals(30, 2, None),
        lambda v: octet_array([x if x is None else signed_octets(x) for x in v]),
        None,
    ),
    Kind(
        "ipv4",
        Addresses(),
        (0, 1, 2**31, 2**32 - 1),
        (0, 1, 2**31 + 1, -1, 2**32),
        lambda v: [number(v)],
        lowest=0,
        highest=2**32 - 1,
        step=1,
    ),
    Kind(
        "char",
        Characters(),
        (0, 65, 0xD800, 0xFFFF),
        ("A", "B", "\uffff", "\0"),
        lambda v: [ord(v)],
        lowest=0,
        highest=0xFFFF,
        step=1,
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}
