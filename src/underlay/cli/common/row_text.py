"""Values of rows as text, for CSV, JSON and people. No digit of a number is lost."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from underlay.schema.arrow_aliases import AnyArray

_ROWS_AT_ONCE = 4_096
"""The number of rows converted to Python objects at a time."""
_TEXT_IN_CSV = (pa.string_view(), pa.binary_view(), pa.month_day_nano_interval())
"""Flat types that Arrow's CSV writer refuses."""


def csv_type(kind: pa.DataType) -> pa.DataType:
    """The type in which a column is written: text for types that CSV cannot express, else the column's own."""
    if isinstance(kind, pa.DictionaryType):
        return csv_type(kind.value_type)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    if is_bytes or pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType) or kind in _TEXT_IN_CSV:
        return pa.string()
    return kind


def as_csv_column(column: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """The column in the type of `csv_type`: bytes as hexadecimal digits, nested values as JSON."""
    if isinstance(column, pa.DictionaryArray):
        return as_csv_column(column.dictionary_decode(), kind)
    if column.type == kind:
        return column
    if pa.types.is_nested(column.type):
        column = column.cast(json_type(column.type))
    return pa.array([_as_text(value) for value in column.to_pylist()], pa.string())


def json_type(kind: pa.DataType) -> pa.DataType:
    """The nested type with text in place of times and dates: Python's have neither their range nor their precision."""
    if isinstance(kind, pa.StructType):
        return pa.struct([field.with_type(json_type(field.type)) for field in kind])
    if isinstance(kind, pa.MapType):
        return pa.map_(json_type(kind.key_type), json_type(kind.item_type))
    if isinstance(kind, pa.ListType):
        return pa.list_(kind.value_field.with_type(json_type(kind.value_type)))
    if isinstance(kind, pa.LargeListType):
        return pa.large_list(kind.value_field.with_type(json_type(kind.value_type)))
    # Arrow has no text for intervals.
    return pa.string() if pa.types.is_temporal(kind) and not pa.types.is_interval(kind) else kind


def python_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Rows by position, since names may occur twice; points in time are text in them."""
    for batch in batches:
        for begin in range(0, batch.num_rows, _ROWS_AT_ONCE):
            part = batch.slice(begin, _ROWS_AT_ONCE)
            yield from zip(*map(_python_values, part.columns), strict=True) if part.columns else ((),) * part.num_rows


def _python_values(column: AnyArray) -> list[Any]:
    kind = json_type(column.type)
    texts: AnyArray = column if kind == column.type else column.cast(kind)  # a cast loads 100 functions
    values: list[Any] = texts.to_pylist()
    return values


def json_value(value: Any, kind: Any) -> object:  # noqa: ANN401  # a value of any type and its type
    """The value for JSON: decimals, times and bytes are strings."""
    if value is None:
        return None
    if isinstance(kind, pa.DictionaryType):
        return json_value(value, kind.value_type)
    if isinstance(kind, pa.StructType):
        return {field.name: json_value(value[field.name], field.type) for field in kind}
    if isinstance(kind, pa.MapType):
        pairs = [(json_value(key, kind.key_type), json_value(item, kind.item_type)) for key, item in value]
        return dict(pairs) if pa.types.is_string(kind.key_type) else [list(pair) for pair in pairs]
    if isinstance(value, list):
        return [json_value(item, kind.value_type) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _json_float(value, kind)
    if isinstance(value, pa.MonthDayNano):
        return interval_text(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    text = str(value)
    is_instant = pa.types.is_timestamp(kind) and not text.startswith("<")  # "<value out of range: …>"
    return text.replace(" ", "T", 1) if is_instant else text


def _json_float(value: float, kind: pa.DataType) -> object:
    if not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if pa.types.is_float32(kind):
        import numpy as np

        return float(str(np.float32(value)))  # the shortest digits for 32 bits, not for 64
    return value


def interval_text(value: pa.MonthDayNano) -> str:
    """An interval in ISO 8601, with all digits of its seconds: P1M2DT3.5S."""
    seconds, nanoseconds = divmod(abs(value.nanoseconds), 1_000_000_000)
    sign = "-" if value.nanoseconds < 0 else ""
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    return f"P{value.months}M{value.days}DT{sign}{seconds}{fraction}S"


def _as_text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, pa.MonthDayNano):
        return interval_text(value)
    if isinstance(value, list | dict | tuple):
        return json.dumps(_plain(value), default=_as_text, ensure_ascii=False)
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _plain(value: object) -> object:
    """A nested value with intervals as text: they are tuples, which JSON would write as lists."""
    if isinstance(value, pa.MonthDayNano):
        return interval_text(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
