"""One field of many Thrift structs as one numpy array: decodes a footer without a loop over its chunks."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from underlay.errors import Malformed
from underlay.parquet.thrift.places import FieldPath
from underlay.parquet.thrift.tree import Entries, ThriftTree
from underlay.parquet.thrift.wire import ThriftKind

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Spans(NamedTuple):
    """Where each struct's binary lies in the tree's bytes; both are -1 where it is absent."""

    begin: Integers
    length: Integers


class FieldValues(NamedTuple):
    """Some fields of some structs, as arrays [fields, structs]: their entries (-1 where one is absent), and numbers.

    A flag's number is 0 or 1, a list's its count, a binary's its length; it is 0 where the field is absent.
    """

    entries: Entries
    present: Flags
    numbers: Integers


class StructRecords:
    """The structs at one place of a tree, in the order of the input."""

    def __init__(self, tree: ThriftTree, path: tuple[int, ...]) -> None:
        self.tree = tree
        self.path = path
        self.entries = tree.select(path)
        self.count = self.entries.size

    def locate(self, fields: tuple[FieldPath, ...]) -> Entries:
        """The entries of some fields [fields, structs], -1 where one is absent. A field that occurs twice is refused.

        All fields together take as many numpy calls as one. A field of another kind counts as absent, as in Thrift's
        own readers; such files exist.
        """
        tree = self.tree
        rank_of_place: npt.NDArray[np.int8] = np.frombuffer(tree.places.ranks(self.path, fields), np.int8)
        ranks = rank_of_place[tree.place]
        entries = np.flatnonzero(ranks >= 0)
        cells = ranks[entries].astype(np.int64)
        cells *= self.count
        cells += self.entries.searchsorted(entries, side="right")
        cells -= 1
        found = np.full(len(fields) * self.count, -1, np.int64)
        found[cells] = entries
        if np.count_nonzero(found >= 0) != entries.size:
            self._refuse_twin(fields, entries, cells)
        return found.reshape(len(fields), self.count)

    def _refuse_twin(self, fields: tuple[FieldPath, ...], entries: Entries, cells: Integers) -> NoReturn:
        _, first = np.unique(cells, return_index=True)
        twin = int(np.setdiff1d(np.arange(cells.size), first)[0])
        path, _ = fields[int(cells[twin]) // self.count]
        place = int(self.tree.begin[entries[twin]])
        raise Malformed(f"field {_name(self.path + path)} occurs twice in one struct", place=f"byte {place}")

    def read(self, fields: tuple[FieldPath, ...]) -> FieldValues:
        """Many fields at once; see `locate`."""
        entries = self.locate(fields)
        present = entries >= 0
        return FieldValues(entries, present, self.tree.number[entries] * present)

    def begins_at(self, entries: Entries) -> Integers:
        """Where the bytes of binaries begin, -1 where there is none."""
        begins = self.tree.end[entries] - self.tree.number[entries]
        begins[entries < 0] = -1
        return begins

    def masks_at(self, entries: Entries) -> npt.NDArray[np.uint32]:
        """Located lists of small numbers as bit masks; numbers outside 0 to 31 are left out."""
        tree = self.tree
        known: dict[bytes, int] = {}  # the chunks of a file have few different lists
        masks = np.zeros(self.count, np.uint32)
        spans = zip(entries.tolist(), tree.begin[entries].tolist(), tree.end[entries].tolist(), strict=True)
        for struct, (entry, begin, end) in enumerate(spans):
            if entry >= 0:
                octets = tree.data[begin:end]
                if octets not in known:
                    known[octets] = sum({1 << number for number in tree.numbers_in(entry) if 0 <= number < 32})
                masks[struct] = known[octets]
        return masks

    def integers(self, *path: int, kind: ThriftKind) -> tuple[Integers, Flags]:
        """One field's numbers, 0 where it is absent, and which structs have it."""
        _, (present,), (numbers,) = self.read(((path, kind),))
        return numbers, present

    def spans(self, *path: int) -> Spans:
        """Where the bytes of one binary field lie."""
        (entries,), (present,), (lengths,) = self.read(((path, ThriftKind.BINARY),))
        return Spans(self.begins_at(entries), np.where(present, lengths, -1))

    def nodes(self, *path: int, kind: ThriftKind) -> Entries:
        """The entry of one field in each struct, -1 where it is absent."""
        entries: Entries = self.locate(((path, kind),))[0]
        return entries


def _name(path: tuple[int, ...]) -> str:
    return ".".join("*" if field > 0xFFFF else str(field) for field in path)
