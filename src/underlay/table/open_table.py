"""A table in use by a process: it follows the active revision when another one takes over."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from underlay.errors import Damaged, InvalidRequest, RevisionClosed, Unsupported
from underlay.index.catalog import find_table
from underlay.index.operation import Operation
from underlay.index.root import Root, Terminal
from underlay.runtime.locks import ProcessLock
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import finish, open_active
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import SegmentLoader, Snapshot, open_segment


class Head(NamedTuple):
    """The newest version of the active revision."""

    revision: Revision
    root: Root


class OpenTable:
    """A table by its name; `revision` is the active one, if known. Safe for many threads.

    `held` is the job under which everything is committed, and its epoch. Epochs count within one revision, so a held
    table does not follow to the next one.
    """

    def __init__(
        self,
        lake: LakeCatalog,
        name: str,
        load_segment: SegmentLoader = open_segment,
        revision: Revision | None = None,
        held: tuple[str, int] | None = None,
    ) -> None:
        self.lake = lake
        self.name = name
        self.load_segment = load_segment
        self.held = held
        self._lock = ProcessLock()
        self._revision = revision
        self._newest: Snapshot | None = None
        self._is_over = False

    def head(self, max_staleness_seconds: float = 0.0) -> Head:
        """The newest version: one request when this process knows it, none within the staleness.

        Raises TableNotFound, also when the table was dropped since; RevisionClosed when a job is held in a revision
        that was closed.
        """
        self.lake.check_open()
        while True:
            with self._lock:
                revision = self._revision
            if revision is None:
                revision = open_active(self.lake, self.name)
                with self._lock:
                    self._revision = revision
                return Head(revision, revision.head(inf))  # `open_active` has just looked it up
            root = revision.head(max_staleness_seconds)
            if root.terminal is None:
                return Head(revision, root)
            finish(self.lake, revision, root)
            if self.held is not None:
                raise _closed_under(self.held, revision, root.terminal)
            self.forget()

    def active(self, max_staleness_seconds: float = 0.0) -> Revision:
        """The active revision. When its newest root cannot be read, the one that the catalog names: older versions can
        be read, but nothing can be committed."""
        try:
            return self.head(max_staleness_seconds).revision
        except (Damaged, Unsupported):
            record = find_table(self.lake.catalog(max_staleness_seconds), self.name)
            with self._lock:
                known = self._revision
            if known is not None and known.id == record.active:
                return known
            return Revision(self.lake.store, record.folder, record.active, self.lake.surroundings)

    def forget(self) -> None:
        """Look the active revision up again."""
        with self._lock:
            self._revision = None

    def follow(self, closed: RevisionClosed) -> None:
        """Continue with the revision that took over. Raises `closed` when there is none, and when a job is held."""
        if closed.successor is None or self.held is not None:
            raise closed
        self.forget()

    def holding(self, revision: Revision, job: str, epoch: int) -> OpenTable:
        """The same table for the holder of a job, taken over in this revision."""
        return OpenTable(self.lake, self.name, self.load_segment, revision, (job, epoch))

    def end(self) -> None:
        """Refuse every later change, since the job was released."""
        self._is_over = True

    def held_now(self) -> tuple[str, int] | None:
        """The job under which changes are committed, None without one. Raises InvalidRequest when it was released."""
        if self._is_over and self.held is not None:
            raise InvalidRequest(
                f"the job {self.held[0]} was released",
                place=self.name,
                hint="Take the job again, or write to the table without it.",
            )
        return self.held

    def begin(self, head: Head, operation: Operation) -> Transaction:
        """A transaction on this version, which can be committed only while the job is held, if there is one.

        Raises InvalidRequest when the job was released.
        """
        held = self.held_now()
        transaction = Transaction(head.revision, head.root, operation, load_segment=self.load_segment)
        if held is not None:
            transaction.hold(*held)
        return transaction

    def snapshot(self, head: Head) -> Snapshot:
        """A version, to read. The last one requested is cached."""
        known = self._newest
        if known is not None and known.root is head.root:
            return known
        self._newest = found = Snapshot(self.lake.store, head.revision.keys, head.root, self.load_segment)
        return found


def _closed_under(held: tuple[str, int], revision: Revision, terminal: Terminal) -> RevisionClosed:
    return RevisionClosed(
        f"the revision was closed ({terminal.reason}) under the job {held[0]}",
        place=revision.place,
        hint="Start the job again." if terminal.successor else "The table was dropped.",
    ).by(terminal.successor)
