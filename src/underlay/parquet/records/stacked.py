"""One field of many structs in many footers of the same shape, as one numpy array: see `records`."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from underlay.parquet.records.records import FieldValues, Integers, Spans, StructRecords
from underlay.parquet.records.walk import StackedStructs
from underlay.parquet.thrift.places import FieldPath
from underlay.parquet.thrift.tree import Entries
from underlay.parquet.thrift.wire import ThriftKind


class StackedRecords:
    """The structs at one place of each footer, those of the first footer first. Fields are found in the lead only."""

    def __init__(self, stacked: StackedStructs, path: tuple[int, ...]) -> None:
        self._stacked = stacked
        self._lead = StructRecords(stacked.lead, path)
        self._lengths: dict[bytes, Integers] = {}
        """Of binaries that were read, by their entries."""
        self.count = self._lead.count * stacked.count

    def read(self, fields: tuple[FieldPath, ...], skipped: Collection[int] = ()) -> FieldValues:
        """Many fields at once. Entries are the lead's [fields, structs of the lead].

        All numbers of the fields at `skipped` are 0.
        """
        entries = self._lead.locate(fields)
        numbers = np.zeros((len(fields), self._stacked.count, self._lead.count), np.int64)
        for rank, (row, (_, kind)) in enumerate(zip(entries, fields, strict=True)):
            structs = np.flatnonzero(row >= 0)
            if structs.size and rank not in skipped:
                self._spread(structs, self._numbers(row[structs], kind), numbers[rank])
        present = np.tile(entries >= 0, self._stacked.count)
        return FieldValues(entries, present, numbers.reshape(len(fields), self.count))

    def begins_at(self, entries: Entries) -> Integers:
        """Where the bytes of binaries begin, -1 where there is none. Takes entries [fields, structs of the lead]."""
        begins = np.full((len(entries), self._stacked.count, self._lead.count), -1, np.int64)
        for rank, row in enumerate(entries):
            structs = np.flatnonzero(row >= 0)
            if structs.size:
                found = row[structs]
                lengths = self._lengths.get(found.tobytes())
                if lengths is None:
                    lengths = self._numbers(found, ThriftKind.BINARY)
                self._spread(structs, self._stacked.ends(found) - lengths, begins[rank])
        return begins.reshape(len(entries), self.count)

    def _numbers(self, entries: Entries, kind: ThriftKind) -> Integers:
        """Numbers of entries that exist [entries, footers]."""
        found = self._stacked.numbers(entries, kind)
        if kind is ThriftKind.BINARY:
            self._lengths[entries.tobytes()] = found
        return found

    def integers(self, *path: int, kind: ThriftKind) -> Integers:
        """One field's numbers, 0 where it is absent."""
        numbers: Integers = self.read(((path, kind),)).numbers[0]
        return numbers

    def spans(self, *path: int) -> Spans:
        """Where the bytes of one binary field lie."""
        entries, (present,), (lengths,) = self.read(((path, ThriftKind.BINARY),))
        return Spans(self.begins_at(entries)[0], np.where(present, lengths, -1))

    def _spread(self, ranks: Integers, values: Integers, into: Integers) -> None:
        """Values [entries, footers] in the order of the structs [footers, structs]."""
        if ranks.size == self._lead.count:
            into[:] = values.T
        else:
            into[:, ranks] = values.T
