"""Types whose order is that of integers: the base they share, and the plain integers.

A literal becomes a span of exact numbers in the type's own unit, then the integers of that span within the
type's range. So a literal between two values, or beyond the last one, never rounds and never overflows.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import AddressValueError, IPv4Address

import numpy as np

from underlay.prune.domains.domain import BoolArray, BoundArray, Domain, KeyArray, filled_values
from underlay.prune.domains.selection import NEVER, Key, Selection, Span, select_nan, span_of, whole_span
from underlay.prune.predicates.number import Number, double_readings, read_number
from underlay.prune.predicates.operand import Operand
from underlay.prune.predicates.predicate import Op

_DOUBLE_EXACT = 2**53
_INT64_DIGITS = 20

Readings = tuple[Fraction | int, Fraction | int]
"""The least and the greatest number that a literal may stand for, in the column's unit."""


class Whole(Domain):
    """What all integer-keyed types share: values from `first` to `last` in `width_bytes` bytes."""

    @property
    @abstractmethod
    def first(self) -> int | None:
        """The least value of the type; None when its width is not fixed."""

    @property
    @abstractmethod
    def last(self) -> int | None:
        """The greatest value of the type; None when its width is not fixed."""

    @property
    @abstractmethod
    def width_bytes(self) -> int:
        """How many bytes one value takes in PLAIN encoding."""

    @abstractmethod
    def read(self, literal: Operand) -> Readings | None:
        """The literal's readings, None for NaN. Raises BadPredicate for a literal of another kind."""

    def keys(self, bounds: BoundArray) -> tuple[KeyArray, BoolArray]:
        """The bounds in the narrowest of int64, uint64 and Python integers; one out of range is not a key."""
        values = filled_values(bounds, 0)
        if values.dtype.kind not in "biuO":
            raise TypeError(f"bounds of {self.name} must be integers, not {values.dtype}")
        is_valid = np.ones(len(values), dtype=np.bool_)
        if self.first is not None and self.last is not None:
            is_valid = np.asarray((values >= self.first) & (values <= self.last), dtype=np.bool_)
        return np.where(is_valid, values, 0).astype(self._key_type()), is_valid

    def select(self, op: Op, literal: Operand) -> Selection:
        """One closed span of integers, or none."""
        readings = self.read(literal)
        if readings is None:
            return Selection(select_nan(op).spans)
        span = whole_span(span_of(op, *readings), self.first, self.last)
        return Selection((span,)) if span is not None else NEVER

    def exact_key(self, literal: Operand) -> int | None:
        """The integer of a literal with one reading, when the type holds it."""
        readings = self.read(literal)
        if readings is None or readings[0] != readings[1]:
            return None
        span = whole_span(Span(*readings), self.first, self.last)
        return span.low if span is not None and isinstance(span.low, int) else None

    def plain_bytes(self, literal: Operand) -> tuple[bytes, ...] | None:
        """The encoding of the one integer that the literal stands for, if it is one."""
        selection = self.select(Op.EQ, literal)
        if selection.is_never:
            return ()
        (span,) = selection.spans
        if not isinstance(span.low, int) or span.low != span.high:
            return None
        return self.encode(span.low)

    def encode(self, value: int) -> tuple[bytes, ...] | None:
        """The PLAIN encodings of one value of the type."""
        return ((value % 256**self.width_bytes).to_bytes(self.width_bytes, "little"),)

    def show(self, key: Key) -> str:
        """The integer."""
        return str(key)

    def _key_type(self) -> type[np.int64 | np.uint64 | np.object_]:
        if self.last is None or self.last > np.iinfo(np.uint64).max:
            return np.object_
        return np.uint64 if self.last > np.iinfo(np.int64).max else np.int64


@dataclass(frozen=True, slots=True)
class Integers(Whole):
    """Integers of 32 or 64 bits, by the file's physical type: an INT_8 column has 32."""

    bits: int
    signed: bool = True

    def __post_init__(self) -> None:
        """Refuses a width that Parquet does not have."""
        check_width(self.bits)

    @property
    def name(self) -> str:
        """`int32`, `uint64`, …"""
        return f"{'int' if self.signed else 'uint'}{self.bits}"

    @property
    def first(self) -> int:
        """The least value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def last(self) -> int:
        """The greatest value."""
        return (1 << (self.bits - self.signed)) - 1

    @property
    def width_bytes(self) -> int:
        """4 or 8."""
        return self.bits // 8

    def select_any(self, literals: Sequence[Operand]) -> Selection:
        """As for any type; a long list of integers, each of which is exact, takes a short way."""
        points = [literal for literal in literals if type(literal) is int]
        if len(points) < len(literals):
            return Domain.select_any(self, literals)
        first, last = self.first, self.last
        return Selection(tuple(Span(point, point) for point in sorted(set(points)) if first <= point <= last))

    def exact_key(self, literal: Operand) -> int | None:
        """The integer of a literal with one reading, when the type holds it."""
        if type(literal) is int:
            return literal if self.first <= literal <= self.last else None
        return Whole.exact_key(self, literal)

    def wrap(self, signed: KeyArray) -> KeyArray:
        """Signed integers as the unsigned ones of the same bits."""
        return signed.astype(np.int64).view(np.uint64) & np.uint64((1 << self.bits) - 1)

    def read(self, literal: Operand) -> Readings | None:
        """A number, exact wherever every engine compares it exactly."""
        number = read_number(literal)
        if number is None or number.is_special_text:
            raise self.mismatch(literal, "Write a number.")
        return None if number.value is None else _integer_readings(number, number.value)


@dataclass(frozen=True, slots=True)
class AmbiguousIntegers(Integers):
    """Integers whose sign is not known, as in a sidecar, which has no logical types. Bounds come as signed.

    Evaluated once for each of its `readings`; a block is dropped only when both drop it.
    """

    @property
    def name(self) -> str:
        """`int32 or uint32`, `int64 or uint64`."""
        return f"int{self.bits} or uint{self.bits}"

    @property
    def readings(self) -> tuple[Integers, Integers]:
        """The two types it may be."""
        return Integers(self.bits), Integers(self.bits, signed=False)

    def plain_bytes(self, literal: Operand) -> tuple[bytes, ...] | None:
        """The encodings of both readings; where both hold the value they are the same."""
        both = [reading.plain_bytes(literal) for reading in self.readings]
        found = [encodings for encodings in both if encodings is not None]
        if len(found) < len(both):
            return None
        return tuple(dict.fromkeys(encoding for encodings in found for encoding in encodings))


@dataclass(frozen=True, slots=True)
class Addresses(Integers):
    """IPv4 addresses as unsigned 32-bit integers; a literal is a number or dotted text."""

    bits: int = 32
    signed: bool = False

    @property
    def name(self) -> str:
        """`ipv4`."""
        return "ipv4"

    def read(self, literal: Operand) -> Readings | None:
        """The address as a number."""
        if isinstance(literal, str):
            try:
                address = int(IPv4Address(literal.strip()))
            except AddressValueError as error:
                raise self.mismatch(literal, "Write '192.0.2.1'.") from error
            return address, address
        return Integers.read(self, literal)

    def show(self, key: Key) -> str:
        """Dotted text."""
        return str(IPv4Address(int(key))) if not isinstance(key, bytes) else repr(key)


def check_width(bits: int) -> None:
    """Parquet stores integers in 32 or 64 bits only."""
    if bits not in (32, 64):
        raise ValueError(f"integers are stored in 32 or 64 bits, not {bits}")


def _integer_readings(number: Number, value: Fraction) -> Readings:
    if number.is_text:
        return math.floor(value), math.ceil(value)
    if number.is_float:
        is_exact = abs(value) < _DOUBLE_EXACT
    else:
        is_exact = number.scale == 0 or number.fits_decimal(_INT64_DIGITS, 0)
    exact = value.numerator if value.denominator == 1 else value
    return (exact, exact) if is_exact else double_readings(value)
