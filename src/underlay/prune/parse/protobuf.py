"""Protocol buffers' wire format, as much of it as Substrait plans need: fields by number, values as they stand."""

from __future__ import annotations

from collections.abc import Iterator

from underlay.errors import Malformed

Value = int | bytes

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10


class Message:
    """The fields of one message. A field that repeats keeps every value, one that should not counts by its last."""

    __slots__ = ("_fields",)

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[Value]] = {}
        for number, value in _read_fields(data):
            self._fields.setdefault(number, []).append(value)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The field numbers that are there, in order of their first value."""
        return tuple(self._fields)

    def integer(self, number: int) -> int:
        """An unsigned integer; 0 when it is not there."""
        value = self._last(number, 0)
        if not isinstance(value, int):
            raise Malformed("a message has bytes where an integer belongs", place=f"field {number}")
        return value

    def signed(self, number: int) -> int:
        """An integer in two's complement of 64 bits; 0 when it is not there."""
        value = self.integer(number)
        return value - (1 << 64) if value >> 63 else value

    def octets(self, number: int) -> bytes:
        """Bytes; none when they are not there."""
        value = self._last(number, b"")
        if not isinstance(value, bytes):
            raise Malformed("a message has an integer where bytes belong", place=f"field {number}")
        return value

    def message(self, number: int) -> Message:
        """A message inside; an empty one when it is not there."""
        return Message(self.octets(number))

    def messages(self, number: int) -> list[Message]:
        """All messages of a field that repeats."""
        found = self._fields.get(number, [])
        return [Message(value) for value in found if isinstance(value, bytes)]

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def _last(self, number: int, missing: Value) -> Value:
        return self._fields.get(number, [missing])[-1]


def _read_fields(data: bytes) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value: Value
            value, at = _read_varint(data, at)
        elif kind in (_FIXED64, _FIXED32, _BYTES):
            size = 8 if kind == _FIXED64 else 4
            if kind == _BYTES:
                size, at = _read_varint(data, at)
            if size > len(data) - at:
                raise Malformed("a field runs past the end of its message", place=f"byte {at}")
            value, at = data[at : at + size], at + size
        else:
            raise Malformed(f"wire type {kind} is not used", place=f"byte {at}")
        yield key >> 3, value


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, octet in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        value |= (octet & 0x7F) << (7 * index)
        if octet < 0x80:
            return value & ((1 << 64) - 1), at + index + 1
    raise Malformed("an integer does not end", place=f"byte {at}")
