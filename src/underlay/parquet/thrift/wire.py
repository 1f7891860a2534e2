"""The pieces of Thrift's compact protocol: kinds, limits, and variable-length integers one at a time or all at once.

| kind | on the wire |
|---|---|
| TRUE, FALSE | nothing: the field header is the value (inside lists one byte: 1 true, 2 or 0 false) |
| I8 | one byte |
| I16, I32, I64 | zig-zag varint: 7 bits a byte, lowest first, the top bit set on all but the last byte |
| DOUBLE, UUID | 8 and 16 bytes |
| BINARY | varint length, then the bytes |
| LIST, SET | (count << 4 \\| item kind); a count of 15 or more is stored as 15 and a varint follows |
| MAP | varint count; unless it is 0, (key kind << 4 \\| value kind) and the pairs; kept as one value |
| STRUCT | fields until a zero byte; a field is (id delta << 4 \\| kind), or the kind alone and a zig-zag id |
"""

from __future__ import annotations

from array import array
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from underlay.errors import Malformed, Truncated

MAX_INPUT_BYTES = 2**31 - 1
"""The longest input that is parsed: positions fit 32 bits and lengths fit Thrift's own i32."""

MAX_DEPTH = 64
"""How many structs and lists may be nested, the root included."""

MAX_VARINT_BYTES = 10
"""A 64-bit number never needs more."""

_CACHE_BYTES = 1 << 18
"""How much of an input is processed in several passes before the next part: small enough for the CPU cache."""


class ThriftKind(IntEnum):
    """The kind of a value, with its number on the wire."""

    STOP = 0
    TRUE = 1
    FALSE = 2
    I8 = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12
    UUID = 13


INTEGER_BITS = {ThriftKind.I16: 16, ThriftKind.I32: 32, ThriftKind.I64: 64}
"""Width of the kinds that are zig-zag varints."""

FIXED_BYTES = {ThriftKind.I8: 1, ThriftKind.DOUBLE: 8, ThriftKind.UUID: 16}
"""Size of the kinds that always take the same room."""

CONTAINERS = frozenset({ThriftKind.LIST, ThriftKind.SET, ThriftKind.STRUCT})
"""The kinds whose values hold other values."""


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned varint at `position`, and the position after it."""
    value = 0
    for index in range(MAX_VARINT_BYTES):
        if position + index >= len(data):
            raise Truncated("the input ends inside a varint", place=f"byte {position}")
        octet = data[position + index]
        value |= (octet & 0x7F) << (7 * index)
        if octet < 0x80:
            if value >> 64:
                break
            return value, position + index + 1
    raise Malformed("a varint does not fit 64 bits", place=f"byte {position}")


def write_varint(value: int) -> bytes:
    """The shortest varint of an unsigned number."""
    if value < 0x80:
        return bytes((value,))
    octets = bytearray()
    while value >= 0x80:
        octets.append((value & 0x7F) | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def write_integer(value: int) -> bytes:
    """The shortest zig-zag varint of a signed number of at most 64 bits."""
    return write_varint((value << 1) ^ (value >> 63))


def unzigzag(value: int) -> int:
    """The signed number behind a zig-zag one."""
    return (value >> 1) ^ -(value & 1)


def read_integer(data: bytes, position: int, kind: ThriftKind) -> tuple[int, int]:
    """The signed number at `position`, refused unless it fits `kind`, and the position after it."""
    raw, after = read_varint(data, position)
    value = unzigzag(raw)
    if not fits(value, kind):
        raise Malformed(f"a number does not fit {kind.name}", place=f"byte {position}", found=value)
    return value, after


def fits(value: int, kind: ThriftKind) -> bool:
    """Whether a signed number can be stored in an integer field of this kind."""
    bound = 1 << (INTEGER_BITS[kind] - 1)
    return -bound <= value < bound


def varint_ends(data: bytes) -> array[int]:
    """For every position, the position after a varint that starts there; `len(data) + 1` where none ends."""
    octets = np.frombuffer(data, np.uint8)
    ends = np.full(octets.size + 1, octets.size + 1, np.uint32)
    last = np.flatnonzero(octets < 0x80).astype(np.uint32)
    if last.size:
        ends[: int(last[-1]) + 1] = np.repeat(last + np.uint32(1), np.diff(last, prepend=last[:1] * 0 - 1))
    table = array("I")
    table.frombytes(ends.view(np.uint8).data)
    return table


def varint_lengths(octets: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """For every position, the bytes of a varint that starts there: 10 at most, and one past the end where none ends."""
    lengths = np.empty(octets.size, np.uint8)
    for begin in range(0, octets.size, _CACHE_BYTES):
        goes_on = octets[begin : begin + _CACHE_BYTES + MAX_VARINT_BYTES] >= 0x80
        here = lengths[begin : begin + _CACHE_BYTES]
        run = goes_on.copy()
        np.add(run[: here.size].view(np.uint8), np.uint8(1), out=here)
        for index in range(1, MAX_VARINT_BYTES - 1):
            run[:-index] &= goes_on[index:]
            run[-index:] = False
            if not run.any():
                break
            here += run[: here.size].view(np.uint8)
    return lengths


def decode_varints(octets: npt.NDArray[np.uint8], begins: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """The unsigned varints at many positions, each of which is known to end inside `octets`."""
    first = octets[begins]
    values: npt.NDArray[np.uint64] = (first & np.uint8(0x7F)).astype(np.uint64)
    pending = np.flatnonzero(first >= 0x80)
    for index in range(1, MAX_VARINT_BYTES):
        if not pending.size:
            return values
        octet = octets[begins[pending] + index]
        if index == MAX_VARINT_BYTES - 1 and octet.max() > 1:
            place = int(begins[pending[int(octet.argmax())]])
            raise Malformed("a varint does not fit 64 bits", place=f"byte {place}")
        values[pending] |= (octet & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * index)
        pending = pending[octet >= 0x80]
    return values


def unzigzag_all(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The signed numbers behind zig-zag ones."""
    half: npt.NDArray[np.int64] = (values >> np.uint64(1)).view(np.int64)
    half ^= -(values & np.uint64(1)).view(np.int64)
    return half
