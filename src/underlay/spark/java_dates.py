"""Dates and times that Spark takes for others when it skips row groups.

It makes java.sql.Date and Timestamp of what a column is compared with, unless a setting says otherwise. These have no
5th to 14th of October 1582, nor days that the zone of the JVM left out, and confuse times before 1900 in such zones.
Rows would be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from underlay.errors import Unsupported
from underlay.prune.instant import Instant
from underlay.prune.operand import ColumnPath, Operand
from underlay.prune.predicate import And, Compare, In, IsNotDistinct, Not, Or, Predicate
from underlay.schema.table_schema import TableSchema
from underlay.spark.gateway import Gateway, JavaObject, call, call_number, call_text

SETTING = "spark.sql.datetime.java8API.enabled"
"""With it Spark makes java.time.LocalDate and Instant, which miss nothing."""
_UTILS = "org.apache.spark.sql.catalyst.util.DateTimeUtils$"
_EPOCH = date(1970, 1, 1)
_NEW_CALENDAR = date(1582, 10, 15)
_OLD_CALENDAR = date(1582, 10, 4)
_YEAR_1900_NS = (date(1900, 1, 2) - _EPOCH).days * 86_400 * 10**9


def refuse_mistaken_dates(gateway: Gateway, session: JavaObject, predicate: Predicate, schema: TableSchema) -> None:
    """Raises Unsupported when Spark would compare row groups of a table with another date or time than it should."""
    for column, value in _operands(predicate):
        is_mistaken = (isinstance(value, date) and _is_mistaken_date(gateway, value)) or (
            isinstance(value, Instant) and not _is_local(column, schema) and _is_mistaken_time(gateway, value)
        )
        if is_mistaken and call_text(call(session, "conf"), "get", SETTING) != "true":
            raise Unsupported(
                "Spark would miss rows: it takes a date or time for another one when it skips row groups",
                found=str(value),
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
    if given.ns >= _YEAR_1900_NS:
        return False
    utils, micros = gateway.module(_UTILS), given.ns // 1000
    return call_number(utils, "fromJavaTimestamp", call(utils, "toJavaTimestamp", micros)) != micros


def _is_left_out(given: date, zone: ZoneInfo | None) -> bool:
    """Whether there was no such day in a zone."""
    noon = datetime.combine(given, time(12), zone)
    return zone is not None and noon.astimezone(UTC).astimezone(zone).date() != given


@lru_cache(maxsize=8)
def _zone(gateway: Gateway) -> ZoneInfo | None:
    """The zone of the JVM; None for one without a history."""
    try:
        return ZoneInfo(call_text(gateway.static("java.util.TimeZone", "getDefault"), "getID"))
    except (ZoneInfoNotFoundError, ValueError):
        return None
