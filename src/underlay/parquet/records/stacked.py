"""The same field of many structs in many footers that are alike, as one numpy array: see `records`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from underlay.parquet.records.records import Flags, Integers, Spans, StructRecords
from underlay.parquet.records.walk import StackedStructs, integers_in_lists
from underlay.parquet.thrift.wire import ThriftKind


class StackedRecords:
    """The structs at one place of each footer, those of the first footer first. Fields are found in the lead only."""

    def __init__(self, stacked: StackedStructs, path: tuple[int, ...]) -> None:
        self._stacked = stacked
        self._lead = StructRecords(stacked.lead, path)
        self.count = self._lead.count * stacked.count

    def has(self, *path: int, kind: ThriftKind) -> Flags:
        """Which structs have the field."""
        return np.tile(self._lead.has(*path, kind=kind), self._stacked.count)

    def integers(self, *path: int, kind: ThriftKind, absent: int = 0) -> tuple[Integers, Flags]:
        """The field's numbers (flags as 0 and 1, lists as their counts), and which structs have it."""
        found = self._lead.find(*path, kind=kind)
        present = np.zeros(self._lead.count, np.bool_)
        present[found.ranks] = True
        numbers = self._stacked.numbers(found.entries, kind)
        return self._spread(found.ranks, numbers, absent), np.tile(present, self._stacked.count)

    def spans(self, *path: int) -> Spans:
        """Where the bytes of a binary field lie."""
        found = self._lead.find(*path, kind=ThriftKind.BINARY)
        lengths = self._stacked.numbers(found.entries, ThriftKind.BINARY)
        begins = self._stacked.ends(found.entries) - lengths
        return Spans(self._spread(found.ranks, begins, -1), self._spread(found.ranks, lengths, -1))

    def masks(self, *path: int) -> npt.NDArray[np.uint32]:
        """A field that lists small numbers as a bit mask; numbers outside 0 to 31 are left out."""
        found = self._lead.find(*path, kind=ThriftKind.LIST)
        lists, _ = self._lead.tree.numbers_in(found.entries)
        numbers = self._stacked.integers_at(integers_in_lists(self._lead.tree, found.entries)[0], ThriftKind.I64)
        known = (numbers >= 0) & (numbers < 32)
        bits = known.astype(np.uint32) << np.where(known, numbers, 0).astype(np.uint32)
        starts = np.flatnonzero(np.diff(lists, prepend=-1))
        each = np.bitwise_or.reduceat(bits, starts, axis=0) if starts.size else bits
        masks = np.zeros((self._stacked.count, self._lead.count), np.uint32)
        masks[:, found.ranks[lists[starts]]] = each.T
        return masks.ravel()

    def _spread(self, ranks: Integers, values: Integers, absent: int) -> Integers:
        """Values [entries, footers] in the order of the structs."""
        if ranks.size == self._lead.count:
            return values.T.ravel()
        spread = np.full((self._stacked.count, self._lead.count), absent, np.int64)
        if ranks.size:
            spread[:, ranks] = values.T
        return spread.ravel()
