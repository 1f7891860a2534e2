"""Turns intervals into predicates on columns, with bounds in the column's own type."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Context, Decimal
from fractions import Fraction

import pyarrow as pa

from underlay.local.implied.interval import Bound, Interval, number, number_or_count, whole
from underlay.local.implied.syntax import NotUnderstood
from underlay.prune import Predicate
from underlay.prune.predicates.instant import DAY_NS, Instant
from underlay.prune.predicates.operand import ColumnPath
from underlay.prune.predicates.predicate import And, Compare, IsNan, Op, Or

_EPOCH = date(1970, 1, 1).toordinal()
_MICROSECOND_NS = 1_000


def between_bounds(path: ColumnPath, kind: pa.DataType, interval: Interval) -> Predicate:
    """The predicate that the column is in the interval, with bounds in the column's type."""
    low, high = interval.low, interval.high
    if pa.types.is_integer(kind):
        ends = tuple(None if one is None else number_or_count(one) for one in (low, high))
        bounds = (None if ends[0] is None else math.ceil(ends[0]), None if ends[1] is None else math.floor(ends[1]))
        return _ends(path, *bounds)
    if isinstance(kind, pa.Decimal128Type | pa.Decimal256Type):
        return _ends(path, _decimal(low, kind.scale, math.ceil), _decimal(high, kind.scale, math.floor))
    if pa.types.is_floating(kind):
        wide = _float_ends(interval, is_double=pa.types.is_float64(kind))
        found = _ends(path, *wide)
        return Or((found, IsNan(path))) if interval.has_nan else found
    if pa.types.is_date(kind):
        days = (whole(low), whole(high))
        return _ends(path, *(None if one is None else _day(one) for one in days))
    if isinstance(kind, pa.TimestampType):
        return _times(path, whole(low), whole(high))
    raise NotUnderstood(str(kind))


def _ends(
    path: ColumnPath, low: float | Decimal | date | Instant | None, high: float | Decimal | date | Instant | None
) -> Predicate:
    found: list[Predicate] = []
    if low is not None and low == high:
        return Compare(path, Op.EQ, low)
    if low is not None:
        found.append(Compare(path, Op.GE, low))
    if high is not None:
        found.append(Compare(path, Op.LE, high))
    return And(tuple(found))


def _day(days: int) -> date | Instant:
    ordinal = days + _EPOCH
    return date.fromordinal(ordinal) if 1 <= ordinal <= date.max.toordinal() else Instant(days * DAY_NS)


def _times(path: ColumnPath, low: int | None, high: int | None) -> Predicate:
    """Bounds on times. A bound that is one nanosecond off a whole microsecond becomes a strict comparison with that."""
    if low is not None and low == high:
        return Compare(path, Op.EQ, Instant(low))
    found: list[Predicate] = []
    if low is not None:
        is_next = (low - 1) % _MICROSECOND_NS == 0
        found.append(Compare(path, Op.GT if is_next else Op.GE, Instant(low - is_next)))
    if high is not None:
        is_last = (high + 1) % _MICROSECOND_NS == 0
        found.append(Compare(path, Op.LT if is_last else Op.LE, Instant(high + is_last)))
    return And(tuple(found))


def _decimal(bound: Bound | None, scale: int, rounded: Callable[[Fraction], int]) -> Decimal | None:
    exact = number(bound)
    if exact is None:
        return None
    return Decimal(rounded(exact * 10 ** max(scale, 0))).scaleb(-max(scale, 0), Context(prec=200))


def _float_ends(interval: Interval, *, is_double: bool) -> tuple[float | None, float | None]:
    ends: list[float | None] = []
    for bound, towards in ((interval.low, -math.inf), (interval.high, math.inf)):
        exact = number(bound)
        if exact is None:
            ends.append(None)
            continue
        if not is_double:
            exact += (1 if towards > 0 else -1) * (abs(exact) / 2**20 + Fraction(1, 2**140))
        try:
            value = float(exact)
        except OverflowError:
            ends.append(None)
            continue
        ends.append(value if Fraction(value) == exact else math.nextafter(value, towards))
    if ends[1] is not None and math.isinf(ends[1]):
        ends[1] = None
    return ends[0], ends[1]


def is_told(part: Predicate, others: Iterable[Predicate]) -> bool:
    """Whether a comparison follows from one of the others."""
    ends = _counted_ends(part)
    if ends is None or not isinstance(part, Compare):
        return part in others
    for other in others:
        known = _counted_ends(other)
        if known is None or not isinstance(other, Compare) or other.column != part.column:
            continue
        if type(other.value) is type(part.value) and ends[0] <= known[0] and known[1] <= ends[1]:
            return True
    return False


def _counted_ends(predicate: Predicate) -> tuple[float, float] | None:
    """The least and the greatest matching value, for types with discrete values."""
    if not isinstance(predicate, Compare):
        return None
    match predicate.value:
        case bool():
            return None
        case int() as count:
            pass
        case Instant(ns=count):
            pass
        case date() as day if not isinstance(day, datetime):
            count = day.toordinal()
        case _:
            return None
    low = count + (predicate.op is Op.GT) if predicate.op in (Op.EQ, Op.GT, Op.GE) else -math.inf
    high = count - (predicate.op is Op.LT) if predicate.op in (Op.EQ, Op.LT, Op.LE) else math.inf
    return low, high
