"""Scans Thrift compact bytes in one pass and records the position of every value; makes no objects.

The tape is one array, eight bytes for each value in the order of the input. A list of plain values (numbers, flags,
binaries) is one entry however long it is, and so is a map; lists of structs or lists have an entry for each item. The
pass keeps its own stack, so depth costs no recursion, and moves past a length only after comparing it with the end of
the input.
"""

from __future__ import annotations

from array import array
from typing import NoReturn

from underlay.errors import Malformed, Truncated
from underlay.parquet.thrift.places import (
    STEP_BINARY,
    STEP_FLAG,
    STEP_LIST,
    STEP_LONG,
    STEP_MAP,
    STEP_STOP,
    STEP_STRUCT,
    STEP_VARINT,
    HeaderMeanings,
    Places,
)
from underlay.parquet.thrift.skip import skip_map
from underlay.parquet.thrift.wire import (
    FIXED_BYTES,
    INTEGER_BITS,
    MAX_DEPTH,
    ThriftKind,
    read_integer,
    read_varint,
    unzigzag,
    varint_ends,
)

STOP_ENTRY = 0xFFFF << 32
"""Marks the end of the innermost open container on the tape."""

Frame = tuple[HeaderMeanings | None, int, int]
"""An open container, while something inside it is read: the state to go on with, None for a list; and how many items
follow, with their place: the list's own, or for a struct those of the list that it is itself an item of."""

_BINARY, _STRUCT, _MAP = int(ThriftKind.BINARY), int(ThriftKind.STRUCT), int(ThriftKind.MAP)
_LISTS = (int(ThriftKind.LIST), int(ThriftKind.SET))
_FLAGS = (int(ThriftKind.TRUE), int(ThriftKind.FALSE))
_SHORT = {int(kind): (bits + 6) // 7 for kind, bits in INTEGER_BITS.items()}
_SHORT_LISTS = frozenset(count << 4 | kind for count in range(15) for kind in _SHORT)
"""Headers of lists of integers: items that take a byte each need no closer look."""
_STRUCT_LISTS = frozenset(count << 4 | _STRUCT for count in range(1, 15))
_ONE_BINARY = 1 << 4 | _BINARY
_FIXED = {int(kind): size for kind, size in FIXED_BYTES.items()}


class Scanner:
    """One pass over `data`.

    `tape` gets (place << 32 | position) for each value, where the position is that of the value after its field
    header, and (STOP_ENTRY | position) after the last value inside each struct and list.
    """

    def __init__(self, data: bytes, places: Places) -> None:
        self.data = data
        self.places = places
        self.ends = varint_ends(data)
        self.tape: array[int] = array("Q")
        self.stack: list[Frame] = []

    def take_tape(self) -> array[int]:
        """The tape, which the scanner then forgets: it is the largest object of a parse."""
        tape, self.tape = self.tape, array("Q")
        return tape

    def run(self) -> int:
        """Scan the struct at byte 0 and return where it ends."""
        try:
            return self._run()
        except IndexError:
            raise Truncated("the input ends inside a struct", place=f"byte {len(self.data)}") from None
        except Malformed as error:
            if error.place is None:
                error.at(f"after byte {self.tape[-1] & 0xFFFFFFFF}")
            raise

    def _run(self) -> int:
        """The loop over fields, the main cost of reading a footer: a plain value takes one look-up, one append.

        `state` is where in which struct the loop is; `left` and `item` are how many more items follow the struct in
        its list and their place. Everything the loop touches is a local; rare cases are methods.
        """
        data, size, ends, stack, places = self.data, len(self.data), self.ends, self.stack, self.places
        add, push, pop = self.tape.append, stack.append, stack.pop
        inside, struct_items = places.inside, places.struct_items
        position = left = item = 0
        add(0)
        state = inside[0]
        while True:
            step, place, state = state[data[position]]
            position += 1
            if step == STEP_VARINT:
                add(place | position)
                position = ends[position]
                continue
            if step == STEP_BINARY:
                add(place | position)
                length = data[position]
                if length >= 0x80:
                    length, position = read_varint(data, position)
                    position -= 1
                position += 1 + length
                if position > size:
                    _refuse_length(data, position - length, length)
                continue
            if step == STEP_LONG:
                raw, position = read_varint(data, position)
                step, place, state = state.field(unzigzag(raw), place)
                if step in (STEP_VARINT, STEP_BINARY):
                    add(place | position)
                    position = self.skip(places.kind(place), 1, position)
                    continue
            if step == STEP_STOP:
                add(STOP_ENTRY | position)
                if left:
                    left -= 1
                    add(item | position)
                    state = inside[item >> 32]
                elif stack:
                    resumed, left, item = pop()
                    if resumed is None and not left:
                        add(STOP_ENTRY | position)
                        resumed, left, item = pop()
                    if resumed is None:
                        push((resumed, left, item))
                        state, left, item, position = self.resume(position)
                    else:
                        state = resumed
                else:
                    return position
            elif step == STEP_STRUCT:
                add(place | position)
                push((state, left, item))
                if len(stack) >= MAX_DEPTH:
                    _refuse_depth()
                left = 0
                state = inside[place >> 32]
            elif step == STEP_LIST:
                header = data[position]
                after = position + 1 + (header >> 4)
                if header in _SHORT_LISTS and after < size and data[position + 1 : after].isascii():
                    add(place | position)
                    position = after
                    add(STOP_ENTRY | position)
                elif header == _ONE_BINARY and data[position + 1] < 0x80:
                    add(place | position)
                    position += 2 + data[position + 1]
                    add(STOP_ENTRY | position)
                elif header in _STRUCT_LISTS:
                    add(place | position)
                    push((state, left, item))
                    push((None, 0, 0))
                    if len(stack) >= MAX_DEPTH:
                        _refuse_depth()
                    position += 1
                    left = (header >> 4) - 1
                    item = struct_items.get(place) or places.item(place, _STRUCT)
                    add(item | position)
                    state = inside[item >> 32]
                else:
                    push((state, left, item))
                    position = self.open_list(place, position)
                    state, left, item, position = self.resume(position)
            else:
                add(place | position)
                if step != STEP_FLAG:
                    position = self.skip(places.kind(place), 1, position)
                if step == STEP_MAP:
                    add(STOP_ENTRY | position)

    def open_list(self, place: int, position: int) -> int:
        """Enter the list at `position` on the tape. Returns the position after it, or that of its first item.

        In the second case the items are structs or lists, and the list is on the stack.
        """
        self.tape.append(place | position)
        count, kind, position = read_list_header(self.data, position)
        if count and (kind == _STRUCT or kind in _LISTS):
            self.stack.append((None, count, self.places.item(place, kind)))
            if len(self.stack) >= MAX_DEPTH:
                _refuse_depth()
            return position
        position = self.skip(kind, count, position)
        self.tape.append(STOP_ENTRY | position)
        return position

    def resume(self, position: int) -> tuple[HeaderMeanings, int, int, int]:
        """Go on with the innermost open container: end full lists and enter items, up to a struct's fields.

        Returns the struct's frame and the position of its next field header.
        """
        stack, places = self.stack, self.places
        while True:
            state, left, place = stack.pop()
            if state is not None:
                return state, left, place, position
            if not left:
                self.tape.append(STOP_ENTRY | position)
            elif places.kind(place) == _STRUCT:
                stack.append((None, 0, place))
                self.tape.append(place | position)
                return places.inside[place >> 32], left - 1, place, position
            else:
                stack.append((None, left - 1, place))
                position = self.open_list(place, position)

    def skip(self, kind: int, count: int, position: int) -> int:
        """The position after `count` plain values or maps that lie one after the other; a flag takes one byte here."""
        data, ends, size = self.data, self.ends, len(self.data)
        if kind in _SHORT:
            short = _SHORT[kind]
            for _ in range(count):
                begin, position = position, ends[position]
                if position - begin >= short:
                    read_integer(data, begin, ThriftKind(kind))
            return position
        if kind == _BINARY:
            for _ in range(count):
                begin = position
                length, position = read_varint(data, position)
                position += length
                if position > size:
                    _refuse_length(data, begin, length)
            return position
        if kind == _MAP:
            for _ in range(count):
                position = skip_map(data, position)
            return position
        end = position + count * _FIXED.get(kind, 1)
        if end > size:
            _refuse_length(data, position, end - position)
        if kind in _FLAGS and data[position:end].translate(None, b"\0\1\2"):
            raise Malformed("a flag in a list is neither true nor false", place=f"byte {position}", expected="1 or 2")
        return end


def _refuse_depth() -> NoReturn:
    raise Malformed("values are nested too deeply", expected=f"at most {MAX_DEPTH} levels")


def _refuse_length(data: bytes, position: int, length: int) -> NoReturn:
    raise Truncated(
        "a value reaches past the end of the input",
        place=f"byte {position}",
        expected=f"{length} bytes",
        found=f"{max(0, len(data) - position)} bytes",
    )


def read_list_header(data: bytes, position: int) -> tuple[int, int, int]:
    """Count, item kind and the position of the first item; a count beyond the bytes left is refused."""
    header = data[position]
    count, kind, after = header >> 4, header & 15, position + 1
    if count == 15:
        count, after = read_varint(data, after)
    if kind > ThriftKind.UUID or (kind == ThriftKind.STOP and count):
        raise Malformed("a list has items of a kind that does not exist", place=f"byte {position}", found=kind)
    _check_count(data, position, count, after)
    return count, kind, after


def _check_count(data: bytes, position: int, count: int, after: int) -> None:
    """Refuse a list with more items than bytes left: every item takes at least one."""
    if count > len(data) - after:
        raise Truncated(
            "a list has more items than bytes are left",
            place=f"byte {position}",
            expected=f"{count} items",
            found=f"{max(0, len(data) - after)} bytes",
        )
