"""Dates and times that Spark takes for others when it skips row groups.

It makes java.sql.Date and Timestamp of what a column is compared with, unless a setting says otherwise. These have no
5th to 14th of October 1582, nor days that the zone of the JVM left out, and confuse times before 1900 in such zones.
Rows would be missing: those that lie between the value that is meant and the one that it is taken for. Where no file
has such values, nothing can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from underlay.errors import Unsupported
from underlay.prune.predicates.instant import DAY_NS, Instant
from underlay.prune.predicates.operand import ColumnPath, Operand
from underlay.prune.predicates.predicate import And, Compare, In, IsNotDistinct, Not, Op, Or, Predicate
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import TypeKind
from underlay.spark.jvm.gateway import Gateway, call, call_number, call_text

SETTING = "spark.sql.datetime.java8API.enabled"
"""With it Spark makes java.time.LocalDate and Instant, which miss nothing."""
_SETTINGS = "org.apache.spark.sql.internal.SQLConf"
_UTILS = "org.apache.spark.sql.catalyst.util.DateTimeUtils$"
_EPOCH = date(1970, 1, 1)
_DAY = timedelta(days=1)
_NEW_CALENDAR = date(1582, 10, 15)
_OLD_CALENDAR = date(1582, 10, 4)
_GAP = (date(1582, 10, 1), date(1582, 10, 28))
"""What a day that is missing, or a time on it, is taken for lies in here too, in any zone."""
_YEAR_1900 = date(1900, 1, 2)
_ZONED_YEARS = range(1800, 2101)
"""In which zones leave days out."""


def takes_java_time(gateway: Gateway) -> bool:
    """Whether the session that runs in this thread of the JVM compares with the right dates."""
    return call_text(gateway.static(_SETTINGS, "get"), "getConfString", SETTING, "false") == "true"


def mistaken_rows(gateway: Gateway, schema: TableSchema) -> Predicate | None:
    """All rows that Spark may miss, whatever it compares columns with; None when there can be none."""
    found = [part for leaf in schema.leaves for part in _mistaken_values(gateway, leaf)]
    return Or(tuple(found)) if found else None


def _mistaken_values(gateway: Gateway, leaf: LeafColumn) -> Iterator[Predicate]:
    if leaf.is_repeated:
        return  # Spark skips nothing by what is in lists
    zone = _zone(gateway)
    if leaf.type.kind is TypeKind.DATE:
        yield _between(leaf.path, *_GAP)
        for day in _left_out_days(zone):
            yield _between(leaf.path, day - _DAY, day + _DAY)
    elif leaf.type.kind is TypeKind.TIMESTAMP and leaf.type.zone is not None:
        if zone is None:
            yield _between(leaf.path, _instant(_GAP[0]), _instant(_GAP[1]))
        else:
            yield Compare(leaf.path, Op.LE, _instant(_YEAR_1900 + _DAY))


def _between(column: ColumnPath, begin: Operand, end: Operand) -> Predicate:
    return And((Compare(column, Op.GE, begin), Compare(column, Op.LE, end)))


def refuse_mistaken(gateway: Gateway, predicate: Predicate, schema: TableSchema) -> None:
    """Raises Unsupported when Spark would compare row groups of a table with another date or time than it should."""
    for column, value in _operands(predicate):
        if (isinstance(value, date) and _is_mistaken_date(gateway, value)) or (
            isinstance(value, Instant) and not _is_local(column, schema) and _is_mistaken_time(gateway, value)
        ):
            raise would_miss(str(value))


def would_miss(found: str) -> Unsupported:
    """What to raise when Spark compares with this."""
    return Unsupported(
        "Spark would miss rows: it takes a date or time for another one when it skips row groups",
        found=found,
        hint=f'Run spark.conf.set("{SETTING}", "true"), and ask again.',
    )


def _operands(predicate: Predicate) -> Iterator[tuple[ColumnPath, Operand]]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _operands(part)
        case Not(part):
            yield from _operands(part)
        case Compare(column, _, value) | IsNotDistinct(column, value):
            yield column, value
        case In(column, values):
            yield from ((column, value) for value in values)


def _is_local(column: ColumnPath, schema: TableSchema) -> bool:
    """Whether a column has times without a zone, which Spark does not take for java.sql.Timestamp."""
    leaf = schema.leaf_by_path.get(column)
    return leaf is not None and leaf.type.zone is None


def _is_mistaken_date(gateway: Gateway, given: date) -> bool:
    if not (_OLD_CALENDAR < given < _NEW_CALENDAR or _is_left_out(given, _zone(gateway))):
        return False
    utils, days = gateway.module(_UTILS), (given - _EPOCH).days
    return call_number(utils, "fromJavaDate", call(utils, "toJavaDate", days)) != days


def _is_mistaken_time(gateway: Gateway, given: Instant) -> bool:
    if given.ns >= _instant(_YEAR_1900).ns:
        return False
    utils, micros = gateway.module(_UTILS), given.ns // 1000
    return call_number(utils, "fromJavaTimestamp", call(utils, "toJavaTimestamp", micros)) != micros


def _instant(day: date) -> Instant:
    return Instant((day - _EPOCH).days * DAY_NS)


def _is_left_out(given: date, zone: ZoneInfo | None) -> bool:
    """Whether there was no such day in a zone."""
    noon = datetime.combine(given, time(12), zone)
    return zone is not None and noon.astimezone(UTC).astimezone(zone).date() != given


@lru_cache(maxsize=8)
def _left_out_days(zone: ZoneInfo | None) -> tuple[date, ...]:
    """All such days of a zone."""
    if zone is None:
        return ()
    first, last = date(_ZONED_YEARS.start, 1, 1), date(_ZONED_YEARS.stop, 1, 1)
    days = (first + number * _DAY for number in range((last - first).days))
    return tuple(day for day in days if _is_left_out(day, zone))


@lru_cache(maxsize=8)
def _zone(gateway: Gateway) -> ZoneInfo | None:
    """The zone of the JVM; None for one without a history."""
    name = call_text(gateway.static("java.util.TimeZone", "getDefault"), "getID")
    try:
        found = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return None
    return found if _has_history(found) else None


def _has_history(zone: ZoneInfo) -> bool:
    """Whether clocks were ever set there."""
    offsets = {datetime(year, month, 1, tzinfo=zone).utcoffset() for year in (1, *_ZONED_YEARS) for month in (1, 7)}
    return len(offsets) > 1
