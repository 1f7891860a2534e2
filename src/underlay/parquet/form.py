"""The form of a Thrift tree: its tape without the positions. Trees of one form have the same entries at every place.

A writer's footers hardly ever differ in form. What the form decides is taken from the first of them, the lead; of the
others only positions and numbers are read. Numbers are not checked to fit their kinds: it is for input that is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from underlay.parquet.measure import Octets
from underlay.parquet.scan import STOP_ENTRY, Scanner
from underlay.parquet.thrift import Entries, Kind, Tree
from underlay.parquet.wire import CONTAINERS, decode_varints, unzigzag_all

Words = npt.NDArray[np.uint32]
"""A tape as pairs of a position and a place."""

_INTEGERS = (Kind.I16, Kind.I32, Kind.I64)
_KNOWN = (*_INTEGERS, Kind.TRUE, Kind.FALSE, Kind.STRUCT, Kind.LIST, Kind.BINARY)
_LONG = 15
"""In a list's first byte: the count follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What trees like `lead` share. `entries` are the words of the tape that are values; `stops` those that end the
    `containers`. The other arrays are the entries of one kind; of lists only those of plain values."""

    lead: Tree
    entries: Entries
    containers: Entries
    stops: Entries
    integers: Entries
    binaries: Entries
    lists: Entries


class FormedTree(Tree):
    """A tree of a known form."""

    def __init__(self, data: bytes, scanner: Scanner, words: Words, form: Form) -> None:
        lead = form.lead
        self.data = data
        self.places = scanner.places
        self.octets: Octets = np.frombuffer(data, np.uint8)
        self.place, self.next = lead.place, lead.next
        self.begin = words[form.entries, 0]
        self.end = self.begin.copy()
        self.end[form.containers] = words[form.stops, 0]
        self.number = lead.number.copy()
        ends: Words = np.frombuffer(scanner.ends, np.uint32)
        begin = self.begin[form.integers]
        self.number[form.integers] = unzigzag_all(decode_varints(self.octets, begin))
        self.end[form.integers] = ends[begin]
        begin = self.begin[form.binaries]
        lengths = decode_varints(self.octets, begin)
        self.number[form.binaries] = lengths.view(np.int64)
        self.end[form.binaries] = ends[begin] + lengths.astype(np.uint32)
        self.number[form.lists] = self.octets[self.begin[form.lists]] >> 4


def words_of(scanner: Scanner) -> Words:
    """The tape of a scanner that has run and still has it."""
    words: Words = np.frombuffer(scanner.tape, np.uint32).reshape(-1, 2)
    return words


def form_of(lead: Tree, words: Words) -> Form | None:
    """The form of a tree with this tape; None when it holds values of kinds that footers do not have."""
    kinds = np.array([place.kind for place in lead.places.table], np.uint8)[lead.place]
    if not np.isin(kinds, _KNOWN).all():
        return None
    is_stop = words[:, 1] == STOP_ENTRY >> 32
    entries = np.flatnonzero(~is_stop)
    is_container = iter(np.isin(kinds, list(CONTAINERS)).tolist())
    inside: list[int] = []
    closed: dict[int, int] = {}
    entry = 0
    for word, ends_one in enumerate(is_stop.tolist()):
        if ends_one:
            closed[inside.pop()] = word
            continue
        if next(is_container):
            inside.append(entry)
        entry += 1
    is_empty = lead.next == np.arange(1, kinds.size + 1)
    return Form(
        lead=lead,
        entries=entries,
        containers=np.array(list(closed), np.int64),
        stops=np.array(list(closed.values()), np.int64),
        integers=np.flatnonzero(np.isin(kinds, _INTEGERS)),
        binaries=np.flatnonzero(kinds == Kind.BINARY),
        lists=np.flatnonzero((kinds == Kind.LIST) & is_empty),
    )


def read_formed(data: bytes, scanner: Scanner, words: Words, form: Form) -> FormedTree | None:
    """The tree of input with this tape; None when a list of plain values in it is too long to be read so."""
    tree = FormedTree(data, scanner, words, form)
    return None if (tree.number[form.lists] == _LONG).any() else tree
