"""The commit: put what is new, then create the next root; after a lost race decide, and go on from the winner.

A small commit waits for two puts: everything new side by side, then the root.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from concurrent.futures import wait

import msgspec

from underlay.errors import Busy, CommitConflict, JobTakenOver, RevisionClosed
from underlay.index.change import Attachments, Change
from underlay.index.keys import is_own
from underlay.index.root import Root, Sources
from underlay.index.sources.tree import insert
from underlay.index.state import advance, follow
from underlay.runtime.threads import REQUESTS
from underlay.schema.record import from_record
from underlay.store.store import Data, Store
from underlay.table.commit.conflicts import AlreadyCommitted, Mine, Redo, Refuse, Winner, conflicts, is_fenced_off
from underlay.table.commit.tidy import tidy
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.environment import uuid7
from underlay.table.versions.revision import Revision, check_parent
from underlay.table.versions.snapshot import Snapshot

Redoing = Callable[[Root], Transaction]
"""Does a transaction's work again, on this version."""


def commit(transaction: Transaction, redo: Redoing | None = None) -> Root:
    """The version that holds the transaction's change.

    With `redo`, a transaction whose work was overtaken is done again on the new head; without, and when another commit
    contradicts it, CommitConflict. RevisionClosed names the revision that took over; CommitUnknown the commit whose
    fate the store did not tell.
    """
    attempt = _Attempt(transaction)
    for number in range(transaction.revision.surroundings.rebase_attempts):
        outcome = attempt.run()
        if isinstance(outcome, Root):
            return outcome
        if isinstance(outcome, Redo):
            if redo is None:
                raise attempt.conflict(outcome)
            attempt = _Attempt(redo(attempt.head))
        transaction.revision.surroundings.back_off(min(number, 6))
    raise Busy("others commit all the time", place=transaction.revision.place, hint="Try again later.")


def put_all(store: Store, objects: Mapping[str, Data]) -> None:
    """Put the objects side by side; returns when all are there, or raises when none is on its way any more."""
    items = list(objects.items())
    puttings = [REQUESTS.submit(store.put, key, data) for key, data in items[1:]]
    try:
        for key, data in items[:1]:
            store.put(key, data)
    finally:
        wait(puttings)
    for putting in puttings:
        putting.result()


class _Attempt:
    """One transaction on its way: its change, and the head that it is tried on."""

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.revision: Revision = transaction.revision
        self.head = transaction.base
        self.commit_id = self.revision.surroundings.new_commit_id()
        self._change: Change = transaction.enter_commit()
        self._pending: dict[str, Data] = dict(transaction.objects)
        self._attachments: Attachments | None = None

    def run(self) -> Root | Redo | None:
        """Try once: the committed root; or why the work must be done again; or None when the race was lost."""
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
        put_all(self.revision.store, self._pending)
        self._pending = {}
        winner = self.revision.publish(root)
        return root if winner is None else self._lose_to(winner)

    def conflict(self, decision: Redo | Refuse) -> CommitConflict:
        """The error that names both commits."""
        theirs = decision.winner
        return CommitConflict(
            f"{self._change.operation} {self.commit_id} lost to {theirs.operation} {theirs.commit_id} "
            f"(version {theirs.version}): {decision.reason}",
            place=self.revision.place,
            hint="Nothing was changed. Look at the new version, and do it again if it is still wanted.",
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
            hint="Nothing was changed. Begin the job again if it is still wanted.",
        )
        error.between(self.commit_id, self.head.commit_id)
        return error

    def _tidy(self) -> None:
        """Work out once what to tidy; always when types change, since a tail's bounds have the table's types."""
        must_flush = self._change.definition is not None and _has_other_types(self.head, self._change)
        if self._attachments is None or must_flush:
            snapshot = Snapshot(self.revision.store, self.revision.keys, self.head, self.transaction.load_segment)
            tidying = tidy(snapshot, uuid7, must_flush=must_flush)
            self._attachments = tidying.attachments
            self._pending |= tidying.objects

    def _stamped(self) -> tuple[Change, Sources | None]:
        """The change with its sources' version, and the source tree with them in it."""
        if not self._change.sources:
            return self._change, None
        version = self.head.version + 1
        records = tuple(msgspec.structs.replace(record, version=version) for record in self._change.sources)
        before = self._change.restored.sources if self._change.restored is not None else self.head.sources
        sources, pages = insert(before, records, self.transaction.snapshot.fetch_pages, uuid7)
        self._pending |= {self.revision.keys.source_page(page): data for page, data in pages.items()}
        return dataclasses.replace(self._change, sources=records), sources

    def _lose_to(self, winner: Root) -> Root | Redo | None:
        check_parent(winner, self.head, self.revision.place)
        roots = [winner, *self.revision.roots_after(winner)]
        loader = self.transaction.load_segment
        winners = []
        for root in roots:
            snapshot = Snapshot(self.revision.store, self.revision.keys, root, loader)
            winners.append(Winner(root=root, added=snapshot.added_files() if self._must_know_files() else ()))
        mine = Mine(change=self._change, reads=self.transaction.reads, definition=self.head.definition)
        self.head = roots[-1]
        brought_back = self._token_brought_back(roots)
        if brought_back is not None:
            return brought_back
        match conflicts(mine, winners):
            case AlreadyCommitted(version):
                return next(root for root in roots if root.version == version)
            case Refuse() as refusal:
                self._check_head()
                raise self.conflict(refusal)
            case Redo() as again:
                self._check_head()
                return again
        for root in roots:
            self._change = follow(self._change, root)
        return None

    def _token_brought_back(self, winners: list[Root]) -> Root | None:
        """The version with my token, when a rollback brought it back: no winner's delta shows that."""
        token = self._change.token
        if token is None or all(root.delta.restored is None for root in winners):
            return None
        found = Snapshot(self.revision.store, self.revision.keys, self.head).find_sources([token]).get(token)
        return None if found is None else self.revision.root(found.version)

    def _must_know_files(self) -> bool:
        """Whether the files that winners added matter: all were new, so their names only do for registered ones."""
        has_foreign = any(not is_own(file.location) for file in self._change.files)
        return self.transaction.reads.may_match is not None or has_foreign


def _has_other_types(head: Root, change: Change) -> bool:
    if change.definition is None or not head.tail:
        return False
    old, new = from_record(head.definition.schema).leaf_by_id, from_record(change.definition.schema).leaf_by_id
    return any(field in new and new[field].type != leaf.type for field, leaf in old.items())
