"""The forms of a value in line protocol: a pattern for each, and its bytes as values of an Arrow column.

| form | written as | type | who |
|---|---|---|---|
| tag | bare text | string | both |
| text | `"in quotes"` | string | both |
| float | `1.5`, `-2e3`; QuestDB also `NaN`, `Infinity` | float64 | both |
| float, binary | `=`, 16, eight bytes | float64 | QuestDB's protocol 2 |
| integer | `7i` | int64 | both |
| unsigned | `7u` | uint64 | InfluxDB |
| boolean | `t`, `T`, `true`, `True`, `TRUE`, `f` … | bool | both |
| microseconds | `7t` | timestamp | QuestDB |
| nanoseconds | `7n` | timestamp | QuestDB |
| decimal | `1.25d`, or `=`, 23, scale, length, big-endian bytes | decimal | QuestDB's protocol 3 |
| array | `=`, 14, 10, dimensions, their sizes, values | nested lists of float64 | QuestDB's protocol 2 |
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from enum import Enum
from typing import Literal

import numpy as np
import pyarrow as pa

from underlay.schema.arrow_aliases import AnyArray


class Flavour(Enum):
    """Whose rules hold. They differ in what a backslash does, and in some forms of values."""

    INFLUXDB = "InfluxDB"
    QUESTDB = "QuestDB"


class Form(Enum):
    """How a value is written."""

    TAG = "tag"
    TEXT = "text"
    FLOAT = "float"
    BINARY_FLOAT = "binary float"
    INTEGER = "integer"
    UNSIGNED = "unsigned"
    BOOLEAN = "boolean"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"
    DECIMAL = "decimal"
    BINARY_DECIMAL = "binary decimal"
    ARRAY = "array"


PATTERN_BYTES = 64
"""A number with more bytes than this is an error: nobody writes one on purpose, and converting it would take long."""

_INTEGER = rb"[+-]?[0-9]+"
_FLOAT = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NOT_FINITE = rb"[+-]?(?:NaN|nan|Infinity|inf)"
_BOOLEAN = rb"(?:true|True|TRUE|false|False|FALSE|[tTfF])"
_BINARY = b"="
_BINARY_FLOAT = rb"=\x10(?s:.{8})"

PATTERNS: dict[Flavour, dict[Form, bytes]] = {
    Flavour.INFLUXDB: {
        Form.TEXT: rb'"(?:[^"\\]++|\\(?s:.))*+"',
        Form.FLOAT: _FLOAT,
        Form.INTEGER: _INTEGER + b"i",
        Form.UNSIGNED: rb"\+?[0-9]+u",
        Form.BOOLEAN: _BOOLEAN,
    },
    Flavour.QUESTDB: {
        # a line ends in a string too, unless a backslash comes before its end
        Form.TEXT: rb'"(?:[^"\\\n]++|\\(?s:.))*+"',
        Form.FLOAT: rb"(?:" + _FLOAT + rb"|" + _NOT_FINITE + rb")",
        Form.BINARY_FLOAT: _BINARY_FLOAT,
        Form.INTEGER: _INTEGER + b"i",
        Form.UNSIGNED: rb"\+?[0-9]+u",
        Form.BOOLEAN: _BOOLEAN,
        Form.MICROSECONDS: _INTEGER + b"t",
        Form.NANOSECONDS: _INTEGER + b"n",
        Form.DECIMAL: rb"(?:" + _FLOAT + rb"|NaN)d",
    },
}
"""The pattern of each form that has one: those of decimals and arrays in binary depend on lengths inside."""

_ANY = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPED = {
    "measurement": re.compile(rb"\\([, ])"),
    "name": re.compile(rb"\\([, =])"),
    "text": re.compile(rb'\\(["\\])'),
}
"""InfluxDB's escapes. In QuestDB's flavour a backslash stands for the next byte everywhere."""
_MOST_DIGITS = 76
_EXACT = Context(prec=2 * _MOST_DIGITS)
_MOST_DIMENSIONS = 32
_DOUBLE = 10
_NO_ARRAY = 33


def unescape(raw: bytes, flavour: Flavour, part: Literal["measurement", "name", "text"] = "name") -> bytes:
    """A measurement, a name or a tag's value, or what is between a text's quotes, as it was meant."""
    if b"\\" not in raw:
        return raw
    return (_ANY if flavour is Flavour.QUESTDB else _ESCAPED[part]).sub(rb"\1", raw)


def scan_binary(body: bytes, at: int) -> tuple[Form, int] | None:
    """The form of a binary value that begins at `at` with `=`, and its end; None if it is none, or is cut short."""
    kind = body[at + 1 : at + 2]
    if kind == b"\x10":
        form, end = Form.BINARY_FLOAT, at + 10
    elif kind == b"\x17" and at + 3 < len(body):
        form, end = Form.BINARY_DECIMAL, at + 4 + body[at + 3]
    elif kind == b"\x0e" and body[at + 2 : at + 3] == bytes((_NO_ARRAY,)):
        form, end = Form.ARRAY, at + 3
    elif kind == b"\x0e" and body[at + 2 : at + 3] == bytes((_DOUBLE,)) and at + 3 < len(body):
        dimensions = body[at + 3]
        sizes = body[at + 4 : at + 4 + 4 * dimensions]
        if not 1 <= dimensions <= _MOST_DIMENSIONS or len(sizes) < 4 * dimensions:
            return None
        count = 1
        for size in struct.unpack(f"<{dimensions}I", sizes):
            count *= size
        form, end = Form.ARRAY, at + 4 + 4 * dimensions + 8 * count
    else:
        return None
    return (form, end) if end <= len(body) else None


def decode(form: Form, raw: Sequence[bytes], flavour: Flavour) -> AnyArray:
    """The values of a column that was written in this form. Raises ValueError (ArrowInvalid is one) and OverflowError
    if one of them is none.
    """
    match form:
        case Form.TAG:
            return _texts([unescape(one, flavour) for one in raw])
        case Form.TEXT:
            return _texts([unescape(one[1:-1], flavour, "text") for one in raw])
        case Form.FLOAT:
            return _floats(raw)
        case Form.BINARY_FLOAT:
            return pa.array(np.frombuffer(b"".join([one[2:] for one in raw]), "<f8"))
        case Form.INTEGER | Form.MICROSECONDS | Form.NANOSECONDS:
            found = pa.array(whole_numbers([one[:-1] for one in raw]), pa.int64())
            return found if form is Form.INTEGER else found.cast(time_type(form))
        case Form.UNSIGNED:
            return pa.array(whole_numbers([one[:-1] for one in raw]), pa.uint64())
        case Form.BOOLEAN:
            return pa.array([one[0] in b"tT" for one in raw], pa.bool_())
        case Form.DECIMAL:
            return pa.array([_decimal(one[:-1]) for one in raw])
        case Form.BINARY_DECIMAL:
            return pa.array([_binary_decimal(one) for one in raw])
        case Form.ARRAY:
            return _arrays(raw)


def time_type(form: Form) -> pa.DataType:
    """The type of QuestDB's times."""
    return pa.timestamp("ns" if form is Form.NANOSECONDS else "us", "UTC")


def whole_numbers(raw: Sequence[bytes]) -> list[int]:
    """Whole numbers. Raises ValueError."""
    if max(map(len, raw)) > PATTERN_BYTES:
        raise ValueError("a number is too long")
    return list(map(int, raw))


def _texts(raw: list[bytes]) -> AnyArray:
    return pa.array(raw, pa.binary()).cast(pa.string())


def _floats(raw: Sequence[bytes]) -> AnyArray:
    found = np.array(list(map(float, raw)), np.float64)
    infinite = np.flatnonzero(np.isinf(found)).tolist()
    if any(b"inf" not in raw[at].lower() for at in infinite):
        raise ValueError("a number is too large for 64 bits")
    return pa.array(found)


def _decimal(raw: bytes) -> Decimal | None:
    if raw == b"NaN":
        return None
    if len(raw) > PATTERN_BYTES + _MOST_DIGITS:
        raise ValueError("a number is too long")
    found = Decimal(raw.decode())
    if found.adjusted() >= _MOST_DIGITS or found.as_tuple().exponent < -_MOST_DIGITS:  # type: ignore[operator]  # it is finite
        raise ValueError("a decimal has too many digits")
    return found


def _binary_decimal(raw: bytes) -> Decimal | None:
    scale, unscaled = raw[2], raw[4:]
    if not unscaled:
        return None
    if len(unscaled) > 32 or scale > _MOST_DIGITS:
        raise ValueError("a decimal has too many digits")
    return Decimal(int.from_bytes(unscaled, "big", signed=True)).scaleb(-scale, _EXACT)


def _arrays(raw: Sequence[bytes]) -> AnyArray:
    kinds = {one[3] for one in raw if len(one) > 3}
    if len(kinds) > 1:
        raise ValueError("arrays of one column have different numbers of dimensions")
    dimensions = kinds.pop() if kinds else 1
    kind: pa.DataType = pa.float64()
    for _ in range(dimensions):
        kind = pa.list_(kind)
    return pa.array([_array(one, dimensions) for one in raw], kind)


def _array(raw: bytes, dimensions: int) -> list[object] | None:
    if len(raw) <= 3:
        return None
    begin = 4 + 4 * dimensions
    sizes = struct.unpack_from(f"<{dimensions}I", raw, 4)
    found: list[object] = np.frombuffer(raw, "<f8", offset=begin).reshape(sizes).tolist()
    return found
