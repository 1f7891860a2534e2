"""The files of a version by how Spark has to read them.

| group | files | relation |
|---|---|---|
| PLAIN | ours, columns by name, nothing deleted | Spark's scan as it is |
| DELETED | the same with deleted rows | with row positions, anti-joined |
| OTHER | renamed or widened columns, defaults, registered files | not read natively |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.index.deletes import count, pack
from underlay.plan.part import BoolArray, Numbers, Part, distinct
from underlay.plan.plan import Plan
from underlay.spark.by_name import reads_by_name
from underlay.table.snapshot import Snapshot


class Group(IntEnum):
    """How files are read."""

    PLAIN = 0
    DELETED = 1
    OTHER = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Files:
    """Some files of a version. `deletes` has the deleted positions of each, in the group of files that have some."""

    names: list[str]
    sizes: list[int]
    rows: int
    """Less the deleted ones."""
    deletes: list[bytes]

    @property
    def size_bytes(self) -> int:
        """How much they take together."""
        return sum(self.sizes)


def files_of(snapshot: Snapshot, plan: Plan, group: Group) -> Files:
    """The files of a group that a plan keeps blocks of."""
    names: list[str] = []
    sizes: list[int] = []
    deletes: list[bytes] = []
    rows = 0
    for choice in plan.choices:
        kept = distinct(choice.files)
        chosen = kept[groups_of(snapshot, choice.part, kept) == group]
        files = choice.part.segment.files
        names += map(str, files.locations.take(pa.array(chosen)).to_pylist())
        sizes += files.size_bytes[chosen].tolist()
        rows += int(choice.part.segment.file_rows[chosen].sum())
        if group is Group.DELETED:
            deletes += (choice.part.deletes_of(row) or pack(()) for row in chosen.tolist())
    return Files(names=names, sizes=sizes, rows=rows - sum(map(count, deletes)), deletes=deletes)


def groups_present(snapshot: Snapshot) -> dict[Group, int]:
    """How many files of each group a version has. Reads the list of files, and no statistics."""
    counts = np.zeros(len(Group), dtype=np.int64)
    for part in snapshot.parts():
        every = np.arange(part.segment.file_count, dtype=np.int64)
        alive = every if part.is_removed is None else every[~part.is_removed]
        counts += np.bincount(groups_of(snapshot, part, alive), minlength=len(Group))
    return {group: int(counts[group]) for group in Group if counts[group]}


def groups_of(snapshot: Snapshot, part: Part, rows: Numbers) -> NDArray[np.int8]:
    """The group of each of these files of a part."""
    is_readable = part.segment.remember(
        ("spark_readable", snapshot.schema), lambda: _readable_by_spark(snapshot, part)
    )[rows]
    found = np.where(part.may_have_deletes(rows), Group.DELETED, Group.PLAIN)
    return np.where(is_readable, found, Group.OTHER).astype(np.int8)


def _readable_by_spark(snapshot: Snapshot, part: Part) -> BoolArray:
    """Which files are ours and have the table's columns by name."""
    files = part.segment.files
    is_own = pc.invert(pc.match_substring(files.locations, "/")).to_numpy(zero_copy_only=False)
    layouts = map(str, pc.unique(files.layouts).to_pylist())
    named = [one for one in layouts if reads_by_name(snapshot.layout(one), snapshot.schema)]
    is_named = pc.is_in(files.layouts, value_set=pa.array(named, pa.string())).to_numpy(zero_copy_only=False)
    return np.asarray(is_own & is_named, dtype=np.bool_)
