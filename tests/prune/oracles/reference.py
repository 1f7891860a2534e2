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

from underlay.prune import (
    And,
    Between,
    Compare,
    Constant,
    In,
    IsDistinct,
    IsNan,
    IsNotDistinct,
    IsNotNan,
    IsNotNull,
    IsNull,
    Like,
    Not,
    NotIn,
    Op,
    Or,
    StartsWith,
)

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

    def __mod__(self, step):
        return 0


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
            return op is Op.NE
        value, literal = (1 if is_nan(side) else 0 for side in (value, literal))
    match op:
        case Op.EQ:
            return value == literal
        case Op.NE:
            return value != literal
        case Op.LT:
            return value < literal
        case Op.LE:
            return value < literal or value == literal
        case Op.GT:
            return value > literal
        case Op.GE:
            return value > literal or value == literal


@dataclass(frozen=True)
class Engine:
    """One way to answer: the order of NaN, what isnan says of a null, and which reading of a literal is taken."""

    nan_is_greatest: bool = True
    nan_test_of_null: bool | None = None
    reading: int = 0


DUCKDB = Engine()
ENGINES = [
    Engine(nan_is_greatest, of_null, reading)
    for nan_is_greatest, of_null in ((True, None), (True, False), (False, None))
    for reading in range(3)
]


def truth(predicate, value, readings, engine=DUCKDB):
    """True, False, or None for null: the answer of one engine for one row, whose value is a key or None."""

    def ask(part):
        return truth(part, value, readings, engine)

    def compare(op, literal):
        if value is None or literal is None:
            return None
        keys = readings(literal)
        return holds(op, value, keys[min(engine.reading, len(keys) - 1)], nan_is_greatest=engine.nan_is_greatest)

    match predicate:
        case And(parts):
            answers = [ask(part) for part in parts]
            return False if False in answers else None if None in answers else True
        case Or(parts):
            answers = [ask(part) for part in parts]
            return True if True in answers else None if None in answers else False
        case Not(part):
            answer = ask(part)
            return None if answer is None else not answer
        case Constant(constant):
            return constant
        case Compare(_, op, literal):
            return compare(op, literal)
        case Between(column, low, high):
            return ask(And((Compare(column, Op.GE, low), Compare(column, Op.LE, high))))
        case In(column, literals):
            return ask(Or(tuple(Compare(column, Op.EQ, literal) for literal in literals)))
        case NotIn(column, literals):
            return ask(Not(In(column, literals)))
        case IsNull():
            return value is None
        case IsNotNull():
            return value is not None
        case IsNotDistinct(_, literal):
            return value is None if literal is None else compare(Op.EQ, literal) is True
        case IsDistinct(column, literal):
            return not ask(IsNotDistinct(column, literal))
        case IsNan():
            return engine.nan_test_of_null if value is None else is_nan(value)
        case IsNotNan(column):
            return ask(Not(IsNan(column)))
        case StartsWith(_, prefix):
            return None if value is None else _begins(value, _octets(prefix))
        case Like(_, pattern, escape):
            return None if value is None else isinstance(value, bytes) and _is_like(value.decode(), pattern, escape)


def _octets(prefix):
    return prefix.encode() if isinstance(prefix, str) else prefix


def _begins(value, prefix):
    """The edge above all bytes stands for as many 0xFF as are needed."""
    if isinstance(value, _Edge):
        return value.side > 0 and not prefix.rstrip(b"\xff")
    return value.startswith(prefix)


def _is_like(text, pattern, escape):
    """By trying every way to spend a %."""
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    if head == escape:
        return bool(text) and text[0] == rest[0] and _is_like(text[1:], rest[1:], escape)
    if head == "%":
        return any(_is_like(text[i:], rest, escape) for i in range(len(text) + 1))
    return bool(text) and head in ("_", text[0]) and _is_like(text[1:], rest, escape)


def row_matches(predicate, value, readings):
    """Whether some engine finds the row."""
    return any(truth(predicate, value, readings, engine) is True for engine in ENGINES)


def row_always_matches(predicate, value, readings):
    """Whether every engine finds the row."""
    return all(truth(predicate, value, readings, engine) is True for engine in ENGINES)


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


def candidates(predicate, stats, readings, *, lowest=LOWEST, highest=HIGHEST, step=None):
    """Values that the statistics allow, one of which answers as any other would: nulls, NaN, the bounds, and
    what lies at and beside the literals. `step` is the distance of neighbouring values; None where values lie dense.
    """
    low, high = trusted(stats)
    nulls = stats.null_count
    if nulls is not None and (nulls < 0 or (stats.value_count is not None and nulls > stats.value_count)):
        nulls = None
    found = [None] if nulls != 0 else []
    if nulls is not None and nulls == stats.value_count and nulls > 0 and low is None and high is None:
        return found
    low, high = (lowest if low is None else low), (highest if high is None else high)
    keys = [low, high, *(key for literal in literals_of(predicate) for key in readings(literal))]
    points = [point for key in keys for point in (key, *neighbours(key, step))]
    found += [p for p in points if not is_nan(p) and (p == low or p > low) and (p == high or p < high)]
    if step is not None:
        found = [p for p in found if p is None or isinstance(p, float | _Edge) or p % step == 0]
    if stats.may_hold_nan or is_nan(stats.minimum) or is_nan(stats.maximum):
        found.append(NAN)
    return found


def block_may_match(predicate, stats, readings, **limits):
    """Whether any value that the statistics allow could match one predicate."""
    return any(
        row_matches(predicate, candidate, readings) for candidate in candidates(predicate, stats, readings, **limits)
    )


def block_must_match(predicate, stats, readings, **limits):
    """Whether every value that the statistics allow matches; a comparison where NaN may be, or with NaN, never does."""
    allowed = candidates(predicate, stats, readings, **limits)
    is_null_test = isinstance(predicate, IsNull | IsNotNull) or getattr(predicate, "value", True) is None
    if not is_null_test and any(is_nan(value) for value in allowed):
        return False
    is_any_answer = isinstance(predicate, In | NotIn) or all(value is None for value in allowed)
    if not is_any_answer and any(is_nan(key) for literal in literals_of(predicate) for key in readings(literal)):
        return False
    return all(row_always_matches(predicate, candidate, readings) for candidate in allowed)


def neighbours(key, step):
    """The values next to a key."""
    if isinstance(key, _Edge) or is_nan(key):
        return []
    if isinstance(key, bytes):
        return [key + b"\0", *([key[:-1] + bytes([key[-1] + 1])] if key and key[-1] < 255 else [])]
    if step is not None:
        return [] if isinstance(key, float) else [key // step * step, -(-key // step) * step, key - step, key + step]
    beside = [math.nextafter(as_float(key), side) for side in (-math.inf, math.inf)]
    return [number(value) for value in beside]


def as_float(key):
    try:
        return float(key)
    except OverflowError:
        return math.inf if key > 0 else -math.inf


def literals_of(predicate):
    match predicate:
        case Compare(_, _, value) | IsDistinct(_, value) | IsNotDistinct(_, value):
            values = (value,)
        case Between(_, low, high):
            values = (low, high)
        case In(_, values) | NotIn(_, values):
            pass
        case StartsWith(_, prefix):
            values = (prefix,)
        case Not(part):
            return literals_of(part)
        case _:
            values = ()
    return [value for value in values if value is not None]
