"""A second opinion on pruning, written to be obvious: one block at a time, on Python values, by trying candidates.

A comparison with one literal selects an interval, so if any value between a block's bounds matches, then one of
these does: the minimum, the maximum, or a value next to a literal. The reference tries them all. It shares no code
with `underlay.prune` beyond the predicates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from underlay.prune import And, Between, Compare, In, IsNotNull, IsNull, Op

NAN = math.nan


class _Edge:
    """Below (-1) or above (1) every other value."""

    def __init__(self, side):
        self.side = side

    def __lt__(self, other):
        return self.side < 0 and other is not self

    def __gt__(self, other):
        return self.side > 0 and other is not self

    def __le__(self, other):
        return self < other or other is self

    def __ge__(self, other):
        return self > other or other is self


LOWEST, HIGHEST = _Edge(-1), _Edge(1)


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def number(value):
    """A number as an exact fraction; NaN and the infinities stay floats."""
    return value if isinstance(value, float) and not math.isfinite(value) else Fraction(value)


def holds(op, value, literal, *, nan_is_greatest):
    """`value op literal` in an engine that orders NaN last (Spark SQL, DuckDB) or compares it never (Arrow)."""
    if is_nan(value) or is_nan(literal):
        if not nan_is_greatest:
            return False
        value, literal = (1 if is_nan(side) else 0 for side in (value, literal))
    match op:
        case Op.EQ:
            return value == literal
        case Op.LT:
            return value < literal
        case Op.LE:
            return value < literal or value == literal
        case Op.GT:
            return value > literal
        case Op.GE:
            return value > literal or value == literal


def row_matches(predicate, value, readings, *, nan_is_greatest=True):
    """Whether a row matches under some reading of each literal. `readings(literal)` lists them as keys."""
    if isinstance(predicate, And):
        return all(row_matches(p, value, readings, nan_is_greatest=nan_is_greatest) for p in predicate.parts)

    def some(op, literal):
        return literal is not None and any(
            holds(op, value, reading, nan_is_greatest=nan_is_greatest) for reading in readings(literal)
        )

    match predicate:
        case IsNull():
            return value is None
        case IsNotNull():
            return value is not None
        case _ if value is None:
            return False
        case Compare(_, op, literal):
            return some(op, literal)
        case Between(_, low, high):
            return some(Op.GE, low) and some(Op.LE, high)
        case In(_, literals):
            return any(some(Op.EQ, literal) for literal in literals)


@dataclass(frozen=True)
class Stats:
    """One block's statistics as keys; None is missing."""

    minimum: Any
    maximum: Any
    null_count: int | None
    value_count: int | None
    may_hold_nan: bool = False


def trusted(stats):
    """The bounds that may be used."""
    low = None if is_nan(stats.minimum) else stats.minimum
    high = None if is_nan(stats.maximum) else stats.maximum
    if low is not None and high is not None and low > high:
        return None, None
    return low, high


def block_may_match(predicate, stats, readings, *, lowest=LOWEST, highest=HIGHEST, step=None):
    """Whether any value that the statistics allow could match one predicate.

    `step` is the distance of neighbouring values; None where values lie dense.
    """
    low, high = trusted(stats)
    nulls = stats.null_count
    if nulls is not None and (nulls < 0 or (stats.value_count is not None and nulls > stats.value_count)):
        nulls = None
    if isinstance(predicate, IsNull):
        return nulls != 0
    if nulls is not None and nulls == stats.value_count and nulls > 0 and low is None and high is None:
        return False
    if isinstance(predicate, IsNotNull):
        return True
    low, high = (lowest if low is None else low), (highest if high is None else high)
    keys = [key for literal in literals_of(predicate) for key in readings(literal)]
    points = [low, high, *(point for key in keys for point in neighbours(key, step))]
    candidates = [p for p in points if not is_nan(p) and (p == low or p > low) and (p == high or p < high)]
    if stats.may_hold_nan or is_nan(stats.minimum) or is_nan(stats.maximum):
        candidates.append(NAN)
    return any(row_matches(predicate, candidate, readings) for candidate in candidates)


def neighbours(key, step):
    """The values next to a key, or the key itself where values lie dense."""
    if step is None:
        return [key]
    return [] if isinstance(key, float) else [key // step * step, -(-key // step) * step]


def literals_of(predicate):
    match predicate:
        case Compare(_, _, value):
            values = (value,)
        case Between(_, low, high):
            values = (low, high)
        case In(_, values):
            pass
        case _:
            values = ()
    return [value for value in values if value is not None]
