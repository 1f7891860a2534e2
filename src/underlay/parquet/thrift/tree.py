"""A lossless reader of Thrift's compact protocol that needs no schema and makes no object for a value.

`parse` checks every byte once and returns a `ThriftTree`: numpy arrays with one entry for each value, in input order.
Entry 0 is the root struct. A list of plain values is one entry, and so is a map; `numbers_in` reads a list's numbers.

| array | dtype | what it holds |
|---|---|---|
| place | u16 | number of the value's place (`ThriftTree.places`): kind, field id and the same of everything around it |
| begin | u32 | position of the value, after its field header |
| end | u32 | position after the value |
| next | u32 | the entry after the value and everything inside it |
| number | i64 | the integer; 0 or 1 of a flag; length of a binary; count of a list; 0 of everything else |

A field id that occurs twice in a struct stays on the tape; looking it up by id raises Malformed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from underlay.errors import InvalidRequest, Malformed
from underlay.parquet.thrift import encode
from underlay.parquet.thrift.places import ITEM, Places
from underlay.parquet.thrift.scanner import Scanner, read_list_header
from underlay.parquet.thrift.skip import skip_map
from underlay.parquet.thrift.tape import Octets, measure
from underlay.parquet.thrift.wire import (
    CONTAINERS,
    FIXED_BYTES,
    INTEGER_BITS,
    MAX_INPUT_BYTES,
    ThriftKind,
    read_integer,
    read_varint,
)

__all__ = ["ITEM", "ThriftKind", "ThriftTree", "parse"]

Entries = npt.NDArray[np.int64]

_FLAGS = (ThriftKind.TRUE, ThriftKind.FALSE)
_INTEGER_TYPES: dict[ThriftKind, type[encode.I8 | encode.I16 | encode.I32 | encode.I64]] = {
    ThriftKind.I8: encode.I8,
    ThriftKind.I16: encode.I16,
    ThriftKind.I32: encode.I32,
    ThriftKind.I64: encode.I64,
}


def parse(data: bytes, *, trailing: bool = False) -> ThriftTree:
    """The tree of the struct at the start of `data`. Bytes after the struct are refused unless `trailing`.

    Costs time and memory in proportion to the input: at most some 55 bytes for each byte, for lists of empty lists.
    """
    if len(data) > MAX_INPUT_BYTES:
        raise Malformed("the input is too long", expected=f"at most {MAX_INPUT_BYTES} bytes", found=len(data))
    scanner = Scanner(data, _known_places())
    end = scanner.run()
    if end != len(data) and not trailing:
        raise Malformed("bytes follow the end of the struct", place=f"byte {end}", found=f"{len(data) - end} bytes")
    return ThriftTree(data, scanner)


class _Met(threading.local):
    """The places that a thread has met: all footers have nearly the same, and finding them takes longer than a scan."""

    def __init__(self) -> None:
        self.places = Places()


_MET = _Met()


def _known_places() -> Places:
    if _MET.places.is_crowded:
        _MET.places = Places()
    _MET.places.make_room()
    return _MET.places


class ThriftTree:
    """The values of a Thrift struct. Entries are plain integers; the module's table says what the arrays hold."""

    def __init__(self, data: bytes, scanner: Scanner) -> None:
        self.data = data
        self.places = scanner.places
        self.octets: Octets = np.frombuffer(data, np.uint8)
        measures = measure(self.octets, scanner)
        self.place = measures.place
        self.begin = measures.begin
        self.end = measures.end
        self.next = measures.next
        self.number = measures.number

    def __len__(self) -> int:
        """How many entries the tape has."""
        return self.place.size

    @property
    def size_bytes(self) -> int:
        """How many bytes the root struct takes; what follows is not part of it."""
        return int(self.end[0])

    def kind(self, entry: int) -> ThriftKind:
        """The kind of a value."""
        return self.places.table[int(self.place[entry])].kind

    def field_id(self, entry: int) -> int:
        """The field id of a value, ITEM for items of a list, 0 for the root."""
        return self.places.table[int(self.place[entry])].field

    def children(self, entry: int) -> list[int]:
        """The fields of a struct, or the items of a list of structs or lists; none for anything else."""
        found, child, after = [], entry + 1, int(self.next[entry])
        while child < after:
            found.append(child)
            child = int(self.next[child])
        return found

    def fields(self, entry: int) -> dict[int, int]:
        """The fields of a struct by id. A struct in which an id occurs twice is refused."""
        children = self.children(entry)
        found = {self.field_id(child): child for child in children}
        if len(found) != len(children):
            raise Malformed("a struct has the same field twice", place=f"byte {int(self.begin[entry])}")
        return found

    def field(self, entry: int, field: int) -> int | None:
        """The field of a struct with the given id, if present."""
        return self.fields(entry).get(field)

    def integer(self, entry: int) -> int:
        """The integer, flag, length or count of a value."""
        return int(self.number[entry])

    def binary(self, entry: int) -> bytes:
        """The bytes of a binary, without its length."""
        end = int(self.end[entry])
        return self.data[end - int(self.number[entry]) : end]

    def raw(self, entry: int) -> bytes:
        """The bytes of a value as they are stored, without its field header."""
        return self.data[int(self.begin[entry]) : int(self.end[entry])]

    def select(self, path: tuple[int, ...], kinds: tuple[ThriftKind, ...] = ()) -> Entries:
        """Every value at the end of a path of field ids and ITEMs, of some kinds or any, in the order of the input."""
        numbers = self.places.find(path)
        if kinds:
            numbers = tuple(number for number in numbers if self.places.table[number].kind in kinds)
        if not numbers:
            return np.empty(0, np.int64)
        hits = self.place == numbers[0]
        for number in numbers[1:]:
            hits |= self.place == number
        return np.flatnonzero(hits)

    def numbers_in(self, entry: int) -> list[int]:
        """The items of a list of I16, I32 or I64. A list of another kind is refused."""
        begin = int(self.begin[entry])
        count, kind, position = read_list_header(self.data, begin)
        if kind not in INTEGER_BITS:
            raise Malformed("a list does not hold integers", place=f"byte {begin}", expected="I16, I32 or I64")
        numbers: list[int] = []
        for _ in range(count):
            number, position = read_integer(self.data, position, ThriftKind(kind))
            numbers.append(number)
        return numbers

    def value(self, entry: int) -> encode.Value:
        """The value as a Python value. `encode.encode` gives the same bytes back if they were canonical."""
        kind = self.kind(entry)
        if kind is ThriftKind.STRUCT:
            return encode.Struct({field: self.value(child) for field, child in self.fields(entry).items()})
        if kind in (ThriftKind.LIST, ThriftKind.SET):
            return self._list(entry)
        if kind in _FLAGS:
            return encode.Bool(kind is ThriftKind.TRUE)
        if kind is ThriftKind.MAP:
            return encode.Raw(kind, self.raw(entry))
        return _plain_value(self.data, kind, int(self.begin[entry]))[0]

    def _list(self, entry: int) -> encode.List:
        count, number, position = read_list_header(self.data, int(self.begin[entry]))
        kind = ThriftKind(number)
        is_set = self.kind(entry) is ThriftKind.SET
        if kind in CONTAINERS:
            return encode.List(kind, tuple(self.value(child) for child in self.children(entry)), is_set)
        items: list[encode.Value] = []
        for _ in range(count):
            item, position = _plain_value(self.data, kind, position)
            items.append(item)
        return encode.List(kind, tuple(items), is_set)

    def write(self, replacements: Mapping[int, bytes], *, entry: int = 0) -> bytes:
        """The bytes of a value with those of some values inside it replaced; everything else is copied.

        A replacement is the new bytes of a value without its field header, of the same kind. Flags in structs
        cannot be replaced, and neither can a value inside another one that is replaced.
        """
        position, end = int(self.begin[entry]), int(self.end[entry])
        parts: list[bytes] = []
        for child in sorted(replacements):
            begin = int(self.begin[child])
            if not position <= begin < end or self.kind(child) in _FLAGS:
                raise InvalidRequest("a value cannot be replaced", place=f"byte {begin}", found=self.kind(child).name)
            parts += (self.data[position:begin], replacements[child])
            position = int(self.end[child])
        parts.append(self.data[position:end])
        return b"".join(parts)


def _plain_value(data: bytes, kind: ThriftKind, position: int) -> tuple[encode.Value, int]:
    """The plain value at a position that was checked before, and the position after it."""
    if kind in INTEGER_BITS:
        number, after = read_integer(data, position, kind)
        return _INTEGER_TYPES[kind](number), after
    if kind is ThriftKind.BINARY:
        length, begin = read_varint(data, position)
        return encode.ThriftBinary(data[begin : begin + length]), begin + length
    if kind is ThriftKind.MAP:
        after = skip_map(data, position)
        return encode.Raw(kind, data[position:after]), after
    if kind in _FLAGS:
        return encode.Bool(data[position] == 1), position + 1
    after = position + FIXED_BYTES[kind]
    if kind is ThriftKind.I8:
        return encode.I8(int.from_bytes(data[position:after], signed=True)), after
    return (encode.Double if kind is ThriftKind.DOUBLE else encode.Uuid)(data[position:after]), after
