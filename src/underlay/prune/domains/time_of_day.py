"""Times of day: units since midnight, without a date and without a zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time
from fractions import Fraction

from underlay.prune.domains.encoded_integers import Unit
from underlay.prune.domains.integers import Readings, Whole
from underlay.prune.domains.selection import Key
from underlay.prune.predicates.instant import DAY_NS, SECOND_NS
from underlay.prune.predicates.operand import Operand

_CLOCK_TEXT = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class TimesOfDay(Whole):
    """Units since midnight in an INT32 (seconds, milliseconds) or an INT64.

    Every integer of the width is a value: some engines write 24:00:00.
    """

    unit: Unit

    def __post_init__(self) -> None:
        """Refuses days."""
        if self.unit is Unit.DAY:
            raise ValueError("a time of day is counted in seconds or less")

    @property
    def name(self) -> str:
        """`time(millisecond)`, …"""
        return f"time({self.unit.name.lower()})"

    @property
    def first(self) -> int:
        """The least integer of the width."""
        return -(1 << (8 * self.width_bytes - 1))

    @property
    def last(self) -> int:
        """The greatest integer of the width."""
        return (1 << (8 * self.width_bytes - 1)) - 1

    @property
    def width_bytes(self) -> int:
        """4 or 8."""
        return 4 if self.unit in (Unit.SECOND, Unit.MILLISECOND) else 8

    def read(self, literal: Operand) -> Readings:
        """A typed literal exactly; text from the unit below to the unit above, since casts of text round."""
        exact = self.point(literal)
        if isinstance(literal, str):
            return exact.__floor__(), exact.__ceil__()
        return exact, exact

    def point(self, literal: Operand) -> Fraction:
        """The literal in units, exactly. Raises BadPredicate for one that is not a time of day."""
        ns = parse_clock(literal) if isinstance(literal, str) else None
        if isinstance(literal, time) and literal.tzinfo is None:
            ns = clock_ns(literal)
        if ns is None:
            raise self.mismatch(literal, "Write TIME '23:59:59.123456'.")
        return Fraction(ns, self.unit.value)

    def show(self, key: Key) -> str:
        """As `HH:MM:SS` with the digits below the second that it needs."""
        if isinstance(key, bytes):
            raise TypeError(f"a column of times has the key {key!r}")
        ns = int(key) * self.unit.value
        if not 0 <= ns < DAY_NS:
            return f"{ns} ns since midnight"
        seconds, fraction_ns = divmod(ns, SECOND_NS)
        text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        digits = f"{fraction_ns:09d}".rstrip("0")
        return f"{text}.{digits}" if digits else text


def clock_ns(moment: time) -> int:
    """Nanoseconds since midnight."""
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    return seconds * SECOND_NS + moment.microsecond * 1_000


def parse_clock(text: str) -> int | None:
    """Nanoseconds since midnight of `HH:MM`, `HH:MM:SS` or with up to nine digits more; None for other text."""
    match = _CLOCK_TEXT.fullmatch(text.strip(" "))
    if match is None:
        return None
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    return (hour * 3600 + minute * 60 + second) * SECOND_NS + int((match[4] or "").ljust(9, "0"))


def parse_time(text: str) -> time | None:
    """The time that text names to the microsecond; None when it is not a time, or has more digits."""
    ns = parse_clock(text)
    if ns is None or ns % 1_000:
        return None
    seconds, fraction_ns = divmod(ns, SECOND_NS)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, fraction_ns // 1_000)
