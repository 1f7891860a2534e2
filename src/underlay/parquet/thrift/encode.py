"""Thrift values as Python values, and their canonical bytes.

Canonical means: the short field header wherever the id grows by 1 to 15, the shortest varint, the short list header
below 15 items, TRUE as the item kind of flag lists. `Raw` carries bytes that are copied as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from underlay.errors import InvalidRequest
from underlay.parquet.thrift.wire import MAX_DEPTH, ThriftKind, fits, write_integer, write_varint


@dataclass(frozen=True, slots=True)
class Bool:
    """A flag."""

    value: bool


@dataclass(frozen=True, slots=True)
class I8:
    """A signed byte."""

    value: int


@dataclass(frozen=True, slots=True)
class I16:
    """A signed 16-bit number."""

    value: int


@dataclass(frozen=True, slots=True)
class I32:
    """A signed 32-bit number."""

    value: int


@dataclass(frozen=True, slots=True)
class I64:
    """A signed 64-bit number."""

    value: int


@dataclass(frozen=True, slots=True)
class Double:
    """Eight bytes of a double, as stored: every NaN survives."""

    data: bytes

    @classmethod
    def of(cls, value: float) -> Double:
        """The double of a Python number."""
        return cls(struct.pack("<d", value))


@dataclass(frozen=True, slots=True)
class Uuid:
    """Sixteen bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ThriftBinary:
    """Bytes or text."""

    data: bytes


@dataclass(frozen=True, slots=True)
class List:
    """Items of one kind; `is_set` when the kind is SET. An empty list may have item kind STOP."""

    kind: ThriftKind
    items: tuple[Value, ...]
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields by id, encoded in the mapping's order."""

    fields: Mapping[int, Value]


@dataclass(frozen=True, slots=True)
class Raw:
    """The bytes of a value of some kind, copied as they are; none for a flag in a struct."""

    kind: ThriftKind
    data: bytes


Value = Bool | I8 | I16 | I32 | I64 | Double | Uuid | ThriftBinary | List | Struct | Raw

_KINDS: dict[type, ThriftKind] = {
    I8: ThriftKind.I8,
    I16: ThriftKind.I16,
    I32: ThriftKind.I32,
    I64: ThriftKind.I64,
    Double: ThriftKind.DOUBLE,
    Uuid: ThriftKind.UUID,
    ThriftBinary: ThriftKind.BINARY,
    Struct: ThriftKind.STRUCT,
}


def kind_of(value: Value) -> ThriftKind:
    """The kind that a field header gives to the value."""
    if isinstance(value, Bool):
        return ThriftKind.TRUE if value.value else ThriftKind.FALSE
    if isinstance(value, List):
        return ThriftKind.SET if value.is_set else ThriftKind.LIST
    if isinstance(value, Raw):
        return value.kind
    return _KINDS[type(value)]


def encode(value: Value) -> bytes:
    """The canonical bytes of a value, without a field header. A flag is encoded as inside a list."""
    parts: list[bytes] = []
    _write(value, parts, 1)
    return b"".join(parts)


def _write(value: Value, parts: list[bytes], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidRequest("values are nested too deeply", expected=f"at most {MAX_DEPTH} levels")
    if isinstance(value, Struct):
        _write_struct(value, parts, depth)
    elif isinstance(value, List):
        _write_list(value, parts, depth)
    else:
        parts.append(_plain_bytes(value))


def _plain_bytes(value: Bool | I8 | I16 | I32 | I64 | Double | Uuid | ThriftBinary | Raw) -> bytes:
    if isinstance(value, Bool):
        return b"\1" if value.value else b"\2"
    if isinstance(value, I16 | I32 | I64):
        if not fits(value.value, kind_of(value)):
            raise InvalidRequest(f"a number does not fit {kind_of(value).name}", found=value.value)
        return write_integer(value.value)
    if isinstance(value, I8):
        if not -128 <= value.value < 128:
            raise InvalidRequest("a number does not fit I8", found=value.value)
        return value.value.to_bytes(1, "little", signed=True)
    if isinstance(value, ThriftBinary):
        return write_varint(len(value.data)) + value.data
    expected = {Double: 8, Uuid: 16}.get(type(value))
    if expected is not None and len(value.data) != expected:
        raise InvalidRequest(f"a {type(value).__name__} has the wrong size", expected=expected, found=len(value.data))
    return value.data


def _write_struct(value: Struct, parts: list[bytes], depth: int) -> None:
    last = 0
    for field, item in value.fields.items():
        kind = kind_of(item)
        parts.append(field_header(last, field, kind))
        if kind not in (ThriftKind.TRUE, ThriftKind.FALSE):
            _write(item, parts, depth + 1)
        last = field
    parts.append(b"\0")


def field_header(last: int, field: int, kind: ThriftKind) -> bytes:
    """The header of a field that comes after field `last` of the same struct, 0 before the first."""
    if not -0x8000 <= field < 0x8000:
        raise InvalidRequest("a field id does not fit 16 bits", found=field)
    if 1 <= field - last <= 15:
        return bytes(((field - last) << 4 | kind,))
    return bytes((kind,)) + write_integer(field)


def list_header(kind: ThriftKind, count: int) -> bytes:
    """The header of a list or set of `count` items."""
    if count < 15:
        return bytes((count << 4 | kind,))
    return bytes((0xF0 | kind,)) + write_varint(count)


def _write_list(value: List, parts: list[bytes], depth: int) -> None:
    parts.append(list_header(value.kind, len(value.items)))
    for item in value.items:
        _check_kind(item, value.kind)
        _write(item, parts, depth + 1)


def _check_kind(item: Value, kind: ThriftKind) -> None:
    found = kind_of(item)
    if found is not kind and not (isinstance(item, Bool) and kind in (ThriftKind.TRUE, ThriftKind.FALSE)):
        raise InvalidRequest("an item is not of its list's kind", expected=kind.name, found=found.name)
