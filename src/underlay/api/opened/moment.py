"""Reads points in time as users write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from underlay.errors import InvalidRequest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_moment(moment: str | date | datetime) -> int:
    """Microseconds since 1970. A date is its first moment, and a time without a zone is UTC. Raises InvalidRequest."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise InvalidRequest(
                "not a date or time", found=moment, hint="Write 2026-01-31 or 2026-01-31T23:59:59+01:00."
            ) from None
    if not isinstance(moment, date):
        raise InvalidRequest("not a date or time", found=repr(moment), hint="Give text, a date or a datetime.")
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def show_moment(moment_us: int) -> datetime:
    """The moment in UTC."""
    return _EPOCH + timedelta(microseconds=moment_us)
