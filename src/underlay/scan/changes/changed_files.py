"""The rows that a version deleted and added: entries of files, each with only these rows visible.

A file that the version removed shows the rows it had; a file with newly deleted rows shows those; a file that it added
shows its own. Rows that were rewritten unchanged are among both: `row_changes` drops them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from underlay.index import deletion_vectors as bitmaps
from underlay.index.entry import ColumnEntry, FileEntry, Flag
from underlay.index.root import Definition, Root
from underlay.index.segment.segment import Segment
from underlay.index.state import count_rows
from underlay.runtime.locks import cached_property
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar
from underlay.table.versions.snapshot import Snapshot

_NO_BOUNDS = 0xFF ^ (Flag.HAS_LOW | Flag.HAS_HIGH | Flag.IS_LOW_EXACT | Flag.IS_HIGH_EXACT | Flag.HAS_BLOOM)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFiles:
    """The files with deleted rows, and those with added rows."""

    gone: tuple[FileEntry, ...] = ()
    come: tuple[FileEntry, ...] = ()


def changed_files(before: Snapshot, after: Snapshot) -> ChangedFiles:
    """What the version after another one changed. Reads the segments that have the files, and all after a rollback."""
    delta, operation = after.root.delta, after.root.operation
    if operation.keeps_rows:
        return ChangedFiles()
    if delta.restored is not None:
        return _between(before.files(), after.files())
    touched = before.find_files({*delta.removed, *delta.deletes})
    gone = [touched[name] for name in delta.removed]
    for name, bits in delta.deletes.items():
        gone += _showing(touched[name], bitmaps.difference(bits, touched[name].deletes))
    return ChangedFiles(gone=tuple(gone), come=after.added_files())


def row_count(files: Iterable[FileEntry]) -> int:
    """The rows that these files show."""
    return sum(count_rows(file) - file.deleted_rows for file in files)


class SomeFiles(Snapshot):
    """Only these files, as files of a table with this definition. They have no bounds, since reading them needs
    none."""

    def __init__(self, given: Snapshot, definition: Definition, files: Iterable[FileEntry]) -> None:
        schema = from_record(definition.schema)
        entries = tuple(without_bounds(file, schema) for file in files)
        root = replace(given.root, definition=definition, segments=(), tail=entries, removed=(), deletes={})
        super().__init__(given.store, given.keys, _with_counts(root), given.load_segment)

    @cached_property
    def tail(self) -> Segment:
        """The files."""
        return Segment.of_entries(self.root.tail, self.schema)


def without_bounds(file: FileEntry, schema: TableSchema) -> FileEntry:
    """The entry without bounds, for a table whose columns may have other types than these bounds."""
    known = schema.leaf_by_id
    columns = tuple(_without_bounds(one, known[one.field].type) for one in file.columns if one.field in known)
    return replace(file, columns=columns)


def _without_bounds(column: ColumnEntry, scalar: Scalar) -> ColumnEntry:
    count = len(column.flags)
    match storage_of(scalar):
        case Storage.NONE:
            none = b""
        case Storage.BYTES:
            none = bytes(4 * (count + 1))
        case _:
            none = bytes(8 * count)
    flags = bytes(flag & _NO_BOUNDS | Flag.MAY_HOLD_NAN for flag in column.flags)
    return replace(column, low=none, high=none, flags=flags)


def _with_counts(root: Root) -> Root:
    rows, size = row_count(root.tail), sum(file.size_bytes for file in root.tail)
    return replace(root, row_count=rows, file_count=len(root.tail), data_bytes=size)


def _between(before: Iterable[FileEntry], after: Iterable[FileEntry]) -> ChangedFiles:
    old, new = ({file.location: file for file in files} for files in (before, after))
    gone = [file for name, file in old.items() if name not in new]
    come = [file for name, file in new.items() if name not in old]
    for name in old.keys() & new.keys():
        had, has = old[name].deletes or bitmaps.pack(()), new[name].deletes or bitmaps.pack(())
        gone += _showing(old[name], bitmaps.difference(has, had))
        come += _showing(new[name], bitmaps.difference(had, has))
    return ChangedFiles(gone=tuple(gone), come=tuple(come))


def _showing(file: FileEntry, bits: bytes) -> Iterator[FileEntry]:
    """The file with only these of its rows visible; nothing when there are none."""
    shown = bitmaps.unpack(bits)
    if len(shown):
        is_hidden = np.ones(count_rows(file), np.bool_)
        is_hidden[shown] = False
        hidden = np.flatnonzero(is_hidden)
        yield replace(file, deletes=bitmaps.pack(hidden) if len(hidden) else None, deleted_rows=len(hidden))
