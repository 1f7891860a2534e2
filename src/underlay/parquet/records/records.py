"""The same field of many structs as one numpy array: how a footer becomes columns without a loop over its chunks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from underlay.errors import Malformed
from underlay.parquet.thrift.tree import Entries, ThriftTree
from underlay.parquet.thrift.wire import ThriftKind

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_BOOL = (ThriftKind.TRUE, ThriftKind.FALSE)


class FieldEntries(NamedTuple):
    """The structs that have a field, by rank, and the entries of the field."""

    ranks: Integers
    entries: Entries


class Spans(NamedTuple):
    """Where each struct's binary lies in the tree's bytes; both are -1 where it is absent."""

    begin: Integers
    length: Integers


class StructRecords:
    """The structs at one place of a tree, in the order of the input."""

    def __init__(self, tree: ThriftTree, path: tuple[int, ...]) -> None:
        self.tree = tree
        self.path = path
        self.entries = tree.select(path)
        self.count = self.entries.size

    def find(self, *path: int, kind: ThriftKind) -> FieldEntries:
        """The field at `path` inside each struct. One that occurs twice is refused.

        One of another kind than `kind` counts as absent, as Thrift's own readers have it; such files exist.
        """
        tree = self.tree
        whole = self.path + path
        entries = tree.select(whole, _BOOL if kind in _BOOL else (kind,))
        ranks = np.searchsorted(self.entries, entries, side="right") - 1
        if ranks.size > 1 and not (ranks[1:] > ranks[:-1]).all():
            place = int(tree.begin[entries[1:][ranks[1:] <= ranks[:-1]][0]])
            raise Malformed(f"field {_name(whole)} occurs twice in one struct", place=f"byte {place}")
        return FieldEntries(ranks, entries)

    def has(self, *path: int, kind: ThriftKind) -> Flags:
        """Which structs have the field."""
        present = np.zeros(self.count, np.bool_)
        present[self.find(*path, kind=kind).ranks] = True
        return present

    def integers(self, *path: int, kind: ThriftKind, absent: int = 0) -> tuple[Integers, Flags]:
        """The field's numbers (flags as 0 and 1, lists as their counts), and which structs have it."""
        found = self.find(*path, kind=kind)
        numbers = np.full(self.count, absent, np.int64)
        numbers[found.ranks] = self.tree.number[found.entries]
        present = np.zeros(self.count, np.bool_)
        present[found.ranks] = True
        return numbers, present

    def spans(self, *path: int) -> Spans:
        """Where the bytes of a binary field lie."""
        found = self.find(*path, kind=ThriftKind.BINARY)
        begin, length = np.full(self.count, -1, np.int64), np.full(self.count, -1, np.int64)
        sizes = self.tree.number[found.entries]
        length[found.ranks] = sizes
        begin[found.ranks] = self.tree.end[found.entries] - sizes
        return Spans(begin, length)

    def nodes(self, *path: int, kind: ThriftKind) -> Entries:
        """The entry of the field in each struct, -1 where it is absent."""
        found = self.find(*path, kind=kind)
        entries = np.full(self.count, -1, np.int64)
        entries[found.ranks] = found.entries
        return entries

    def masks(self, *path: int) -> npt.NDArray[np.uint32]:
        """A field that lists small numbers as a bit mask; numbers outside 0 to 31 are left out."""
        found = self.find(*path, kind=ThriftKind.LIST)
        masks = np.zeros(self.count, np.uint32)
        lists, numbers = self.tree.numbers_in(found.entries)
        known = (numbers >= 0) & (numbers < 32)
        bits = np.uint32(1) << numbers[known].astype(np.uint32)
        np.bitwise_or.at(masks, found.ranks[lists[known]], bits)
        return masks


def _name(path: tuple[int, ...]) -> str:
    return ".".join("*" if field > 0xFFFF else str(field) for field in path)
