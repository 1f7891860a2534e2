"""Compares the rows of tables, whatever their order."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

import pyarrow as pa

import underlay


def plain(value: object) -> object:
    """A value that equals itself: NaN and UUIDs as text, zeros alike, instants in UTC, maps as pairs."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, list | tuple):
        return tuple(plain(one) for one in value)
    if isinstance(value, dict):
        return tuple((name, plain(one)) for name, one in value.items())
    return value


def sorted_rows(rows: pa.Table | underlay.Table, columns: Iterable[str] | None = None) -> list[object]:
    """All rows as tuples, sorted by their text."""
    found = rows.scan().to_arrow() if isinstance(rows, underlay.Table) else rows
    names = sorted(found.schema.names) if columns is None else list(columns)
    return sorted((plain(tuple(row[name] for name in names)) for row in found.select(names).to_pylist()), key=repr)
