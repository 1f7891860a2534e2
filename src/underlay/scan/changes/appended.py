"""What was added to a table between two positions in its history: files, as the versions that added them had them.

A position names the next version to read, and how many of its files were read: of those that it added, or, for a reader
that begins with the whole table, of all its files. The root of a version numbers its files and never changes, so the
same two positions always mean the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from underlay.errors import Inconsistent, InvalidRequest, Unsupported, VersionNotFound
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.root import Definition, Root
from underlay.runtime.locks import cached_property
from underlay.runtime.threads import side_by_side
from underlay.scan.changes.changed_files import without_bounds
from underlay.schema.record import from_record
from underlay.table.open_table import Head
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import SegmentLoader, Snapshot

# The files of a version, or those that it added, by number: first those of segments, then those of the tail.
#
# A root never changes, so a number always means the same file. A file of a segment that was removed keeps its number.

_AT_ONCE = 256


@dataclass(frozen=True, kw_only=True)
class NumberedFiles:
    """All files of a version as they are in it, or those that it added, as it added them."""

    snapshot: Snapshot
    is_whole: bool

    @cached_property
    def _places(self) -> list[int]:
        """The segments that count, by their places among the root's."""
        root = self.snapshot.root
        added = set(root.delta.added_segments)
        return [place for place, ref in enumerate(root.segments) if self.is_whole or ref.id in added]

    @cached_property
    def _tail(self) -> tuple[FileEntry, ...]:
        root = self.snapshot.root
        return root.tail if self.is_whole else root.tail[len(root.tail) - root.delta.added_in_tail :]

    @property
    def count(self) -> int:
        """The number of files, removed ones included."""
        return sum(self.snapshot.root.segments[place].file_count for place in self._places) + len(self._tail)

    def entries(self, begin: int, end: int) -> list[FileEntry | None]:
        """The files numbered `begin` up to `end`, None for one that was removed. Reads the segments that have them."""
        found: list[FileEntry | None] = []
        first = 0
        for place in self._places:
            count = self.snapshot.root.segments[place].file_count
            rows = range(max(begin - first, 0), min(end - first, count))
            if rows:
                found += map(self._current, self.snapshot.segment(place).entries(rows))
            first += count
        return [*found, *self._tail[max(begin - first, 0) : max(end - first, 0)]]

    def fitting(self, begin: int, end: int, most_bytes: int) -> Iterator[int]:
        """The sizes of the files from `begin` on, while their sum is at most the given number of bytes."""
        for first in range(begin, end, _AT_ONCE):
            for file in self.entries(first, min(first + _AT_ONCE, end)):
                size = 0 if file is None else file.size_bytes
                if size > most_bytes:
                    return
                most_bytes -= size
                yield size

    @cached_property
    def _removed(self) -> frozenset[str]:
        return frozenset(self.snapshot.root.removed)

    def _current(self, file: FileEntry) -> FileEntry | None:
        if not self.is_whole:
            return file
        return None if file.location in self._removed else self.snapshot.current(file)


_BATCH = 8


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """The next file to read: the one of this number in this version."""

    revision: str
    version: int
    file: int = 0
    whole: bool = False
    """Whether it counts all files of the version instead of those that it added."""
    parent: str | None
    """The id of the commit before, which proves that the history is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much to read at once: at most N files or N bytes of files, but at least one file."""

    files: int | None = None
    size_bytes: int | None = None

    @property
    def is_reached(self) -> bool:
        """Whether it is used up."""
        return self.files == 0 or self.size_bytes == 0


def whole_table(head: Head) -> Position:
    """The position of a reader that begins with the whole table, and goes on with what is added."""
    root = head.root
    return Position(revision=head.revision.id, version=root.version, whole=True, parent=root.parent_id)


def after(revision: Revision, root: Root) -> Position:
    """The position of a reader that begins with what is added after this version."""
    return Position(revision=revision.id, version=root.version + 1, parent=root.commit_id)


def at_version(revision: Revision, version: int) -> Position:
    """The position of a reader that begins with what this version added. Raises VersionNotFound."""
    if version == 0:
        return Position(revision=revision.id, version=0, parent=None)
    return after(revision, revision.root(version - 1))


class Appends:
    """The history of one revision, for a reader of what is added.

    With `skips_changes`, versions that deleted or changed rows are skipped, except for rows that they added as an
    append does; without it they raise Unsupported. A version that touched rows by an operation that only a newer
    Underlay knows always does.
    """

    def __init__(self, revision: Revision, load_segment: SegmentLoader, *, skips_changes: bool = False) -> None:
        self._revision = revision
        self._load_segment = load_segment
        self._skips_changes = skips_changes
        self._roots: dict[int, Root] = {}

    def newest(self) -> Root:
        """The newest version. One request when there is no newer one."""
        return self._revision.head()

    def advance(self, begin: Position, until: Root, limit: Limit) -> Position:
        """How far a reader gets from `begin` within this limit, but not past `until`. Raises as `between` does."""
        self._check(begin)
        if begin.version > until.version:
            if begin != after(self._revision, until):
                raise _other_history(self._revision, begin.version, expected=begin.parent, found=until.commit_id)
            return begin
        place, left = begin, limit
        for root in self._roots_from(begin, until.version):
            files = self._files(root, is_whole=place.whole)
            count = files.count if files is not None else 0
            end, left = (count, left) if files is None else _cut(files, place.file, left, is_first=place == begin)
            if end < count:
                return replace(place, file=end)
            place = after(self._revision, root)
            if left.is_reached:
                break
        return place

    def between(self, begin: Position, end: Position, definition: Definition) -> Snapshot | None:
        """The files between two positions as a snapshot with this definition, None when there are none.

        Raises Unsupported for a version that removed or changed rows, InvalidRequest when the table was dropped or
        replaced, VersionNotFound when a version is missing, Inconsistent when it is not the one that was read before.
        """
        self._check(end)
        entries: list[FileEntry] = []
        schema = from_record(definition.schema)
        layouts: dict[str, FileLayout] = {}
        newest: Root | None = None
        for root in self._roots_from(begin, end.version if end.file else end.version - 1):
            files = self._files(root, is_whole=begin.whole and root.version == begin.version)
            if files is not None:
                first = begin.file if root.version == begin.version else 0
                last = end.file if root.version == end.version else files.count
                found = [file for file in files.entries(first, last) if file is not None]
                is_alike = root.definition.schema == definition.schema
                # bounds are in the types that the version had
                entries += found if is_alike else [without_bounds(file, schema) for file in found]
            layouts |= {layout.id: layout for layout in root.layouts}
            newest = root
        if newest is None or not entries:
            return None
        only = replace(
            newest,
            definition=definition,
            layouts=tuple(layouts.values()),
            segments=(),
            tail=tuple(entries),
            removed=(),
            deletes={},
        )
        return self._snapshot(only)

    def _roots_from(self, begin: Position, last: int) -> Iterator[Root]:
        """The roots from a position up to the last one, read some at a time."""
        self._check(begin)
        parent = begin.parent
        for first in range(begin.version, last + 1, _BATCH):
            for root in self._fetch(range(first, min(first + _BATCH, last + 1))):
                if root.parent_id != parent:
                    raise _other_history(self._revision, root.version, expected=parent, found=root.parent_id)
                if root.terminal is not None:
                    raise _ended(self._revision, root)
                yield root
                parent = root.commit_id

    def _fetch(self, versions: Sequence[int]) -> list[Root]:
        missing = [version for version in versions if version not in self._roots]
        try:
            found = side_by_side(self._revision.root, missing, self._revision.store.parallel_requests)
        except VersionNotFound as error:
            error.hint = "What it added is no longer known. Start again with a new checkpoint."
            raise
        if len(self._roots) > _BATCH * _BATCH:
            self._roots = {version: self._roots[version] for version in versions if version in self._roots}
        self._roots |= {root.version: root for root in found}
        return [self._roots[version] for version in versions]

    def _check(self, place: Position) -> None:
        if place.revision != self._revision.id:
            raise InvalidRequest(
                "the table was replaced by another one of the same name",
                place=self._revision.place,
                expected=place.revision,
                found=self._revision.id,
                hint="Start again with a new checkpoint.",
            )

    def _files(self, root: Root, *, is_whole: bool) -> NumberedFiles | None:
        """The files of a version that hold new rows; None when it has no such files. Raises Unsupported."""
        if is_whole or self._is_read(root):
            return NumberedFiles(snapshot=self._snapshot(root), is_whole=is_whole)
        return None

    def _snapshot(self, root: Root) -> Snapshot:
        return Snapshot(self._revision.store, self._revision.keys, root, self._load_segment)

    def _is_read(self, root: Root) -> bool:
        """Whether the files that a version added hold new rows. Raises Unsupported."""
        operation, delta = root.operation, root.delta
        if operation.keeps_rows:
            return False
        is_change = bool(delta.removed or delta.deletes) or delta.restored is not None
        if not operation.is_known and (is_change or delta.added_in_tail or delta.added_segments):
            # Its files may hold new rows, or old ones rewritten: the delta alone does not tell which.
            raise Unsupported(
                f"version {root.version} is a {operation!s}, an operation that this version of Underlay does not know",
                place=self._revision.place,
                found=operation.value,
                hint="Update Underlay, or start again with a new checkpoint.",
            )
        if is_change and not self._skips_changes:
            raise Unsupported(
                f"version {root.version} deleted or changed rows; an append-only stream cannot represent that",
                place=self._revision.place,
                found=operation.value,
                hint="Set the option skipChanges to true to pass over it, or start again with a new checkpoint.",
            )
        return operation.adds_rows if is_change else True


def _cut(files: NumberedFiles, begin: int, left: Limit, *, is_first: bool) -> tuple[int, Limit]:
    """Where to end in a version, and what is left of the limit. The first file is taken whatever its size."""
    end = files.count if left.files is None else min(files.count, begin + left.files)
    if left.size_bytes is None:
        return end, Limit(files=None if left.files is None else left.files - (end - begin))
    sizes = list(files.fitting(begin, end, left.size_bytes))
    if not sizes and is_first and begin < end:
        return begin + 1, Limit(size_bytes=0)
    return begin + len(sizes), Limit(size_bytes=left.size_bytes - sum(sizes))


def _other_history(revision: Revision, version: int, *, expected: str | None, found: str | None) -> Inconsistent:
    return Inconsistent(
        f"the history before version {version} is not the one that was read",
        place=revision.place,
        expected=expected,
        found=found,
        hint="The lake was replaced, or restored from a copy. Start again with a new checkpoint.",
    )


def _ended(revision: Revision, root: Root) -> InvalidRequest:
    reason = "dropped" if root.terminal is not None and root.terminal.successor is None else "replaced by another one"
    return InvalidRequest(f"the table was {reason}", place=revision.place, hint="Start again with a new checkpoint.")
