"""One field of many structs in many footers of the same shape, as one numpy array: see `records`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from underlay.parquet.records.records import FieldValues, Integers, Spans, StructRecords
from underlay.parquet.records.walk import StackedStructs, integers_in_lists
from underlay.parquet.thrift.places import FieldPath
from underlay.parquet.thrift.tree import Entries
from underlay.parquet.thrift.wire import ThriftKind


class StackedRecords:
    """The structs at one place of each footer, those of the first footer first. Fields are found in the lead only."""

    def __init__(self, stacked: StackedStructs, path: tuple[int, ...]) -> None:
        self._stacked = stacked
        self._lead = StructRecords(stacked.lead, path)
        self.count = self._lead.count * stacked.count

    def read(self, fields: tuple[FieldPath, ...]) -> FieldValues:
        """Many fields at once. Entries are the lead's [fields, structs of the lead]."""
        entries = self._lead.locate(fields)
        numbers = [self._numbers(row, kind) for row, (_, kind) in zip(entries, fields, strict=True)]
        return FieldValues(entries, np.tile(entries >= 0, self._stacked.count), np.stack(numbers))

    def begins_at(self, entries: Entries) -> Integers:
        """Where the bytes of binaries begin, -1 where there is none. Takes entries [fields, structs of the lead]."""
        return np.stack([self._begins(row) for row in entries])

    def _numbers(self, entries: Entries, kind: ThriftKind) -> Integers:
        structs = np.flatnonzero(entries >= 0)
        return self._spread(structs, self._stacked.numbers(entries[structs], kind), 0)

    def _begins(self, entries: Entries) -> Integers:
        structs = np.flatnonzero(entries >= 0)
        lengths = self._stacked.numbers(entries[structs], ThriftKind.BINARY)
        return self._spread(structs, self._stacked.ends(entries[structs]) - lengths, -1)

    def masks_at(self, entries: Entries) -> npt.NDArray[np.uint32]:
        """A located field that lists small numbers as a bit mask; numbers outside 0 to 31 are left out."""
        structs = np.flatnonzero(entries >= 0)
        lists, _ = self._lead.tree.numbers_in(entries[structs])
        places = integers_in_lists(self._lead.tree, entries[structs])[0]
        numbers = self._stacked.integers_at(places, ThriftKind.I64)
        known = (numbers >= 0) & (numbers < 32)
        bits = known.astype(np.uint32) << np.where(known, numbers, 0).astype(np.uint32)
        starts = np.flatnonzero(np.diff(lists, prepend=-1))
        each = np.bitwise_or.reduceat(bits, starts, axis=0) if starts.size else bits
        masks = np.zeros((self._stacked.count, self._lead.count), np.uint32)
        masks[:, structs[lists[starts]]] = each.T
        return masks.ravel()

    def integers(self, *path: int, kind: ThriftKind) -> Integers:
        """One field's numbers, 0 where it is absent."""
        numbers: Integers = self.read(((path, kind),)).numbers[0]
        return numbers

    def spans(self, *path: int) -> Spans:
        """Where the bytes of one binary field lie."""
        entries, (present,), (lengths,) = self.read(((path, ThriftKind.BINARY),))
        return Spans(self.begins_at(entries)[0], np.where(present, lengths, -1))

    def _spread(self, ranks: Integers, values: Integers, absent: int) -> Integers:
        """Values [entries, footers] in the order of the structs."""
        if ranks.size == self._lead.count:
            return values.T.ravel()
        spread = np.full((self._stacked.count, self._lead.count), absent, np.int64)
        if ranks.size:
            spread[:, ranks] = values.T
        return spread.ravel()
