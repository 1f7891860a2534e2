"""Inverts functions on intervals: if f(x) is in an interval, x is in another one.

It covers monotonic functions, and functions made of monotonic parts. DuckDB raises an error when whole numbers or
decimals overflow, unless a sign is put before an unsigned one, so a row with a result was computed exactly; floats get
slack for rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from fractions import Fraction

import pyarrow as pa

from underlay.local.implied.interval import (
    FLOATS,
    NUMBERS,
    Interval,
    bound_of,
    clamped,
    days_of,
    family_of,
    from_whole_numbers,
    number,
    rounded,
    times_of,
    unit_ns,
    whole,
    widened,
)
from underlay.local.implied.syntax import Node, NotUnderstood, Reader
from underlay.prune.predicates.instant import DAY_NS, SECOND_NS

Inner = tuple[Node, Interval]
_EPOCH = date(1970, 1, 1).toordinal()
_YEARS = frozenset(("year", "years", "yr", "yrs", "y"))
_TWO_CALENDARS = (date(1600, 1, 1).toordinal() - _EPOCH) * DAY_NS
"""Before this instant, ICU may compute days of timestamps with a zone in the Julian calendar."""
_EPOCH_UNITS = {"epoch": SECOND_NS, "epoch_ms": 10**6, "epoch_us": 10**3, "epoch_ns": 1}
_FIXED_PARTS = {
    "microseconds": 10**3, "milliseconds": 10**6, "second": SECOND_NS, "minute": 60 * SECOND_NS,
    "hour": 3600 * SECOND_NS, "day": DAY_NS,
}  # fmt: skip
_MONTH_PARTS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}
_ROUNDED = ("round", "floor", "ceil", "ceiling", "trunc")


def invert(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    """Arguments of an expression with their intervals, at least one of which holds. Raises NotUnderstood."""
    match node["class"]:
        case "CAST":
            return [(node["child"], _cast(reader.type_of(node["child"]), reader.type_of(node), interval))]
        case "FUNCTION":
            name, arguments = node["function_name"].lower(), node["children"]
            found = _FUNCTIONS.get((name, len(arguments)))
            if found is not None:
                return found(reader, node, interval)
    raise NotUnderstood("not a function that can be turned round")


def _cast(source: str, target: str, interval: Interval) -> Interval:
    """The values of the source type whose casts to the target type are in the interval."""
    kinds = family_of(source), family_of(target)
    if source == target:
        return interval
    if kinds[0] in NUMBERS and kinds[1] in NUMBERS:
        if kinds[1] in FLOATS:
            return from_whole_numbers(interval, target) if kinds[0] == "whole" else rounded(interval, target)
        return interval if kinds == ("whole", "whole") else widened(interval, 1)
    match kinds:
        case ("time", "date"):
            return times_of(interval)
        case ("date", "time"):
            return days_of(widened(interval, unit_ns(target)) if unit_ns(target) > 1_000 else interval)
        case ("time", "time"):
            unit = max(unit_ns(source), unit_ns(target))
            return interval if unit_ns(source) == unit_ns(target) else widened(interval, unit)
    raise NotUnderstood(f"{source} as {target}")


def comparable(interval: Interval, kind: str, constant: str) -> Interval:
    """The values of a type that compare as inside an interval of another type, that of a constant."""
    families = family_of(kind), family_of(constant)
    if "real" in families and families[0] in NUMBERS and families[1] in NUMBERS:
        return _numbers(interval, "FLOAT")
    if families[0] in NUMBERS and families[1] in NUMBERS:
        if "double" not in families:
            return interval
        return from_whole_numbers(interval, "DOUBLE") if families[0] == "whole" else _numbers(interval, "DOUBLE")
    match families:
        case ("date", "time"):
            return days_of(interval)
        case ("time", "time") if unit_ns(kind) != unit_ns(constant):
            return widened(interval, max(unit_ns(kind), unit_ns(constant)))
        case (one, other) if one == other:
            return interval
    raise NotUnderstood(f"{kind} with {constant}")


def _numbers(interval: Interval, kind: str) -> Interval:
    return rounded(rounded(interval, kind), kind)  # both sides may have been rounded


def _negated(interval: Interval, kind: str) -> Interval:
    low, high = number(interval.low), number(interval.high)
    has_nan = family_of(kind) in FLOATS and (interval.has_nan or high is None)
    return Interval(None if high is None else -high, None if low is None else -low, has_nan)


def _minus(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    (inner,) = node["children"]
    _require(reader, NUMBERS, node, inner)
    if reader.type_of(inner).startswith("U"):
        raise NotUnderstood("DuckDB computes -x of an unsigned x as 2^n - x")
    return [(inner, _negated(interval, reader.type_of(inner)))]


def _sum(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    left, right = node["children"]
    is_plus = node["function_name"] == "+"
    if reader.is_constant(right):
        return [(left, _moved(reader, node, left, right, interval, -1 if is_plus else 1))]
    if is_plus:
        return [(right, _moved(reader, node, right, left, interval, -1))]
    _require(reader, NUMBERS, node, right)  # c - x, in an interval: -x is in it minus c
    return [(right, _negated(_moved(reader, node, right, left, interval, -1), reader.type_of(right)))]


def _moved(reader: Reader, node: Node, inner: Node, constant: Node, interval: Interval, sign: int) -> Interval:
    """The interval of x, given that of x + c or x - c."""
    kind, target = reader.type_of(inner), reader.type_of(node)
    value = reader.value_of(constant)
    if value.type == "INTERVAL":
        return _shifted(kind, target, interval, value.scalar, sign)
    bound = bound_of(value)
    if isinstance(bound, str):
        raise NotUnderstood("text")
    if family_of(kind) == "date" and family_of(value.type) == "whole" and target == "DATE":
        return clamped(widened_by(interval, sign * int(bound)), "DATE")
    _require(reader, NUMBERS, node, inner)
    if family_of(value.type) not in NUMBERS:
        raise NotUnderstood(value.type)
    return _as_argument(kind, target, widened_by(rounded(rounded(interval, target), target), sign * Fraction(bound)))


def widened_by(interval: Interval, by: Fraction | int) -> Interval:
    """The interval, moved by a constant."""
    low, high = interval.low, interval.high
    if isinstance(low, str) or isinstance(high, str):
        raise NotUnderstood("text")
    return replace(interval, low=None if low is None else low + by, high=None if high is None else high + by)


def _as_argument(kind: str, target: str, interval: Interval) -> Interval:
    """The numbers of a type that are in the interval once DuckDB casts them to the type it computes in."""
    if family_of(target) not in FLOATS or kind == target:
        return interval
    return rounded(interval, target) if family_of(kind) != "whole" else from_whole_numbers(interval, target)


def _shifted(kind: str, target: str, interval: Interval, scalar: object, sign: int) -> Interval:
    """The times that are in the interval once months, days and a rest are added."""
    if not isinstance(scalar, pa.MonthDayNanoIntervalScalar) or family_of(target) != "time":
        raise NotUnderstood("an interval")
    found = scalar.as_py()
    if found is None:
        raise NotUnderstood("null")
    months, days, nanoseconds = found
    by = sign * (days * DAY_NS + nanoseconds)
    low, high = whole(interval.low), whole(interval.high)
    if months:  # several last days of a month map to one day
        low = None if low is None else _months_later(low, sign * months) - 4 * DAY_NS
        high = None if high is None else _months_later(high, sign * months) + 4 * DAY_NS
    moved = clamped(Interval(None if low is None else low + by, None if high is None else high + by), target)
    return days_of(moved) if family_of(kind) == "date" else moved


def _months_later(ns: int, months: int) -> int:
    """About `months` later: the first of that month plus the same number of days."""
    days, rest = divmod(ns, DAY_NS)
    day = _date(days)
    month = day.year * 12 + day.month - 1 + months
    return (_days(month // 12, month % 12 + 1) + day.day - 1) * DAY_NS + rest


def _date(days: int) -> date:
    if not 1 <= days + _EPOCH <= date.max.toordinal():
        raise NotUnderstood("beyond the years of Python")
    return date.fromordinal(days + _EPOCH)


def _days(year: int, month: int) -> int:
    """The first day of a month, in days since 1970."""
    if not 1 <= year <= 9999:
        raise NotUnderstood("beyond the years of Python")
    return date(year, month, 1).toordinal() - _EPOCH


def _product(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    left, right = node["children"]
    is_quotient = node["function_name"] == "/"
    inner, constant = (left, right) if reader.is_constant(right) else (right, left)
    if is_quotient and inner is right:
        raise NotUnderstood("a quotient of a constant")
    kind, target = reader.type_of(inner), reader.type_of(node)
    _require(reader, NUMBERS, node, inner, constant)
    factor = number(bound_of(reader.value_of(constant)))
    if not factor:
        raise NotUnderstood("zero")
    factor = 1 / factor if is_quotient else factor
    wide = rounded(rounded(interval, target), target)
    if family_of(target) == "decimal":
        wide = widened(wide, Fraction(1, 10**6))  # DuckDB may round the scale of a product
    wide = wide if factor > 0 else _negated(wide, target)
    low, high = number(wide.low), number(wide.high)
    size = abs(factor)
    moved = Interval(None if low is None else low / size, None if high is None else high / size, wide.has_nan)
    return [(inner, _as_argument(kind, target, rounded(moved, target)))]


def _whole_quotient(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    inner, constant = node["children"]
    _require(reader, ("whole",), node, inner, constant)
    divisor = number(bound_of(reader.value_of(constant)))
    if not divisor or divisor < 0:
        raise NotUnderstood("not a positive number")
    wide = widened(interval, 1)  # towards zero, or down
    low, high = number(wide.low), number(wide.high)
    return [(inner, Interval(None if low is None else low * divisor, None if high is None else high * divisor))]


def _absolute(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    (inner,) = node["children"]
    _require(reader, NUMBERS, node, inner)
    low, high = number(interval.low), number(interval.high)
    if high is not None:
        return [(inner, Interval(-high, high, interval.has_nan))]
    if low is None or low <= 0:
        raise NotUnderstood("no bound")
    return [(inner, Interval(low, None)), (inner, Interval(None, -low))]


def _round(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    inner, *places = node["children"]
    _require(reader, NUMBERS, node, inner)
    if places:
        digits = number(bound_of(reader.value_of(places[0])))
        if digits is None or digits < 0:
            raise NotUnderstood("rounded to tens")
    return [(inner, widened(rounded(interval, reader.type_of(node)), 1))]


def _year(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    *part, inner = node["children"]
    if part and _text(reader, part[0]) not in _YEARS:
        raise NotUnderstood("a part of a time that comes again")
    low, high = number(interval.low), number(interval.high)
    first = None if low is None or not 1 <= -(-low // 1) <= 9999 else _days(int(-(-low // 1)), 1)
    last = None if high is None or not 0 <= high // 1 <= 9998 else _days(int(high // 1) + 1, 1) - 1
    return [_in_days(reader, inner, Interval(first, last))]


def _in_days(reader: Reader, inner: Node, days: Interval) -> Inner:
    kind = reader.type_of(inner)
    if kind == "DATE":
        return inner, days
    if family_of(kind) != "time":
        raise NotUnderstood(kind)
    return inner, _in_any_calendar(kind, times_of(days))


def _in_any_calendar(kind: str, interval: Interval) -> Interval:
    low, high = whole(interval.low), whole(interval.high)
    is_old = any(one is not None and one < _TWO_CALENDARS for one in (low, high))
    return widened(interval, 30 * DAY_NS) if is_old and kind == "TIMESTAMP WITH TIME ZONE" else interval


def _trunc(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    """date_trunc: the argument is at or after the truncated value, and before the next one."""
    part, inner = node["children"]
    word = _text(reader, part).removesuffix("s") if _text(reader, part) not in _FIXED_PARTS else _text(reader, part)
    kind, target = reader.type_of(inner), reader.type_of(node)
    wide = _in_any_calendar(kind, times_of(interval) if target == "DATE" else interval)
    if target == "DATE":  # only its midnights are values
        wide = Interval(wide.low, None if interval.high is None else _ns(whole(interval.high)))
    high = whole(wide.high)
    moved = clamped(Interval(wide.low, None if high is None else _next_begin(high, word) - 1), kind)
    if kind == "DATE":  # DuckDB compares days then, so that midnight is > 12:00 and = 23:59:59 of the same day
        low = whole(moved.low)
        return [(inner, days_of(replace(moved, low=None if low is None else low - low % DAY_NS)))]
    if family_of(kind) != "time":
        raise NotUnderstood(kind)
    return [(inner, moved)]


def _ns(days: int | None) -> int | None:
    return None if days is None else days * DAY_NS


def _next_begin(ns: int, part: str) -> int:
    """When the part (day, month, …) that contains this moment ends."""
    if part in _FIXED_PARTS:
        size = _FIXED_PARTS[part]
        return ns - ns % size + size
    days = ns // DAY_NS
    if part == "week":
        return (days - (days + 3) % 7 + 7) * DAY_NS  # 1970 began on a Thursday
    months = _MONTH_PARTS.get(part)
    if months is None:
        raise NotUnderstood(part)
    day = _date(days)
    if months > 12:
        return (days + (months // 12) * 366) * DAY_NS
    month = day.year * 12 + (day.month - 1) // months * months + months
    return _days(month // 12, month % 12 + 1) * DAY_NS


def _last_day(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    low, high = whole(interval.low), whole(interval.high)
    days = Interval(None if low is None else low - 31, high)
    return [_in_days(reader, node["children"][0], clamped(days, "DATE"))]


def _epoch(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    (inner,) = node["children"]
    unit = _EPOCH_UNITS[node["function_name"].lower()]
    wide = widened(rounded(interval, reader.type_of(node)), 1)
    low, high = number(wide.low), number(wide.high)
    times = Interval(None if low is None else int(low * unit // 1), None if high is None else int(high * unit // 1) + 1)
    kind = reader.type_of(inner)
    if family_of(kind) == "time":
        return [(inner, clamped(times, kind))]
    if kind != "DATE":
        raise NotUnderstood(kind)
    return [(inner, days_of(clamped(times, "TIMESTAMP")))]


def _zone(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    zone, inner = node["children"]
    if family_of(reader.type_of(inner)) != "time" or family_of(reader.type_of(node)) != "time":
        raise NotUnderstood("not a time")
    return [(inner, interval if _text(reader, zone) == "utc" else widened(interval, DAY_NS))]


def _unchanged(reader: Reader, node: Node, interval: Interval) -> list[Inner]:
    """nullif(x, c): x or null."""
    inner, _ = node["children"]
    return [(inner, _cast(reader.type_of(inner), reader.type_of(node), interval))]


def _text(reader: Reader, node: Node) -> str:
    found = reader.value_of(node).scalar.as_py()
    if not isinstance(found, str):
        raise NotUnderstood("not text")
    return found.lower()


def _require(reader: Reader, families: tuple[str, ...], *nodes: Node) -> None:
    for node in nodes:
        if family_of(reader.type_of(node)) not in families:
            raise NotUnderstood(reader.type_of(node))


_FUNCTIONS: dict[tuple[str, int], Callable[[Reader, Node, Interval], list[Inner]]] = {
    ("-", 1): _minus,
    ("+", 2): _sum,
    ("-", 2): _sum,
    ("*", 2): _product,
    ("/", 2): _product,
    ("//", 2): _whole_quotient,
    ("abs", 1): _absolute,
    ("@", 1): _absolute,
    **{(name, count): _round for name in _ROUNDED for count in (1, 2)},
    ("year", 1): _year,
    ("date_part", 2): _year,
    ("datepart", 2): _year,
    ("date_trunc", 2): _trunc,
    ("datetrunc", 2): _trunc,
    ("last_day", 1): _last_day,
    **{(name, 1): _epoch for name in _EPOCH_UNITS},
    ("timezone", 2): _zone,
    ("nullif", 2): _unchanged,
}
