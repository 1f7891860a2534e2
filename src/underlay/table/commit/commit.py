"""The commit loop: put all new objects, then create the next root; after a lost race rebase onto the winner.

Creating the root is the commit: whatever was put before is unreferenced until then, and harmless if it stays so.
`publish` distinguishes its three outcomes (done, refused, unknown) by R1 (docs/commit-rules.md). Here "done" returns,
"refused" is a lost race, and "unknown" raises CommitUnknown: the loop must neither rebase nor delete then, since the
root may still appear.

A small commit takes two round trips: first all new objects in parallel, with the check that its base is still in the
store (R14); then the root.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from itertools import chain
from math import inf

import msgspec

from underlay.errors import Busy, CommitConflict, JobTakenOver, RevisionClosed, SnapshotExpired
from underlay.index.change import Attachments, Change
from underlay.index.keys import is_own
from underlay.index.root import Definition, Root, Sources
from underlay.index.sources.tree import insert
from underlay.index.state import advance, follow
from underlay.runtime.threads import REQUESTS, side_by_side
from underlay.schema.record import from_record
from underlay.store.store import Data, Store
from underlay.table.commit.conflicts import AlreadyCommitted, Mine, Redo, Refuse, Winner, conflicts, is_fenced_off
from underlay.table.commit.flush_and_merge import tidy
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.environment import to_us, uuid7
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import Snapshot

_MOST_ATTEMPTS_WAITED = 16
"""A writer that lost a race waits for at most the time of this many attempts."""

Redoing = Callable[[Root], Transaction]
"""Does a transaction's work again, on this version."""


def commit(transaction: Transaction, redo: Redoing | None = None, *, redo_rewrites_only: bool = False) -> Root:
    """The version that holds the transaction's change.

    With `redo`, a transaction whose work was invalidated by another commit is prepared again on the new head; with
    `redo_rewrites_only` only when that commit merely rewrote rows. Otherwise, and when another commit conflicts with
    this one, CommitConflict is raised. RevisionClosed names the revision that took over, CommitUnknown the commit whose
    outcome the store did not report.
    """
    attempt = _Attempt(transaction)
    surroundings = transaction.revision.surroundings
    shortest = inf
    for number in range(surroundings.rebase_attempts):
        begin = surroundings.monotonic()
        root = attempt.run()
        if root is not None:
            if surroundings.after_commit is not None:
                surroundings.after_commit(transaction.revision.id, root)
            return root
        shortest = min(shortest, surroundings.monotonic() - begin)
        # Writers that lost the same race would otherwise meet again at the next version. The wait comes before the head
        # is read, which would be stale after it, and is bounded by the time of an attempt, since other writers are as
        # fast.
        surroundings.back_off(number, most_seconds=_MOST_ATTEMPTS_WAITED * shortest)
        outcome = attempt.lose()
        if isinstance(outcome, Root):
            return outcome
        if isinstance(outcome, Redo):
            if redo is None or (redo_rewrites_only and not outcome.is_rewrite):
                raise attempt.conflict(outcome)
            # The new attempt gets a commit id of its own. The old id is in no root: its create was refused by a root
            # with another id, so nothing can land under it later.
            attempt = _Attempt(redo(attempt.head))
    raise Busy("too many other commits came first", place=transaction.revision.place, hint="Try again later.")


def put_all(store: Store, objects: Mapping[str, Data]) -> None:
    """Put the objects in parallel. Returns when all are stored; raises only after every put has ended."""
    items = list(objects.items())
    puttings = [REQUESTS.submit(store.put, key, data) for key, data in items[1:]]
    try:
        # The caller's thread would only wait, so it puts one itself. Most commits have one object, and need no thread.
        for key, data in items[:1]:
            store.put(key, data)
    finally:
        # Also after an error: the caller may delete or write again, and no late put may interfere with that.
        wait(puttings)
    for putting in puttings:
        putting.result()


class _Attempt:
    """A transaction being committed: its change, and the head onto which it is rebased.

    The change is logical (files added and removed, bits set), so that a rebase applies it to any head. Each run
    computes what depends on the head: the root, the source tree, the version number.
    """

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.revision: Revision = transaction.revision
        self.head = transaction.base
        self.commit_id = transaction.commit_id = self.revision.surroundings.new_commit_id()
        self._change: Change = transaction.enter_commit()
        self._pending: dict[str, Data] = dict(transaction.objects)
        self._attachments: Attachments | None = None
        self._uploaded: list[str] = []
        self._winner: Root | None = None
        """The commit that came first at the last attempt; None when it expired already."""
        self._horizon_us = transaction.base.horizon_us

    def run(self) -> Root | None:
        """Try once: the committed root, or None after a lost race."""
        # At every attempt: a revision may have been closed, or a job taken over, by the commit that won the last one.
        self._check_head()
        self._tidy()
        change, sources = self._stamped()
        surroundings = self.revision.surroundings
        root = advance(
            self.head,
            change,
            commit_id=self.commit_id,
            now_us=surroundings.now_us(),
            writer=surroundings.writer,
            sources=sources,
            attachments=self._attachments,
        )
        # All of it before the root, which references it: a reader of the root must find every object. Objects of an
        # earlier attempt have unique names and still exist, so a rebase puts only what it makes anew.
        check_base = self.revision.start_base_check(self.head)
        put_all(self.revision.store, self._pending)
        self._uploaded += self._pending
        self._pending = {}
        # Never publish over a gap: an older copy of the lake may have been restored since the base was read.
        check_base()
        try:
            self._winner = self.revision.publish(root)
        except SnapshotExpired:
            return None
        return root if self._winner is None else None

    def lose(self) -> Root | Redo | None:
        """Follow the commits that came first. Returns a Redo when the work must be redone, None when the change was
        rebased and can be tried again, or the root that already holds it."""
        try:
            return self._lose_to_expired() if self._winner is None else self._lose_to(self._winner)
        except SnapshotExpired:
            return self._lose_to_expired()

    def conflict(self, decision: Redo | Refuse) -> CommitConflict:
        """The error that names both commits."""
        theirs = decision.winner
        return CommitConflict(
            f"{self._change.operation} {self.commit_id} lost to {theirs.operation} {theirs.commit_id} "
            f"(version {theirs.version}): {decision.reason}",
            place=self.revision.place,
            hint="Nothing was changed. Check the new version, and retry if you still want this change.",
        ).between(self.commit_id, theirs.commit_id)

    def _check_head(self) -> None:
        terminal = self.head.terminal
        if terminal is not None:
            raise RevisionClosed(
                f"the revision was closed ({terminal.reason})",
                place=self.revision.place,
                hint="Open the table again." if terminal.successor else "The table was dropped.",
            ).by(terminal.successor)
        if is_fenced_off(self.head, self.transaction.held):
            raise self._taken_over()

    def _taken_over(self) -> JobTakenOver:
        job, epoch = self.transaction.held or ("", 0)
        error = JobTakenOver(
            f"another process took over the job {job}",
            place=self.revision.place,
            expected=f"epoch {epoch}",
            found=f"epoch {self.head.fences.get(job, 0)}",
            hint="Nothing was changed. Start the job again if it is still needed.",
        )
        error.between(self.commit_id, self.head.commit_id)
        return error

    def _tidy(self) -> None:
        """Decide what to tidy. Only once, since merges are too expensive to redo after each lost race, and `advance`
        drops those whose inputs changed; but again when types or partitions change, since the bounds of the tail have
        the table's types, and a segment has files of one partition spec."""
        must_flush = self._change.definition is not None and _is_described_otherwise(self.head, self._change)
        if self._attachments is None or must_flush:
            snapshot = Snapshot(self.revision.store, self.revision.keys, self.head, self.transaction.load_segment)
            tidying = tidy(snapshot, uuid7, must_flush=must_flush)
            self._attachments = tidying.attachments
            self._pending |= tidying.objects

    def _stamped(self) -> tuple[Change, Sources | None]:
        """The change with its sources' version, and the source tree with them in it."""
        if not self._change.sources:
            return self._change, None
        # A source records the version that added it, which is known only for this attempt.
        version = self.head.version + 1
        records = tuple(msgspec.structs.replace(record, version=version) for record in self._change.sources)
        before = self._change.restored.sources if self._change.restored is not None else self.head.sources
        sources, pages = insert(before, records, self.transaction.snapshot.fetch_pages, uuid7)
        self._pending |= {self.revision.keys.source_page(page): data for page, data in pages.items()}
        return dataclasses.replace(self._change, sources=records), sources

    def _lose_to(self, winner: Root) -> Root | Redo | None:
        """Decide what the commits since our base mean for this change, and rebase onto the newest if it still holds."""
        # A winner with another parent means that the lake was replaced meanwhile: nothing we know about it holds.
        self.revision.check_parent(winner, self.head)
        mine = Mine(change=self._change, reads=self.transaction.reads, definition=self.head.definition)
        loader, winners = self.transaction.load_segment, []
        # All of them at once: rebasing onto the first only would lose the next race too.
        for root in chain([winner], self.revision.roots_after(winner)):
            snapshot = Snapshot(self.revision.store, self.revision.keys, root, loader)
            added = snapshot.added_files() if self._must_know_files() else ()
            winners.append(Winner(root=_what_it_did(root, self.head.definition), added=added))
            newest = root
        self.head = newest
        brought_back = self._token_brought_back(winners)
        if brought_back is not None:
            return brought_back
        match conflicts(mine, winners):
            case AlreadyCommitted(version):
                return newest if version == newest.version else self.revision.root(version)
            case Refuse() as refusal:
                # A closed revision or a lost job explains it better, and tells the caller what to do.
                self._check_head()
                raise self.conflict(refusal)
            case Redo() as again:
                self._check_head()
                return again
        # Winners may have deleted other rows of the files that we change. Our entries of these files get their bits, or
        # the new root would bring those rows back.
        for one in winners:
            self._change = follow(self._change, one.root)
        return self._swept()

    def _lose_to_expired(self) -> Root | Redo:
        """A commit that came first has already expired, so what it did is unknown."""
        self.head = self.revision.head()
        self._check_head()
        token = self._change.token
        if token is not None and self._snapshot_of_head().find_sources([token]):
            return self.head
        return Redo("this commit is based on a version whose successor has expired", self.head)

    def _swept(self) -> Redo | None:
        """Why the work must be redone if a sweep came first: R5. The sweep may delete, or have deleted, what was
        uploaded before its horizon, since no version references that yet. No request when there was no sweep."""
        horizon_us = self.head.horizon_us
        if horizon_us <= self._horizon_us:
            return None
        self._horizon_us = horizon_us
        store, keys = self.revision.store, self.revision.keys
        locations = [file.location for file in self._change.files]
        for ref in self._change.segments:
            locations += map(str, self.transaction.load_segment(store, keys, ref).locations.to_pylist())
        files = [keys.file(location) for location in locations if is_own(location)]
        uploaded = list(dict.fromkeys([*self._uploaded, *(key for key in files if key is not None)]))
        for found in side_by_side(store.head, uploaded, store.parallel_requests):
            if found is None or to_us(found.modified) < horizon_us:
                return Redo("what this commit uploaded is older than the horizon of a sweep that came first", self.head)
        return None

    def _snapshot_of_head(self) -> Snapshot:
        return Snapshot(self.revision.store, self.revision.keys, self.head)

    def _token_brought_back(self, winners: list[Winner]) -> Root | None:
        """The version with our token if a winner's rollback brought it back. No rule can see that: the delta of a
        rollback names the version that it restored, not the tokens in it."""
        token = self._change.token
        if token is None or all(one.root.delta.restored is None for one in winners):
            return None
        found = self._snapshot_of_head().find_sources([token]).get(token)
        return None if found is None else self.revision.root(found.version)

    def _must_know_files(self) -> bool:
        """Whether the files that winners added must be read. Names of our own files are random and never clash; those
        of registered files may, and a predicate must see what may match it."""
        has_foreign = any(not is_own(file.location) for file in self._change.files)
        return self.transaction.reads.may_match is not None or has_foreign


def _what_it_did(root: Root, known: Definition) -> Root:
    """A root without what its commit merely kept: the rules ask for what it changed, and thousands of commits may have
    come first, each with the same files and the same definition."""
    definition = known if root.definition == known else root.definition
    return msgspec.structs.replace(
        root, definition=definition, layouts=(), segments=(), tail=(), removed=(), deletes={}, sources=Sources()
    )


def _is_described_otherwise(head: Root, change: Change) -> bool:
    """Whether the tail's files must move to a segment of their own, because types or the partition spec change."""
    if change.definition is None or not head.tail:
        return False
    if change.definition.spec != head.definition.spec:
        return True
    old, new = from_record(head.definition.schema).leaf_by_id, from_record(change.definition.schema).leaf_by_id
    return any(field in new and new[field].type != leaf.type for field, leaf in old.items())
