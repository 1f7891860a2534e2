"""A table that a process works with: its active revision, followed when another one takes over."""

from __future__ import annotations

from math import inf
from threading import Lock
from typing import NamedTuple

from underlay.errors import RevisionClosed
from underlay.index.root import Root, Terminal
from underlay.table.lake import Lake
from underlay.table.revision import Revision
from underlay.table.snapshot import SegmentLoader, Snapshot, open_segment
from underlay.table.succession import finish, open_active
from underlay.table.transaction import Transaction


class Head(NamedTuple):
    """The newest version of the active revision."""

    revision: Revision
    root: Root


class OpenTable:
    """A table by its name; `revision` is its active one, where that is known. Safe for many threads.

    `held` is the job under which everything is committed, and its epoch. Epochs count in one revision only, so a table
    that is held is not followed to the next one.
    """

    def __init__(
        self,
        lake: Lake,
        name: str,
        load_segment: SegmentLoader = open_segment,
        revision: Revision | None = None,
        held: tuple[str, int] | None = None,
    ) -> None:
        self.lake = lake
        self.name = name
        self.load_segment = load_segment
        self.held = held
        self._lock = Lock()
        self._revision = revision
        self._newest: Snapshot | None = None

    def head(self, max_staleness_seconds: float = 0.0) -> Head:
        """The newest version: one request when this process knows it, none within the staleness.

        Raises TableNotFound, also when the table was dropped since; RevisionClosed when a job is held in a revision
        that was closed.
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
            if self.held is not None:
                raise _closed_under(self.held, revision, root.terminal)
            self.forget()

    def forget(self) -> None:
        """Look the active revision up again."""
        with self._lock:
            self._revision = None

    def follow(self, closed: RevisionClosed) -> None:
        """Go on with the revision that took over. Raises `closed` when there is none, and when a job is held."""
        if closed.successor is None or self.held is not None:
            raise closed
        self.forget()

    def holding(self, revision: Revision, job: str, epoch: int) -> OpenTable:
        """The same table for the holder of a job, who took it over in this revision."""
        return OpenTable(self.lake, self.name, self.load_segment, revision, (job, epoch))

    def begin(self, head: Head, operation: str) -> Transaction:
        """A transaction on this version, which can be committed only while the job is held, if there is one."""
        transaction = Transaction(head.revision, head.root, operation, load_segment=self.load_segment)
        if self.held is not None:
            transaction.hold(*self.held)
        return transaction

    def snapshot(self, head: Head) -> Snapshot:
        """A version, to read. What was worked out for the last one asked for is kept."""
        known = self._newest
        if known is not None and known.root is head.root:
            return known
        self._newest = found = Snapshot(self.lake.store, head.revision.keys, head.root, self.load_segment)
        return found


def _closed_under(held: tuple[str, int], revision: Revision, terminal: Terminal) -> RevisionClosed:
    return RevisionClosed(
        f"the revision was closed ({terminal.reason}) under the job {held[0]}",
        place=revision.place,
        hint="Begin the job again." if terminal.successor else "The table was dropped.",
    ).by(terminal.successor)
