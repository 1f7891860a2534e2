"""Points in time as exact integers: nanoseconds since 1970-01-01 00:00:00 UTC.

`datetime` ends at microseconds and formatted text loses offsets with seconds, so literals are read here into
integers and never leave them. A literal without a zone is UTC; a caller that evaluates for an engine with
another session zone binds the literal first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

SECOND_NS = 1_000_000_000
DAY_NS = 86_400 * SECOND_NS
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND_NS = 1_000

_TIME_TEXT = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
    r" ?(?P<zone>Z|z|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?)?)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Instant:
    """A point in time. `coarse` marks one written with more digits than its SQL type holds.

    `TIMESTAMP '… .123456789'` is such a literal: DuckDB and Spark cut it to microseconds, so it may mean any
    instant within its microsecond. `TIMESTAMP_NS` literals and quoted text are not coarse.
    """

    ns: int
    coarse: bool = False

    def span_ns(self) -> tuple[int, int]:
        """The first and the last instant that an engine may take the literal for."""
        if not self.coarse:
            return self.ns, self.ns
        floor = self.ns - self.ns % _MICROSECOND_NS
        return floor, floor + _MICROSECOND_NS

    def __str__(self) -> str:
        """ISO text in UTC, without a zone."""
        return format_ns(self.ns)


def instant_of(moment: date | datetime) -> Instant:
    """The instant of a Python date (midnight UTC) or datetime (UTC when it has no zone)."""
    if not isinstance(moment, datetime):
        return Instant((moment.toordinal() - _EPOCH.toordinal()) * DAY_NS)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return Instant(_timedelta_ns(since))


@lru_cache(maxsize=1024)
def parse_instant(text: str) -> Instant | None:
    """The instant that ISO text names, or None when it is not a time.

    A date, then optionally `T` or a space, a time to the minute, second or up to nine digits below it, and
    `Z` or an offset of hours, minutes and seconds. Years run from 0001 to 9999.
    """
    match = _TIME_TEXT.fullmatch(text.strip(" "))
    if match is None:
        return None
    try:
        day = date.fromisoformat(match["date"])
    except ValueError:
        return None
    if match["hour"] is None:
        return instant_of(day)
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    offset_s = _offset_seconds(match["zone"])
    if hour > 23 or minute > 59 or second > 59 or offset_s is None:
        return None
    fraction_ns = int((match["fraction"] or "").ljust(9, "0"))
    seconds = hour * 3600 + minute * 60 + second - offset_s
    return Instant(instant_of(day).ns + seconds * SECOND_NS + fraction_ns)


def parse_day(text: str) -> date | None:
    """The date that `YYYY-MM-DD` names, or None."""
    instant = parse_instant(text)
    if instant is None or len(text.strip(" ")) != len("YYYY-MM-DD"):
        return None
    return date.fromordinal(_EPOCH.toordinal() + instant.ns // DAY_NS)


def has_sub_microseconds(instant: Instant) -> bool:
    """Whether microseconds cannot hold the instant."""
    return instant.ns % _MICROSECOND_NS != 0


def format_ns(ns: int) -> str:
    """`YYYY-MM-DD HH:MM:SS` with the digits below the second it needs, or a bare number far from now."""
    seconds, fraction_ns = divmod(ns, SECOND_NS)
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return f"{ns} ns since 1970"
    text = moment.replace(tzinfo=None).isoformat(sep=" ")
    digits = f"{fraction_ns:09d}".rstrip("0")
    return f"{text}.{digits}" if digits else text


def _timedelta_ns(span: timedelta) -> int:
    return (span.days * 86_400 + span.seconds) * SECOND_NS + span.microseconds * _MICROSECOND_NS


def _offset_seconds(zone: str | None) -> int | None:
    if zone is None or zone in ("Z", "z"):
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
    if hours > 18 or minutes > 59 or seconds > 59:
        return None
    size = hours * 3600 + minutes * 60 + seconds
    return -size if zone[0] == "-" else size
