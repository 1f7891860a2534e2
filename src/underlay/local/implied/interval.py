"""Closed intervals of values, always wide enough: they contain every value that an engine may consider inside.

Numbers are exact fractions, days are counted from 1970, times are nanoseconds since then, text is text.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import pyarrow as pa

from underlay.local.implied.syntax import AnyScalar, NotUnderstood, Value
from underlay.prune.predicates.instant import DAY_NS

Bound: TypeAlias = Fraction | int | str

_WHOLE = frozenset((
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
))  # fmt: skip
_FAMILIES = {
    **dict.fromkeys(_WHOLE, "whole"),
    "FLOAT": "real", "DOUBLE": "double", "VARCHAR": "text", "DATE": "date",
    "TIMESTAMP": "time", "TIMESTAMP_NS": "time", "TIMESTAMP_MS": "time", "TIMESTAMP_S": "time",
    "TIMESTAMP WITH TIME ZONE": "time",
}  # fmt: skip
NUMBERS = ("whole", "decimal", "real", "double")
FLOATS = ("real", "double")
UNIT_NS = {"TIMESTAMP_NS": 1, "TIMESTAMP_MS": 1_000_000, "TIMESTAMP_S": 1_000_000_000}
_MICROSECOND_NS = 1_000
_EXACT_DOUBLE = 2**53
_LAST_DAY = 2**31 - 2
_LAST_NS = (2**63 - 2) * _MICROSECOND_NS
"""Beyond these limits DuckDB has infinities, which it compares by special rules."""
_DECIMAL = re.compile(r"DECIMAL\(\d+,\s*(\d+)\)")


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, both included; None is no bound. `has_nan` adds NaN; without a `high` NaN is included
    anyway.
    """

    low: Bound | None
    high: Bound | None
    has_nan: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is inside."""
        return self.low is not None and self.high is not None and self.low > self.high and not self.has_nan  # type: ignore[operator]  # both of one family


def family_of(kind: str) -> str:
    """The kind of values of a type. Raises NotUnderstood for a type without intervals."""
    found = "decimal" if _DECIMAL.fullmatch(kind) else _FAMILIES.get(kind)
    if found is None:
        raise NotUnderstood(kind)
    return found


def unit_ns(kind: str) -> int:
    """The resolution of a type of times."""
    return UNIT_NS.get(kind, _MICROSECOND_NS)


def bound_of(value: Value) -> Bound:
    """The value of a constant as a bound. Raises NotUnderstood for null, NaN, infinity, and types without order."""
    family, scalar = family_of(value.type), value.scalar
    if not scalar.is_valid or value.type in ("HUGEINT", "UHUGEINT"):  # Arrow has no type for them
        raise NotUnderstood("no value")
    if family == "time" and isinstance(scalar, pa.TimestampScalar):
        unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[scalar.type.unit]
        return _finite(_count(scalar) * unit, _LAST_NS if unit > 1 else 2**63 - 2)
    if family == "date" and isinstance(scalar, pa.Date32Scalar):
        return _finite(_count(scalar), _LAST_DAY)
    found = scalar.as_py()
    if family == "text" and isinstance(found, str):
        return found
    if isinstance(found, float) and not math.isfinite(found):
        raise NotUnderstood("not finite")
    if family in NUMBERS and isinstance(found, int | float | Decimal):
        return Fraction(found)
    raise NotUnderstood(value.type)


def _count(scalar: AnyScalar) -> int:
    return int(scalar.value)  # type: ignore[attr-defined]  # scalars of times and days have it


def _finite(number: int, last: int) -> int:
    if abs(number) > last:
        raise NotUnderstood("infinite")
    return number


def number(bound: Bound | None) -> Fraction | None:
    """A bound that is a number."""
    if isinstance(bound, str):
        raise NotUnderstood("text for a number")
    return None if bound is None else Fraction(bound)


def number_or_count(bound: Bound) -> Fraction:
    """A bound that can be compared with others of its family."""
    found = number(bound)
    assert found is not None
    return found


def whole(bound: Bound | None) -> int | None:
    """A bound that is a count of days or nanoseconds."""
    if bound is not None and not isinstance(bound, int):
        raise NotUnderstood("not a count")
    return bound


def rounded(interval: Interval, kind: str) -> Interval:
    """The numbers that are in the interval once they are rounded to a type."""
    family = family_of(kind)
    if family not in FLOATS:
        return interval
    return Interval(_slack(interval.low, family, -1), _slack(interval.high, family, 1), interval.has_nan)


def _slack(bound: Bound | None, family: str, sign: int) -> Fraction | None:
    exact = number(bound)
    if exact is None:
        return None
    bits, tiny = (50, 1070) if family == "double" else (21, 146)
    return exact + sign * (abs(exact) / (1 << bits) + Fraction(1, 1 << tiny))


def from_whole_numbers(interval: Interval, kind: str) -> Interval:
    """The whole numbers that are in the interval once they are cast to a float type."""
    bounds = [abs(one) for one in (number(interval.low), number(interval.high)) if one is not None]
    limit = _EXACT_DOUBLE if family_of(kind) == "double" else 2**24
    return interval if all(one <= limit for one in bounds) else rounded(interval, kind)


def widened(interval: Interval, by: Fraction | int) -> Interval:
    """The interval, extended by `by` on both sides, for numbers or counts."""
    low, high = interval.low, interval.high
    if isinstance(low, str) or isinstance(high, str):
        raise NotUnderstood("text")
    return replace(interval, low=None if low is None else low - by, high=None if high is None else high + by)


def days_of(interval: Interval) -> Interval:
    """The days whose midnights are in an interval of times."""
    low, high = whole(interval.low), whole(interval.high)
    return _days(None if low is None else -(-low // DAY_NS), None if high is None else high // DAY_NS)


def _days(low: int | None, high: int | None) -> Interval:
    return Interval(low, high)


def times_of(interval: Interval) -> Interval:
    """The times on the days of an interval."""
    low, high = whole(interval.low), whole(interval.high)
    return clamped(
        Interval(None if low is None else low * DAY_NS, None if high is None else (high + 1) * DAY_NS - 1), "TIMESTAMP"
    )


def clamped(interval: Interval, kind: str) -> Interval:
    """The interval, without bounds beyond all finite values of a type of times or days."""
    last = _LAST_DAY if kind == "DATE" else _LAST_NS
    low, high = whole(interval.low), whole(interval.high)
    return Interval(
        low if low is not None and abs(low) <= last else None, high if high is not None and abs(high) <= last else None
    )
