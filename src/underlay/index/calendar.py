"""Dates and times of files that Spark wrote when it counted days by the Julian calendar before 1582.

The same number then means a day some days off. Bounds that reach into those times are left out.
"""

from __future__ import annotations

import re

import numpy as np

from underlay.index.bounds import Bounds, drop_both
from underlay.parquet.footer import KeyValue
from underlay.parquet.records import Flags
from underlay.schema.types import Kind, Scalar

_LEGACY_KEYS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_SPARK_VERSION = b"org.apache.spark.version"
_FIRST_PROLEPTIC_SPARK = 3

_GREGORIAN_DAY = -141427
"""1582-10-15, the first day of the Gregorian calendar."""

_FIRST_SURE_SECOND = -2208988800
"""1900-01-01. Before it, the calendars' time zones differ too."""

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def has_legacy_calendar(key_values: tuple[KeyValue, ...]) -> bool:
    """Whether Spark wrote the file with the old calendar, or when it knew no other."""
    for key, value in key_values:
        if key in _LEGACY_KEYS:
            return True
        if key == _SPARK_VERSION:
            major = re.match(rb"(\d+)", value or b"")
            if major is None or int(major[1]) < _FIRST_PROLEPTIC_SPARK:
                return True
    return False


def drop_old_times(low: Bounds, high: Bounds, column: Scalar, is_legacy: Flags) -> None:
    """Where the calendar is in doubt, leave out bounds of days and times that both calendars do not share."""
    if not is_legacy.any() or column.kind not in (Kind.DATE, Kind.TIMESTAMP):
        return
    limit = _GREGORIAN_DAY if column.kind is Kind.DATE else _FIRST_SURE_SECOND * _PER_SECOND[column.unit or "us"]
    below = [is_legacy & bounds.has & (np.asarray(bounds.values) < limit) for bounds in (low, high)]
    drop_both(low, high, below[0] | below[1])
