"""The files that a version has, or those that it added, by number: those of segments first, then those of the tail.

A root never changes, so a number always means the same file. A file of a segment that was removed keeps its number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from underlay.index.entry import FileEntry
from underlay.table.versions.snapshot import Snapshot

_AT_ONCE = 256


@dataclass(frozen=True, kw_only=True)
class NumberedFiles:
    """Of a version all files as they are in it, or those that it added, as it added them."""

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
        """How many numbers there are."""
        return sum(self.snapshot.root.segments[place].file_count for place in self._places) + len(self._tail)

    def entries(self, begin: int, end: int) -> list[FileEntry | None]:
        """The files from one number to before another, None for one that was removed. Reads the segments in between."""
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
