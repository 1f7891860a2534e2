"""Protocol Buffers as Flight SQL uses them: varints, and bytes with a length. Pure.

A message is fields; a field is its number and wire type, then a varint (type 0) or a length and bytes (type 2). Other
wire types are skipped, and so are unknown fields.
"""

from __future__ import annotations

from collections.abc import Iterator

from underlay.errors import Malformed

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}
_MOST_BITS = 64

Value = int | bytes
Fields = dict[int, list[Value]]
"""All values of a field, in order."""


def read_fields(data: bytes) -> Fields:
    """The fields of a message. Raises Malformed for bytes that are not one."""
    found: Fields = {}
    for number, value in _fields(data):
        found.setdefault(number, []).append(value)
    return found


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise Malformed("a field of a message has the number 0", place=f"byte {at}")
        if wire == _VARINT:
            value, at = read_varint(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = read_varint(data, at)
        elif wire in _FIXED_SIZES:
            size = _FIXED_SIZES[wire]
        else:
            raise Malformed("a field of a message has an unknown wire type", place=f"byte {at}", found=wire)
        if size > len(data) - at:
            raise Malformed("a field reaches past the end of its message", place=f"byte {at}")
        if wire == _BYTES:
            yield number, data[at : at + size]
        at += size


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it. Raises Malformed."""
    value = 0
    for shift in range(0, _MOST_BITS, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << _MOST_BITS) - 1, at
    raise Malformed("a number does not end", place=f"byte {at}")


def varint(value: int) -> bytes:
    """A number; a negative one as 64 bits."""
    value &= (1 << _MOST_BITS) - 1
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def bytes_field(number: int, value: bytes | str) -> bytes:
    """A field of bytes or text."""
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | _BYTES) + varint(len(data)) + data


def number_field(number: int, value: int) -> bytes:
    """A field of a number, of an enumeration or of a boolean."""
    return varint(number << 3 | _VARINT) + varint(value)


def bytes_of(fields: Fields, number: int) -> bytes:
    """The last value of a field of bytes; empty without one. Raises Malformed."""
    values = fields.get(number)
    if not values:
        return b""
    last = values[-1]
    if not isinstance(last, bytes):
        raise Malformed("a field of a message has another type", expected="bytes", found="a number")
    return last


def text_of(fields: Fields, number: int) -> str | None:
    """The text of a field, None without one. Raises Malformed."""
    if number not in fields:
        return None
    return decode_text(bytes_of(fields, number))


def texts_of(fields: Fields, number: int) -> list[str]:
    """All texts of a repeated field. Raises Malformed."""
    return [decode_text(bytes_of({number: [one]}, number)) for one in fields.get(number, [])]


def decode_text(data: bytes) -> str:
    """Text. Raises Malformed."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"a text of a message is not UTF-8: {error}") from None


def numbers_of(fields: Fields, number: int) -> list[int]:
    """All numbers of a repeated field, packed or not. Raises Malformed."""
    found = []
    for one in fields.get(number, []):
        if isinstance(one, int):
            found.append(one)
            continue
        at = 0
        while at < len(one):
            value, at = read_varint(one, at)
            found.append(value)
    return found
