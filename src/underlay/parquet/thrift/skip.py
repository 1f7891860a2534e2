"""Skips a Thrift value of any kind; used for maps, which no Parquet footer has yet.

Every length and count is compared with the bytes that are left, and nesting is bounded.
"""

from __future__ import annotations

from typing import Final

from underlay.errors import Malformed, Truncated
from underlay.parquet.thrift.wire import FIXED_BYTES, INTEGER_BITS, MAX_DEPTH, ThriftKind, read_integer, read_varint

_FLAGS: Final = (ThriftKind.TRUE, ThriftKind.FALSE)


def skip_map(data: bytes, position: int, depth: int = 1) -> int:
    """The position after the map at `position`: a varint count and, unless that is 0, the kinds and the pairs."""
    count, after = read_varint(data, position)
    if not count:
        return after
    kinds = _octet(data, after)
    if 2 * count > len(data) - after:
        raise Truncated("a map has more pairs than bytes are left", place=f"byte {position}", expected=f"{count} pairs")
    after += 1
    for _ in range(count):
        after = _skip_item(data, kinds >> 4, after, depth + 1)
        after = _skip_item(data, kinds & 15, after, depth + 1)
    return after


def _skip_item(data: bytes, number: int, position: int, depth: int) -> int:
    """The position after an item of a map or list, or after the value of a field that is not a flag."""
    if depth > MAX_DEPTH:
        raise Malformed("values are nested too deeply", place=f"byte {position}", expected=f"at most {MAX_DEPTH}")
    if not ThriftKind.TRUE <= number <= ThriftKind.UUID:
        raise Malformed(
            "a value has a kind that does not exist", place=f"byte {position}", expected="1 to 13", found=number
        )
    kind = ThriftKind(number)
    if kind in INTEGER_BITS:
        return read_integer(data, position, kind)[1]
    if kind is ThriftKind.STRUCT:
        return _skip_struct(data, position, depth)
    if kind is ThriftKind.MAP:
        return skip_map(data, position, depth)
    if kind in (ThriftKind.LIST, ThriftKind.SET):
        return _skip_list(data, position, depth)
    if kind in _FLAGS and _octet(data, position) > ThriftKind.FALSE:
        raise Malformed("a flag is neither true nor false", place=f"byte {position}", expected="1 or 2")
    after = position + FIXED_BYTES.get(kind, 1)
    if kind is ThriftKind.BINARY:
        length, begin = read_varint(data, position)
        after = begin + length
    if after > len(data):
        raise Truncated("a value reaches past the end of the input", place=f"byte {position}")
    return after


def _skip_struct(data: bytes, position: int, depth: int) -> int:
    while header := _octet(data, position):
        position += 1
        if header < 1 << 4:
            position = read_integer(data, position, ThriftKind.I16)[1]
        if header & 15 not in _FLAGS:
            position = _skip_item(data, header & 15, position, depth + 1)
    return position + 1


def _skip_list(data: bytes, position: int, depth: int) -> int:
    header = _octet(data, position)
    count, after = header >> 4, position + 1
    if count == 15:
        count, after = read_varint(data, after)
    if count > len(data) - after:
        raise Truncated(
            "a list has more items than bytes are left", place=f"byte {position}", expected=f"{count} items"
        )
    for _ in range(count):
        after = _skip_item(data, header & 15, after, depth + 1)
    return after


def _octet(data: bytes, position: int) -> int:
    if position >= len(data):
        raise Truncated("the input ends inside a map", place=f"byte {len(data)}")
    return data[position]
