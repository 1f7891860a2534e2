"""Types that store something else as integers: booleans, characters, points in time and decimals.

Big-endian two's-complement integers of mixed lengths, decoded a whole array at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.prune.domains.domain import BoolArray, BoundArray, KeyArray
from underlay.prune.domains.integers import Readings, Whole, check_width
from underlay.prune.domains.selection import Key
from underlay.prune.predicates.instant import DAY_NS, SECOND_NS, Instant, format_ns, instant_of, parse_instant
from underlay.prune.predicates.number import Number, double_readings, read_number
from underlay.prune.predicates.operand import Operand

BinaryArray: TypeAlias = "pa.Array[Any]"  # Any: binary, large_binary or fixed-size binary scalars

MAX_BYTES = 32
"""The longest value decoded: 256 bits hold every decimal of 76 digits."""

_LIMB_BYTES = 8


def decode_integers(values: BinaryArray) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """The Python integers of a binary array, and which of its entries hold one of 1 to 32 bytes."""
    octets, begins, lengths = _layout(values)
    present = values.is_valid().to_numpy(zero_copy_only=False) & (lengths >= 1) & (lengths <= MAX_BYTES)
    longest = int(lengths[present].max(initial=1))
    limb_count = -(-longest // _LIMB_BYTES)
    limbs = _sign_extended(octets, begins, np.where(present, lengths, 0), limb_count * _LIMB_BYTES)
    return _join(limbs.view(">u8").astype(np.uint64).reshape(len(values), limb_count)), present


def _layout(values: BinaryArray) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """All bytes of the array end to end, then where each entry begins and how long it is; nulls are empty."""
    filled = values.fill_null(b"") if values.null_count else values
    large = filled.cast(pa.large_binary())
    _, offset_buffer, octet_buffer = large.buffers()
    offsets = np.zeros(1, dtype=np.int64)
    if offset_buffer is not None and len(large):
        offsets = np.frombuffer(memoryview(offset_buffer), dtype=np.int64)[large.offset : large.offset + len(large) + 1]
    octets = np.zeros(0, dtype=np.uint8)
    if octet_buffer is not None and octet_buffer.size:
        octets = np.frombuffer(memoryview(octet_buffer), dtype=np.uint8)
    return octets, offsets[:-1], np.diff(offsets)


def _sign_extended(
    octets: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64], width: int
) -> NDArray[np.uint8]:
    """One row of `width` bytes per entry, filled on the left with its sign; an empty entry is zero."""
    if not len(octets):
        return np.zeros((len(lengths), width), dtype=np.uint8)
    last_octet = len(octets) - 1
    position = np.arange(width) - (width - lengths[:, None])
    picked = octets[np.clip(begins[:, None] + np.maximum(position, 0), 0, last_octet)]
    is_negative = (octets[np.clip(begins, 0, last_octet)] >= 0x80) & (lengths > 0)
    sign = np.where(is_negative, 0xFF, 0)
    return np.where(position >= 0, picked, sign[:, None]).astype(np.uint8)


def _join(limbs: NDArray[np.uint64]) -> NDArray[np.object_]:
    """The limbs of each row, most significant first, as one signed integer."""
    total: NDArray[np.object_] = np.ascontiguousarray(limbs[:, 0]).view(np.int64).astype(np.object_)
    for column in range(1, limbs.shape[1]):
        total = (total << 64) | limbs[:, column].astype(np.object_)
    return total


@dataclass(frozen=True, slots=True)
class Booleans(Whole):
    """FALSE below TRUE. Values are single bits in the file, so no Bloom filter is asked."""

    first = 0
    last = 1
    width_bytes = 1

    @property
    def name(self) -> str:
        """`boolean`."""
        return "boolean"

    def read(self, literal: Operand) -> Readings:
        """TRUE or FALSE, also as text."""
        if isinstance(literal, str) and literal.strip().lower() in ("true", "false"):
            literal = literal.strip().lower() == "true"
        if not isinstance(literal, bool):
            raise self.mismatch(literal, "Write TRUE or FALSE.")
        return int(literal), int(literal)

    def encode(self, value: int) -> tuple[bytes, ...] | None:
        """Unknown: PLAIN booleans share bytes."""
        return None

    def show(self, key: Key) -> str:
        """`true` or `false`."""
        return "true" if key else "false"


@dataclass(frozen=True, slots=True)
class Characters(Whole):
    """One UTF-16 code unit, as QuestDB's CHAR, in an INT32."""

    first = 0
    last = 0xFFFF
    width_bytes = 4

    @property
    def name(self) -> str:
        """`char`."""
        return "char"

    def read(self, literal: Operand) -> Readings:
        """The code of a text of one character."""
        if not isinstance(literal, str) or len(literal) != 1 or ord(literal) > self.last:
            raise self.mismatch(literal, "Write one character below U+10000 in single quotes.")
        return ord(literal), ord(literal)

    def show(self, key: Key) -> str:
        """The character in quotes."""
        return ascii(chr(int(key))) if not isinstance(key, bytes) else repr(key)


class Unit(Enum):
    """What a stored point in time counts; the value is nanoseconds."""

    DAY = DAY_NS
    SECOND = SECOND_NS
    MILLISECOND = 1_000_000
    MICROSECOND = 1_000
    NANOSECOND = 1


@dataclass(frozen=True, slots=True)
class Times(Whole):
    """Dates and timestamps: units since 1970-01-01 UTC. A date is compared as its midnight."""

    unit: Unit
    bits: int = 64

    def __post_init__(self) -> None:
        """Refuses a width that Parquet does not have."""
        check_width(self.bits)

    @property
    def name(self) -> str:
        """`date`, `timestamp(millisecond)`, …"""
        return "date" if self.unit is Unit.DAY else f"timestamp({self.unit.name.lower()})"

    @property
    def first(self) -> int:
        """The least integer of the width."""
        return -(1 << (self.bits - 1))

    @property
    def last(self) -> int:
        """The greatest integer of the width."""
        return (1 << (self.bits - 1)) - 1

    @property
    def width_bytes(self) -> int:
        """4 or 8."""
        return self.bits // 8

    def read(self, literal: Operand) -> Readings:
        """A typed literal exactly; text from the unit below to the unit above, since casts of text round."""
        if isinstance(literal, str):
            instant = parse_instant(literal)
            if instant is None:
                raise self.mismatch(literal, "Write '2024-01-31' or '2024-01-31 23:59:59.123456789+01:00'.")
            return instant.ns // self.unit.value, -(-instant.ns // self.unit.value)
        if not isinstance(literal, Instant | date):
            raise self.mismatch(literal, "Write DATE '2024-01-31' or TIMESTAMP '2024-01-31 23:59:59'.")
        begin, end = (literal if isinstance(literal, Instant) else instant_of(literal)).span_ns()
        return Fraction(begin, self.unit.value), Fraction(end, self.unit.value)

    def show(self, key: Key) -> str:
        """As ISO text; a date without the time."""
        text = format_ns(int(key) * self.unit.value) if not isinstance(key, bytes) else repr(key)
        return text.removesuffix(" 00:00:00") if self.unit is Unit.DAY else text


@dataclass(frozen=True, slots=True)
class Decimals(Whole):
    """Decimals as unscaled integers: INT32, INT64, or big-endian two's complement.

    `stored_bytes` is 4 or 8 with `big_endian` false, the length of a FIXED_LEN_BYTE_ARRAY, or None for a
    BYTE_ARRAY, whose values have many encodings. Bounds come as integers or, big-endian, as a pyarrow binary
    array.
    """

    precision: int
    scale: int
    stored_bytes: int | None
    big_endian: bool = True

    @property
    def name(self) -> str:
        """`decimal(precision, scale)`."""
        return f"decimal({self.precision}, {self.scale})"

    @property
    def first(self) -> int | None:
        """The least unscaled integer of the width."""
        return None if self.stored_bytes is None else -(1 << (8 * self.stored_bytes - 1))

    @property
    def last(self) -> int | None:
        """The greatest unscaled integer of the width."""
        return None if self.stored_bytes is None else (1 << (8 * self.stored_bytes - 1)) - 1

    @property
    def width_bytes(self) -> int:
        """The stored length; 0 when it varies."""
        return self.stored_bytes or 0

    def keys(self, bounds: BoundArray) -> tuple[KeyArray, BoolArray]:
        """Unscaled integers, from bytes where the bounds are bytes."""
        if isinstance(bounds, np.ndarray) or pa.types.is_integer(bounds.type):
            return Whole.keys(self, bounds)
        values, is_integer = decode_integers(bounds)
        keys, is_in_range = Whole.keys(self, values)
        return keys, is_integer & is_in_range

    def read(self, literal: Operand) -> Readings | None:
        """A number in units of the last digit, exact unless an engine would compare doubles."""
        number = read_number(literal)
        if number is None or number.is_special_text:
            raise self.mismatch(literal, "Write a number.")
        return None if number.value is None else self._readings(number, number.value)

    def encode(self, value: int) -> tuple[bytes, ...] | None:
        """Big-endian in the fixed length; unknown when the length varies."""
        if self.stored_bytes is None:
            return None
        if not self.big_endian:
            return Whole.encode(self, value)
        return (value.to_bytes(self.stored_bytes, "big", signed=True),)

    def show(self, key: Key) -> str:
        """The scaled number."""
        return f"{Decimal(f'{key}e-{self.scale}'):f}" if not isinstance(key, bytes) else repr(key)

    def _readings(self, number: Number, value: Fraction) -> Readings:
        power = 10**self.scale
        is_exact = number.fits_decimal(self.precision - self.scale, self.scale)
        if is_exact and not number.is_text:
            return value * power, value * power
        low, high = (bound * power for bound in double_readings(value))
        if not number.is_text:
            return low, high
        return min(low, math.floor(value * power)), max(high, math.ceil(value * power))
