"""Number literals as exact fractions, and the interval that engines may read one as.

Engines compare unlike numbers by casting one side to the other's type, often to DOUBLE: DuckDB finds
`9007199254740993::BIGINT = 9007199254740992e0` true. `double_readings` is how far such a cast reaches.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from underlay.errors import BadPredicate
from underlay.prune.predicates.operand import Operand

MAGNITUDE_DIGITS = 400
"""Literals lie below 10**400 and have at most 400 digits after the point: beyond every type there is."""

INFINITY = Fraction(10**MAGNITUDE_DIGITS)
"""Stands for infinity among fractions."""

DECIMAL_DIGITS = 38
"""What the decimal types of DuckDB and Spark hold; a comparison that needs more digits is done in doubles."""

_CAST_ULPS = 4
_SHORT_BITS = 1_024
"""Integers of fewer bits have fewer digits than MAGNITUDE_DIGITS."""
_NUMBER_TEXT = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_SPECIAL_TEXT = re.compile(r"[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Number:
    """A number literal: its exact value (None for NaN) and how it was written."""

    value: Fraction | None
    is_float: bool = False
    is_text: bool = False
    whole_digits: int = 0
    scale: int = 0

    @property
    def is_special_text(self) -> bool:
        """Whether it is the text NaN or Infinity, which only float columns can hold."""
        return self.is_float and self.is_text

    def fits_decimal(self, whole_digits: int, scale: int) -> bool:
        """Whether one decimal type holds both this literal and values with such digits around the point."""
        needed = max(self.whole_digits, whole_digits) + max(self.scale, scale)
        return not self.is_float and needed <= DECIMAL_DIGITS


def read_number(operand: Operand) -> Number | None:
    """The number that a literal stands for; None when it is of another kind, or text that is not a number."""
    match operand:
        case bool():
            return None
        case int() if operand.bit_length() < _SHORT_BITS:
            return Number(Fraction(operand), whole_digits=len(str(abs(operand))) if operand else 0)
        case int():
            return _number_of_decimal(Decimal(operand))
        case Decimal():
            return _number_of_decimal(operand)
        case float():
            return _number_of_float(operand)
        case str():
            return _number_of_text(operand.strip())
        case _:
            return None


def is_number_text(text: str) -> bool:
    """Whether the text is a decimal number, with or without a sign, a point and an exponent."""
    return _NUMBER_TEXT.fullmatch(text) is not None


def double_readings(value: Fraction) -> tuple[Fraction, Fraction]:
    """An interval around `value` that holds every number whose cast to DOUBLE may equal that of `value`."""
    below = above = to_double(value)
    for _ in range(_CAST_ULPS):
        below, above = math.nextafter(below, -math.inf), math.nextafter(above, math.inf)
    return min(value, from_double(below)), max(value, from_double(above))


def as_doubles(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """The literals of IN or BETWEEN as engines bind them: a DOUBLE among numbers makes all of them DOUBLEs."""
    if not any(isinstance(operand, float) for operand in operands):
        return operands
    return tuple(_as_double(operand) for operand in operands)


def to_double(value: Fraction) -> float:
    """The nearest double, infinite beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def from_double(value: float) -> Fraction:
    """The exact value of a double that is not NaN."""
    if math.isinf(value):
        return INFINITY if value > 0 else -INFINITY
    return Fraction(value)


def _as_double(operand: Operand) -> Operand:
    number = None if isinstance(operand, str) else read_number(operand)
    return operand if number is None or number.value is None else to_double(number.value)


def _number_of_decimal(value: Decimal) -> Number:
    if not value.is_finite():
        return _number_of_float(float(value))
    exponent = value.as_tuple().exponent
    scale = max(0, -exponent) if isinstance(exponent, int) else 0
    if value and (value.adjusted() >= MAGNITUDE_DIGITS or scale > MAGNITUDE_DIGITS):
        raise BadPredicate(
            "a number literal is out of every type's range",
            expected=f"at most {MAGNITUDE_DIGITS} digits before and after the point",
            found=f"{value:.3e}",
        )
    whole_digits = max(0, value.adjusted() + 1) if value else 0
    return Number(Fraction(value) if value else Fraction(0), whole_digits=whole_digits, scale=scale)


def _number_of_float(value: float) -> Number:
    return Number(None if math.isnan(value) else from_double(value), is_float=True)


def _number_of_text(text: str) -> Number | None:
    if _SPECIAL_TEXT.fullmatch(text):
        return Number(_number_of_float(float(text)).value, is_float=True, is_text=True)
    if not is_number_text(text):
        return None
    number = _number_of_decimal(Decimal(text))
    return Number(number.value, is_text=True, whole_digits=number.whole_digits, scale=number.scale)
