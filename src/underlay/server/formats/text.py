"""Converts values to text, a column at a time and by type, with every digit and never through a Python date or float.

`datetime` ends in the year 9999, `json.dumps` writes NaN, which no browser reads, and both round. This module computes
with integers, and takes Arrow's shortest digits for floats that read back the same.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from json.encoder import encode_basestring as _quoted
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

AnyArray: TypeAlias = "pa.Array[Any]"  # Any: of every type

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DAYS_INFINITE = 2**31 - 1
_INSTANT_INFINITE = 2**63 - 1
_ODD_FLOATS = {"nan": '"NaN"', "-nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"', "-0": "-0.0"}
"""Values that JSON numbers cannot express, and negative zero, which readers would take for the integer 0."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A text for each value, None for null. `is_json`: the texts are valid JSON as they are; others need quotes."""

    values: list[str | None]
    is_json: bool

    def as_json(self) -> list[str]:
        """Each as JSON."""
        if self.is_json:
            return ["null" if value is None else value for value in self.values]
        return ["null" if value is None else _quoted(value) for value in self.values]


def texts_of(column: AnyArray, *, integers_as_text: bool = False) -> Texts:
    """The values of a column as text."""
    kind = column.type
    if isinstance(column, pa.DictionaryArray):
        return texts_of(column.dictionary_decode(), integers_as_text=integers_as_text)
    if isinstance(column, pa.ExtensionArray):
        return texts_of(column.storage, integers_as_text=integers_as_text)
    if pa.types.is_null(kind):
        return Texts([None] * len(column), is_json=True)
    if pa.types.is_integer(kind):
        return Texts(_cast(column), is_json=not integers_as_text)
    if pa.types.is_boolean(kind):
        return Texts(_cast(column), is_json=True)
    if pa.types.is_floating(kind):
        return _floats(column)
    if isinstance(kind, pa.Decimal128Type | pa.Decimal256Type):
        return Texts(_decimals(column), is_json=kind.scale <= 0 and not integers_as_text)
    simple = _simple(column)
    if simple is not None:
        return Texts(simple, is_json=False)
    return Texts(_nested(column, integers_as_text), is_json=True)


def _simple(column: AnyArray) -> list[str | None] | None:
    """Texts that need quotes in JSON; None for nested types."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.to_pylist()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [None if value is None else b64encode(value).decode() for value in column.to_pylist()]
    if pa.types.is_date(kind):
        return _dates(column)
    if isinstance(kind, pa.TimestampType):
        return _timestamps(column, kind)
    if isinstance(kind, pa.Time32Type | pa.Time64Type):
        return _each(_numbers(column), lambda value: _time(value, _DIGITS[kind.unit]))
    if pa.types.is_duration(kind):
        digits = _DIGITS[kind.unit]
        return _each(_numbers(column), lambda value: f"PT{_fraction(value, digits)}S" if value else "PT0S")
    if kind == pa.month_day_nano_interval():
        return [None if value is None else _interval(*value) for value in _intervals(column)]
    return None


def _cast(column: AnyArray) -> list[str | None]:
    return pc.cast(column, pa.string()).to_pylist()


def _floats(column: AnyArray) -> Texts:
    if pa.types.is_float16(column.type):
        column = pc.cast(column, pa.float32())
    shown = [None if text is None else _ODD_FLOATS.get(text, text) for text in _cast(column)]
    return Texts(shown, is_json=True)


def _decimals(column: AnyArray) -> list[str | None]:
    """Plain digits: Arrow would write small decimals as 1E-8."""
    return [format(Decimal(text), "f") if text is not None and "E" in text else text for text in _cast(column)]


def _numbers(column: AnyArray) -> list[int | None]:
    """Values of a type that counts something, as integers."""
    width = pa.int32() if column.type.bit_width == 32 else pa.int64()
    return column.view(width).to_pylist()


def _each(values: Sequence[int | None], show: Callable[[int], str]) -> list[str | None]:
    return [None if value is None else show(value) for value in values]


def _dates(column: AnyArray) -> list[str | None]:
    if pa.types.is_date64(column.type):
        column = pc.cast(column, pa.date32())
    return _calendar(column, "D", _DAYS_INFINITE, "")


def _timestamps(column: AnyArray, kind: pa.TimestampType[Any, Any]) -> list[str | None]:
    return _calendar(column, kind.unit, _INSTANT_INFINITE, "" if kind.tz is None else "Z")


def _calendar(column: AnyArray, unit: str, infinite: int, zone: str) -> list[str | None]:
    """Dates and timestamps by numpy's calendar, which has no last year. DuckDB's infinities are the ends of the
    range.
    """
    numbers = column.view(pa.int32() if unit == "D" else pa.int64())
    filled: AnyArray = numbers.fill_null(0)
    counted = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    found: list[str] = np.datetime_as_string(counted.astype(f"M8[{unit}]")).tolist()
    valid = column.is_valid().to_pylist()
    shown: list[str | None] = []
    for text, number, is_there in zip(found, counted.tolist(), valid, strict=True):
        if not is_there:
            shown.append(None)
        elif abs(number) >= infinite:
            shown.append("infinity" if number > 0 else "-infinity")
        else:
            shown.append(f"{_signed(text)}{zone}")
    return shown


def _signed(text: str) -> str:
    """ISO 8601 has a sign before years that are not four digits."""
    if text[0] == "-":
        year, _, rest = text[1:].partition("-")
        return f"-{year:0>4}-{rest}"
    return f"+{text}" if text.find("-") > 4 else text


def _time(value: int, digits: int) -> str:
    seconds, rest = divmod(value, 10**digits)
    shown = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{shown}.{rest:0{digits}}" if digits else shown


def _intervals(column: AnyArray) -> list[tuple[int, int, int] | None]:
    """Intervals are stored as months, days and nanoseconds, in 16 bytes."""
    fields = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
    data = column.buffers()[1]
    valid = column.is_valid().to_pylist()
    if data is None:
        return [None] * len(column)
    raw: NDArray[Any] = np.frombuffer(memoryview(data), fields, count=len(column) + column.offset)[column.offset :]
    return [tuple(row) if is_there else None for row, is_there in zip(raw.tolist(), valid, strict=True)]


def _interval(months: int, days: int, nanos: int) -> str:
    years, months = _towards_zero(months, 12)
    seconds, rest = _towards_zero(nanos, 10**9)
    minutes, seconds = _towards_zero(seconds, 60)
    hours, minutes = _towards_zero(minutes, 60)
    second = _fraction(seconds * 10**9 + rest, 9) if seconds or rest else ""
    date = "".join(f"{value}{unit}" for value, unit in ((years, "Y"), (months, "M"), (days, "D")) if value)
    time = "".join(f"{value}{unit}" for value, unit in ((hours, "H"), (minutes, "M")) if value)
    time += f"{second}S" if second else ""
    return f"P{date}{'T' if time else ''}{time}" if date or time else "PT0S"


def _towards_zero(value: int, by: int) -> tuple[int, int]:
    whole, rest = divmod(abs(value), by)
    return (whole, rest) if value >= 0 else (-whole, -rest)


def _fraction(value: int, digits: int) -> str:
    """A number of fractions of a second, as seconds."""
    whole, rest = divmod(abs(value), 10**digits)
    after = f"{rest:0{digits}}".rstrip("0") if rest else ""
    return f"{'-' if value < 0 else ''}{whole}{'.' if after else ''}{after}"


def _nested(column: AnyArray, integers_as_text: bool) -> list[str | None]:
    """Lists, structs, maps and unions as JSON."""

    def json_of(inner: AnyArray) -> list[str]:
        return texts_of(inner, integers_as_text=integers_as_text).as_json()

    valid = column.is_valid().to_pylist()
    if isinstance(column, pa.UnionArray):
        return _unions(column, json_of)
    if isinstance(column, pa.StructArray):
        found = _structs(column, json_of)
    elif isinstance(column, pa.MapArray):
        pairs = zip(json_of(column.keys), json_of(column.items), strict=True)
        found = _lists([f"[{key},{item}]" for key, item in pairs], _offsets(column))
    elif isinstance(column, pa.FixedSizeListArray):
        size = column.type.list_size
        begin = column.offset * size
        inner = json_of(column.values.slice(begin, len(column) * size))
        found = _lists(inner, [at * size for at in range(len(column) + 1)])
    elif isinstance(column, pa.ListArray | pa.LargeListArray):
        found = _lists(json_of(column.values), _offsets(column))
    else:
        return _cast(column)
    return [text if is_there else None for text, is_there in zip(found, valid, strict=True)]


def _offsets(column: Any) -> list[int]:  # noqa: ANN401  # of lists and maps, large or not
    return list(column.offsets.to_pylist())


def _lists(inner: Sequence[str], offsets: Sequence[int]) -> list[str]:
    return [f"[{','.join(inner[begin:end])}]" for begin, end in pairwise(offsets)]


def _structs(column: pa.StructArray, json_of: Callable[[AnyArray], list[str]]) -> list[str]:
    names = [field.name for field in column.type]
    if not names:
        return ["{}"] * len(column)
    opening, closing, start, separator = ("{", "}", "", ":") if len(set(names)) == len(names) else ("[", "]", "[", ",")
    end = "]" if start else ""
    columns = []
    for name, inner in zip(names, column.flatten(), strict=True):
        before = f"{start}{_quoted(name)}{separator}"
        columns.append([f"{before}{text}{end}" for text in json_of(inner)])
    return [f"{opening}{','.join(row)}{closing}" for row in zip(*columns, strict=True)]


def _unions(column: pa.UnionArray, json_of: Callable[[AnyArray], list[str]]) -> list[str | None]:
    """The value of the member that is set. DuckDB's unions are sparse: every member has an entry for each row."""
    members = [json_of(column.field(at)) for at in range(column.type.num_fields)]
    codes = {code: at for at, code in enumerate(column.type.type_codes)}
    chosen = [members[codes[code or 0]][row] for row, code in enumerate(column.type_codes.to_pylist())]
    return [None if text == "null" else text for text in chosen]
