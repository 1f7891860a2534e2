"""Groups the files of a version by how Spark must read them.

| files | read |
|---|---|
| ours, with the table's columns by name | by Spark's scan as it is |
| ours, older than a change of columns | under their own names and types, with a projection |
| registered | one or the other, without what Spark's reader leaves out by their statistics |
| with constants | those of one value each by themselves, with literals; many such values by the ranged reader |
| any of these with deleted rows | with row positions, anti-joined |
| what Spark cannot read by itself | by the ranged reader |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.index.constants import unpack_constants
from underlay.index.entry import NO_CRC, FileConstant
from underlay.index.segment.segment import Segment
from underlay.plan.part import BoolArray, Numbers, Part
from underlay.spark.files.read_schema import ReadColumns, reading_beside, reading_of
from underlay.table.versions.snapshot import Snapshot

_OWN = ""
_IN_LAKE = "."
_NO_FOOTER = "?"
_NO_GROUP = -1
_MOST_CONSTANTS = 32
"""With more distinct sets of constants than this, a relation for each does not pay off."""
_STORE = r"^(?P<store>[^/]*://[^/]*|\.)/"
"""The prefix of a location: the store of a registered file, or a dot for the lake's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """How files are read. Without a `reading`, Spark cannot read them itself."""

    reading: ReadColumns | None
    is_registered: bool = False
    has_deletes: bool = False
    constants: tuple[FileConstant, ...] = ()

    @property
    def is_as_it_is(self) -> bool:
        """Whether a plain Spark scan returns the table's rows and columns."""
        return self.reading is not None and self.reading.is_by_name and not self.has_deletes


_Kind = tuple[str, str, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kinds:
    """The kind of each file of a segment: its layout, its store, and its constants."""

    of_file: NDArray[np.int64]
    kinds: tuple[_Kind, ...]


class FileGroups:
    """The groups of a version. `can_reach` says whether Spark can read from a store of registered files.

    Reads the list of files, but no statistics. Thread-safe.
    """

    def __init__(self, snapshot: Snapshot, can_reach: Callable[[str], bool]) -> None:
        self._snapshot = snapshot
        self._can_reach = can_reach
        self._numbers: dict[Group, int] = {}
        self._of_kind: dict[_Kind, tuple[int, int]] = {}
        every = {kind[2] for part in snapshot.parts() for kind in _kinds_of(part.segment).kinds}
        self._has_many_constants = len(every) > _MOST_CONSTANTS
        self.size_bytes = self._measure()
        """The bytes of each group that has files."""

    def is_in(self, group: Group, part: Part, rows: Numbers) -> BoolArray:
        """Which of these files of a part belong to a group."""
        return cast(BoolArray, self._numbers_of(part, rows) == self._numbers.get(group, _NO_GROUP))

    def _measure(self) -> dict[Group, int]:
        totals: Counter[int] = Counter()
        for part in self._snapshot.parts():
            every = np.arange(part.segment.file_count, dtype=np.int64)
            alive = every if part.is_removed is None else every[~part.is_removed]
            numbers, sizes = self._numbers_of(part, alive), part.segment.files.size_bytes[alive]
            for number in np.unique(numbers).tolist():
                totals[number] += int(sizes[numbers == number].sum())
        return {group: totals[number] for group, number in self._numbers.items() if number in totals}

    def _numbers_of(self, part: Part, rows: Numbers) -> NDArray[np.int64]:
        """The number of each file's group."""
        kinds = _kinds_of(part.segment)
        table = np.array([self._kind(kind) for kind in kinds.kinds], dtype=np.int64).reshape(-1, 2)
        return table[kinds.of_file[rows], part.may_have_deletes(rows).astype(np.int64)]

    def _kind(self, kind: _Kind) -> tuple[int, int]:
        """The groups of files of a kind: without deleted rows, and with."""
        if kind not in self._of_kind:
            layout, store, packed = kind
            where = self._snapshot.store.url if store == _IN_LAKE else store
            is_reached = store == _OWN or (store != _NO_FOOTER and self._can_reach(where))
            schema = self._snapshot.schema
            constants = tuple(one for one in unpack_constants(packed) if one.field in schema.leaf_by_id)
            is_reached = is_reached and not (constants and self._has_many_constants)
            find = reading_beside if constants else reading_of
            reading = find(self._snapshot.layout(layout), schema) if is_reached else None
            groups = [
                Group(reading=reading, is_registered=store != _OWN, has_deletes=has_deletes, constants=constants)
                if reading is not None
                else Group(reading=None)
                for has_deletes in (False, True)
            ]
            first, second = (self._numbers.setdefault(group, len(self._numbers)) for group in groups)
            self._of_kind[kind] = (first, second)
        return self._of_kind[kind]


def _kinds_of(segment: Segment) -> _Kinds:
    return segment.remember("spark_kinds", lambda: _find_kinds(segment))


def _find_kinds(segment: Segment) -> _Kinds:
    layouts = segment.files.layouts.dictionary_encode()
    found = pc.extract_regex(segment.files.locations, _STORE)
    # Spark reads the footer at a file's end, which is not that of the registered rows in one that grew since
    ends_otherwise = pa.array((segment.files.footer_crcs == NO_CRC) & (segment.files.footer_bytes == 0))
    named = pc.fill_null(pc.struct_field(found, "store"), _OWN)
    stores = pc.if_else(ends_otherwise, _NO_FOOTER, named).dictionary_encode()
    names = [str(name) for name in stores.dictionary.to_pylist()]
    pairs = [(str(layout), store) for layout in layouts.dictionary.to_pylist() for store in names]
    numbers = layouts.indices.to_numpy().astype(np.int64) * len(names) + stores.indices.to_numpy()
    constants = segment.files.constants.dictionary_encode(null_encoding="encode")
    packed: list[bytes | None] = constants.dictionary.to_pylist()
    numbers = numbers * max(len(packed), 1) + constants.indices.to_numpy()
    present, of_file = np.unique(numbers, return_inverse=True)
    kinds = tuple((*pairs[at // len(packed)], packed[at % len(packed)]) for at in present.tolist())
    return _Kinds(of_file=of_file.astype(np.int64), kinds=kinds)
