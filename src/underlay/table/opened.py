"""A table that a process works with: its active revision, followed when another one takes over."""

from __future__ import annotations

from math import inf
from threading import Lock
from typing import NamedTuple

from underlay.index.root import Root
from underlay.table.lake import Lake
from underlay.table.revision import Revision
from underlay.table.snapshot import SegmentLoader, Snapshot, open_segment
from underlay.table.succession import finish, open_active


class Head(NamedTuple):
    """The newest version of the active revision."""

    revision: Revision
    root: Root


class OpenTable:
    """A table by its name; `revision` is its active one, where that is known. Safe for many threads."""

    def __init__(
        self, lake: Lake, name: str, load_segment: SegmentLoader = open_segment, revision: Revision | None = None
    ) -> None:
        self.lake = lake
        self.name = name
        self.load_segment = load_segment
        self._lock = Lock()
        self._revision = revision
        self._newest: Snapshot | None = None

    def head(self, max_staleness_seconds: float = 0.0) -> Head:
        """The newest version: one request when this process knows it, none within the staleness.

        Raises TableNotFound, also when the table was dropped since.
        """
        while True:
            with self._lock:
                revision = self._revision
            if revision is None:
                revision = open_active(self.lake, self.name)
                with self._lock:
                    self._revision = revision
                return Head(revision, revision.head(inf))  # it was looked for just now
            root = revision.head(max_staleness_seconds)
            if root.terminal is None:
                return Head(revision, root)
            finish(self.lake, revision, root)
            self.forget()

    def forget(self) -> None:
        """Look the active revision up again."""
        with self._lock:
            self._revision = None

    def snapshot(self, head: Head) -> Snapshot:
        """A version, to read. What was worked out for the last one asked for is kept."""
        known = self._newest
        if known is not None and known.root is head.root:
            return known
        self._newest = found = Snapshot(self.lake.store, head.revision.keys, head.root, self.load_segment)
        return found
