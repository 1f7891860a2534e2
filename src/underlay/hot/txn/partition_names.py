"""How a table is cut into partitions by time, and what their directories are called."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from underlay.errors import InvalidRequest

_EPOCH = datetime(1970, 1, 1)  # partitions are cut in UTC, and named without a zone
_MONDAY = 3
"""Days from the first Monday before 1970-01-01, a Thursday."""
_DAY = {"us": 86_400_000_000, "ns": 86_400_000_000_000}


class Granularity(StrEnum):
    """How long a partition is."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"
    NONE = "none"


_FORMS = {
    Granularity.HOUR: "%Y-%m-%dT%H",
    Granularity.DAY: "%Y-%m-%d",
    Granularity.MONTH: "%Y-%m",
    Granularity.YEAR: "%Y",
}
_NUMPY = {Granularity.MONTH: "M", Granularity.YEAR: "Y"}


def read_granularity(text: str) -> Granularity:
    """Raises InvalidRequest for an unknown one."""
    try:
        return Granularity(text)
    except ValueError:
        known = ", ".join(Granularity)
        raise InvalidRequest("unknown length of a partition", found=text, expected=known) from None


def begins_of(values: npt.NDArray[np.int64], granularity: Granularity, unit: str) -> npt.NDArray[np.int64]:
    """For each timestamp, in microseconds or nanoseconds since 1970, when its partition begins."""
    if granularity is Granularity.NONE:
        return np.zeros(len(values), np.int64)
    day = _DAY[unit]
    if granularity is Granularity.WEEK:
        days = values // day
        found: npt.NDArray[np.int64] = (days - (days + _MONDAY) % 7) * day
        return found
    if granularity in _NUMPY:
        moments: npt.NDArray[Any] = values.view(f"M8[{unit}]").astype(f"M8[{_NUMPY[granularity]}]")
        return moments.astype(f"M8[{unit}]").view(np.int64)
    step = day // 24 if granularity is Granularity.HOUR else day
    floored: npt.NDArray[np.int64] = values // step * step
    return floored


def end_of(begin: int, granularity: Granularity, unit: str) -> int | None:
    """When the partition that begins here ends; None for one that never does."""
    if granularity is Granularity.NONE:
        return None
    day = _DAY[unit]
    if granularity in _NUMPY:
        one = _NUMPY[granularity]
        number = np.array([begin], np.int64).view(f"M8[{unit}]").astype(f"M8[{one}]").view(np.int64) + 1
        return int(number.view(f"M8[{one}]").astype(f"M8[{unit}]").view(np.int64)[0])
    steps = {Granularity.HOUR: day // 24, Granularity.DAY: day, Granularity.WEEK: 7 * day}
    return begin + steps[granularity]


def partition_name(begin: int, granularity: Granularity, unit: str) -> str:
    """The name of a partition, as QuestDB writes it. Raises InvalidRequest beyond the years 1 to 9999."""
    if granularity is Granularity.NONE:
        return "default"
    try:
        moment = _EPOCH + timedelta(microseconds=begin if unit == "us" else begin // 1000)
    except OverflowError:
        raise InvalidRequest(
            "a timestamp is outside the years 1 to 9999, so its partition has no name", found=f"{begin} {unit}"
        ) from None
    if granularity is Granularity.WEEK:
        year, week, _ = moment.isocalendar()
        return f"{year:04}-W{week:02}"
    text = moment.strftime(_FORMS[granularity])
    return text.zfill(4) if granularity is Granularity.YEAR else f"{moment.year:04}{text[text.index('-') :]}"


def directory_name(name: str, name_txn: int) -> str:
    """The directory of a partition: `.N` follows its name unless N is -1."""
    return name if name_txn == -1 else f"{name}.{name_txn}"


_DIRECTORY = re.compile(r"(\d{4}(?:-\d{2}(?:-\d{2}(?:T\d{2})?)?|-W\d{2})?|default)(?:\.(\d+))?")


def parse_directory(text: str) -> tuple[str, int] | None:
    """The name and the number of a partition's directory; None for any other."""
    found = _DIRECTORY.fullmatch(text)
    return None if found is None else (found[1], -1 if found[2] is None else int(found[2]))


def show_timestamp(value: int, unit: str) -> str:
    """A timestamp for people."""
    try:
        return (
            datetime.fromtimestamp(0, UTC) + timedelta(microseconds=value if unit == "us" else value // 1000)
        ).isoformat()
    except OverflowError:
        return f"{value} {unit} since 1970"
