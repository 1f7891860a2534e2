"""Spans of time as users write them: `7d`, `12h`, `1d12h`, `90s`."""

from __future__ import annotations

import re
from datetime import timedelta

from underlay.errors import InvalidRequest

_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_WHOLE = re.compile(r"(?:[0-9]{1,9}[wdhms])+")
_PART = re.compile(r"([0-9]+)([wdhms])")
_MOST_SECONDS = 1000 * 365 * 86_400


def read_duration(text: str | timedelta, what: str) -> timedelta:
    """The span. Raises InvalidRequest, which says `what` was not one."""
    if isinstance(text, timedelta):
        found: timedelta | None = text
    else:
        is_one = isinstance(text, str) and _WHOLE.fullmatch(text) is not None
        parts = _PART.findall(text) if is_one else []
        seconds = sum(int(number) * _SECONDS[unit] for number, unit in parts)
        found = timedelta(seconds=seconds) if is_one and seconds < _MOST_SECONDS else None
    if found is None or found < timedelta(0):
        raise InvalidRequest(f"{what} is not a span of time", found=repr(text), hint="Write 7d, 12h, 30m or 90s.")
    return found


def show_duration(span: timedelta) -> str:
    """As `read_duration` reads it, in whole seconds."""
    left = int(span.total_seconds())
    parts = []
    for unit, seconds in _SECONDS.items():
        if unit != "w" and left >= seconds:
            parts.append(f"{left // seconds}{unit}")
            left %= seconds
    return "".join(parts) or "0s"
