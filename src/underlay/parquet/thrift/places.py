"""Places of a Thrift tree: what a value is a field or an item of, numbered so that equal places share a number.

Without a schema, the place of a value is its kind and the chain of field ids that leads to it; all items of a list
share one place. A footer has a few hundred places, however many row groups it describes. `Places` hands out the numbers
while a tree is scanned. `HeaderMeanings` remembers field headers: after a given field of a given struct, a header byte
always means the same field, so its meaning is computed once.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from underlay.errors import Malformed
from underlay.parquet.thrift.wire import ThriftKind

ITEM = 0x10000
"""Stands for the field id of a list's items; field ids are 16 bits wide."""

MAX_PLACES = 4096
"""More places than any schema has. Bounds what one hostile input can make the scanner remember."""

MAX_STEPS = 65536
"""How many header meanings are remembered; beyond it they are computed each time."""

STEP_STOP, STEP_VARINT, STEP_BINARY, STEP_STRUCT, STEP_FLAG, STEP_LONG, STEP_LIST, STEP_MAP, STEP_OTHER = range(9)
"""What the scanner does after a field header."""

_STEP_OF_KIND = {
    ThriftKind.TRUE: STEP_FLAG,
    ThriftKind.FALSE: STEP_FLAG,
    ThriftKind.I16: STEP_VARINT,
    ThriftKind.I32: STEP_VARINT,
    ThriftKind.I64: STEP_VARINT,
    ThriftKind.BINARY: STEP_BINARY,
    ThriftKind.STRUCT: STEP_STRUCT,
    ThriftKind.LIST: STEP_LIST,
    ThriftKind.SET: STEP_LIST,
    ThriftKind.MAP: STEP_MAP,
}

_CROWDED_PLACES, _CROWDED_STEPS = 1024, 8192
"""More than all footers of well-behaved writers have together."""

_FLAGS = (ThriftKind.TRUE, ThriftKind.FALSE)

FieldPath = tuple[tuple[int, ...], ThriftKind]
"""A field of a struct: the ids that lead to it, and its kind; TRUE stands for either flag."""

Step = tuple[int, int, "HeaderMeanings"]
"""What to do, the value's place << 32 (for STEP_LONG: its kind), and the state after the field."""


class ThriftPlace(NamedTuple):
    """Where values of one kind occur: `parent` is the number of the place they are a field or an item of."""

    parent: int
    field: int
    kind: ThriftKind


class HeaderMeanings(dict[int, Step]):
    """The meaning of each header byte inside the struct at place `inside` after field `last`."""

    __slots__ = ("inside", "last", "places")

    def __init__(self, places: Places, inside: int, last: int) -> None:
        super().__init__()
        self.places = places
        self.inside = inside
        self.last = last

    def __missing__(self, header: int) -> Step:
        """Work out what a header byte means, and remember it."""
        delta, kind = header >> 4, header & 15
        if header == 0:
            step: Step = (STEP_STOP, 0, self)
        elif delta == 0:
            step = (STEP_LONG, kind, self)
        else:
            step = self.field(self.last + delta, kind)
        return self.places.remember(self, header, step)

    def field(self, field: int, kind: int) -> Step:
        """The step for a field by id and kind. Refuses kinds that do not exist and ids over 16 bits."""
        if not ThriftKind.TRUE <= kind <= ThriftKind.UUID:
            raise Malformed("a field header has a kind that does not exist", expected="1 to 13", found=kind)
        if not -0x8000 <= field < 0x8000:
            raise Malformed("a field id does not fit 16 bits", found=field)
        number = self.places.number(self.inside, field, kind)
        return _STEP_OF_KIND.get(ThriftKind(kind), STEP_OTHER), number << 32, self.places.state(self.inside, field)


class Places:
    """The places met so far. Number 0 is the root struct. Numbers never change once handed out, so that one table
    serves many inputs: what their headers mean is computed once.

    `inside` has, for each place, the state before the first field of its structs; for places of another kind, one
    that is inside nothing (-1). `struct_items` remembers `item` of lists of structs.
    """

    def __init__(self) -> None:
        self.table: list[ThriftPlace] = []
        self.kinds = bytearray()
        self.inside: list[HeaderMeanings] = []
        self.struct_items: dict[int, int] = {}
        self._nowhere = HeaderMeanings(self, -1, 0)
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._kinds: dict[tuple[int, int], tuple[int, ...]] = {}
        self._states: dict[tuple[int, int], HeaderMeanings] = {}
        self._ranks: dict[tuple[tuple[int, ...], tuple[FieldPath, ...]], array[int]] = {}
        self._steps = 0
        self._limit = MAX_PLACES
        self.number(-1, 0, ThriftKind.STRUCT)

    @property
    def is_crowded(self) -> bool:
        """Whether to start a new table, because varied or hostile input has filled this one."""
        return len(self.table) > _CROWDED_PLACES or self._steps > _CROWDED_STEPS

    def make_room(self) -> None:
        """Give the next input the full allowance of places, whatever earlier input has added."""
        self._limit = len(self.table) + MAX_PLACES

    def number(self, parent: int, field: int, kind: int) -> int:
        """The number of a place, a new one when it was not met before."""
        found = self._numbers.get((parent, field, kind))
        if found is not None:
            return found
        if len(self.table) >= self._limit:
            raise Malformed("the input has fields at more places than any schema", expected=f"at most {MAX_PLACES}")
        number = self._numbers[(parent, field, int(kind))] = len(self.table)
        self.table.append(ThriftPlace(parent, field, ThriftKind(kind)))
        self.kinds.append(kind)
        self.inside.append(self.state(number) if kind == ThriftKind.STRUCT else self._nowhere)
        self._kinds[(parent, field)] = (*self._kinds.get((parent, field), ()), number)
        return number

    def item(self, place: int, kind: int) -> int:
        """The place << 32 of the items of a list at `place`, which is shifted as well."""
        item = self.number(place >> 32, ITEM, kind) << 32
        if kind == ThriftKind.STRUCT:
            self.struct_items[place] = item
        return item

    def kind(self, place: int) -> int:
        """The kind of the values at `place`, which is shifted."""
        return self.table[place >> 32].kind

    def state(self, inside: int, last: int = 0) -> HeaderMeanings:
        """The state inside the struct at place `inside`, after field `last` or before any field."""
        state = self._states.get((inside, last))
        if state is None:
            state = self._states[(inside, last)] = HeaderMeanings(self, inside, last)
        return state

    def remember(self, state: HeaderMeanings, header: int, step: Step) -> Step:
        """Keep the meaning of a header byte, while there is room, and return it."""
        if self._steps < MAX_STEPS:
            self._steps += 1
            state[header] = step
        return step

    def find(self, path: tuple[int, ...]) -> tuple[int, ...]:
        """The numbers of the places at the end of a path of field ids and ITEMs: one for each kind met there."""
        numbers: tuple[int, ...] = (0,)
        for field in path:
            numbers = tuple(child for number in numbers for child in self._kinds.get((number, field), ()))
        return numbers

    def ranks(self, path: tuple[int, ...], fields: tuple[FieldPath, ...]) -> array[int]:
        """For every place, which of the fields of the structs at `path` lies there; -1 for none. At most 127 fields."""
        known = self._ranks.get((path, fields))
        if known is None or len(known) != len(self.table):
            known = self._ranks[path, fields] = array("b", [-1]) * len(self.table)
            for rank, (inner, kind) in enumerate(fields):
                kinds = _FLAGS if kind in _FLAGS else (kind,)
                for number in self.find(path + inner):
                    if self.table[number].kind in kinds:
                        known[number] = rank
        return known
