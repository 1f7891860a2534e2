"""Which of a file's statistics can be trusted, by who wrote it and what it says about their order.

A bound is useful only if its writer and its reader mean the same order. `min_value` and `max_value` have the type's own
order where the footer says so; the older `min` and `max` were compared as signed numbers whatever the type.

Spark once counted days before 1582 by the Julian calendar, so the same number means a day some days off. Where a file
may have such dates or times, bounds that reach into those years are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np

from underlay.index.intake.file_type import file_type, holds_only_nulls, is_int96
from underlay.index.intake.stored_bounds import HIGH, LOW, Bounds
from underlay.parquet.footer.footer import ColumnOrder, KeyValue
from underlay.parquet.footer.schema import Leaf, Schema
from underlay.parquet.footer.stack import Origin
from underlay.parquet.records.records import Flags
from underlay.schema.types import Scalar, TypeKind
from underlay.values.physical import PhysicalType

_LEGACY_KEYS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_SPARK_VERSION = b"org.apache.spark.version"
_FIRST_PROLEPTIC_SPARK = 3

_GREGORIAN_DAY = -141427
"""1582-10-15, the first day of the Gregorian calendar."""

_FIRST_SURE_SECOND = -2208988800
"""1900-01-01. Before it, the calendars' time zones differ too."""

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def has_legacy_calendar(key_values: tuple[KeyValue, ...]) -> bool:
    """Whether Spark wrote the file with the old calendar, or is a release that had no other."""
    for key, value in key_values:
        if key in _LEGACY_KEYS:
            return True
        if key == _SPARK_VERSION:
            major = re.match(rb"(\d+)", value or b"")
            if major is None or int(major[1]) < _FIRST_PROLEPTIC_SPARK:
                return True
    return False


def is_old_time(bounds: Bounds, column: Scalar, is_legacy: Flags) -> Flags:
    """Where the calendar is in doubt, and a bound is a day or a time that both calendars do not share: neither side
    can be trusted [leaves, row groups]."""
    if column.kind not in (TypeKind.DATE, TypeKind.TIMESTAMP):
        return np.zeros_like(bounds.has[:, LOW])
    limit = _GREGORIAN_DAY if column.kind is TypeKind.DATE else _FIRST_SURE_SECOND * _PER_SECOND[column.unit or "us"]
    below: Flags = is_legacy & bounds.has & (np.asarray(bounds.values) < limit)
    return below[:, LOW] | below[:, HIGH]


Version = tuple[int, int, int]


class Order(Enum):
    """How a writer compares values of a column when it follows the specification."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Trust:
    """For each leaf, whether its `min_value` and `max_value` count, and whether its older `min` and `max` do.

    `is_legacy_calendar`: old dates and times may be in the Julian calendar, which shifts them by days.
    """

    values: tuple[bool, ...]
    deprecated: tuple[bool, ...]
    is_legacy_calendar: bool


_WRITER = re.compile(r"(\S+)(?: version (\d+)\.(\d+)\.(\d+))?")
_FIRST_SOUND: dict[str, Version] = {"parquet-mr": (1, 10, 0), "parquet-cpp": (1, 3, 0)}
"""Before these releases, bounds of bytes and of unsigned numbers were compared as signed, or broken (PARQUET-251)."""

_BYTES = (PhysicalType.BYTE_ARRAY, PhysicalType.FIXED_LEN_BYTE_ARRAY)
_UNSIGNED = (
    TypeKind.UINT8,
    TypeKind.UINT16,
    TypeKind.UINT32,
    TypeKind.UINT64,
    TypeKind.STRING,
    TypeKind.BINARY,
    TypeKind.FIXED,
    TypeKind.UUID,
)


MAX_KNOWN_LEAVES = 500
"""Results for a schema with more leaves are not cached: 64 such schemas would take too much memory."""


def order_of(leaf: Leaf) -> Order:
    """The order of a leaf's bounds. Columns inside lists and maps have none: a bound of values is not one of rows."""
    found = file_type(leaf.node)
    if found is None or found.kind is TypeKind.FLOAT16 or is_int96(leaf.node) or leaf.max_rep_level:
        return Order.NONE
    if holds_only_nulls(leaf.node):
        return Order.NONE
    return Order.UNSIGNED if found.kind in _UNSIGNED else Order.SIGNED


def trusts_of(origins: Sequence[Origin], schema: Schema) -> list[Trust]:
    """Which of each file's statistics count. Files of one writer are checked once."""
    # Files of one stack share their orders, and hashing orders is slower than comparing ids.
    kinds = {(origin.created_by, id(origin.column_orders)): origin for origin in origins}
    find = _known_trusted if len(schema.leaves) <= MAX_KNOWN_LEAVES else _trusted
    trusted = {kind: find(origin.created_by, origin.column_orders, schema) for kind, origin in kinds.items()}
    return [
        Trust(*trusted[origin.created_by, id(origin.column_orders)], has_legacy_calendar(origin.key_values))
        for origin in origins
    ]


def _trusted(
    created_by: str | None, orders: tuple[ColumnOrder, ...] | None, schema: Schema
) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    is_old = is_old_writer(created_by)
    values, deprecated = [], []
    for leaf in schema.leaves:
        order = order_of(leaf)
        is_plain = order is Order.SIGNED and leaf.physical_type not in _BYTES
        is_sound = is_plain or (order is not Order.NONE and not is_old)
        is_stated = orders is not None and leaf.index < len(orders) and orders[leaf.index] is ColumnOrder.TYPE_ORDER
        values.append(is_sound and is_stated)
        deprecated.append(is_plain and (orders is None or is_stated))
    return tuple(values), tuple(deprecated)


_known_trusted = lru_cache(maxsize=64)(_trusted)


def is_old_writer(created_by: str | None) -> bool:
    """Whether the file's writer is a release whose bounds of bytes and unsigned numbers are wrong."""
    found = _WRITER.match(created_by or "")
    first_sound = _FIRST_SOUND.get(found[1]) if found else None
    if found is None or first_sound is None:
        return False
    if found[2] is None:
        return True
    return (int(found[2]), int(found[3]), int(found[4])) < first_sound
