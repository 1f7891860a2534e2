"""The life of a table: it is created, replaced by another revision, dropped: R7 (docs/commit-rules.md).

A revision ends with a terminal root, which names the catalog entry to come; then that entry is written. A process that
finds a terminal root without its entry writes the entry, so a crash between the two does no harm.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from underlay.errors import CommitUnknown, InvalidRequest, RevisionClosed, TableNotFound, Unavailable
from underlay.index.catalog import check_free, find_table
from underlay.index.operation import Operation
from underlay.index.root import Definition, Root, Terminal
from underlay.table.catalog.changes import activate_revision, create_table, drop_table, free_folder
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.commit.commit import commit
from underlay.table.commit.conflicts import ReadSet
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.revision import Revision, create_revision

_HOPS = 100
"""Revisions that may take over from each other while a table is opened."""


def create(
    lake: LakeCatalog, name: str, definition: Definition, fill: Callable[[Revision], None] | None = None
) -> Revision:
    """A new table without rows, or with those that `fill` adds before the catalog names it. Raises TableExists.

    A crash, or what `fill` raises, leaves at most an unreferenced revision.
    """
    catalog = lake.catalog()
    check_free(catalog, name)
    # A dropped table keeps its folder until it is swept; a new one of the same name must not share it.
    folder = free_folder(catalog, name, os.urandom(3).hex())
    # The revision first: an entry must never name one that does not exist. `create_table` checks the name again.
    revision = create_revision(lake.store, folder, definition, lake.surroundings)
    if fill is not None:
        fill(revision)
    lake.change(create_table(name, folder, revision.id, lake.surroundings.now_us()))
    return revision


def prepare_successor(lake: LakeCatalog, name: str, definition: Definition) -> Revision:
    """A new revision of a table, to be filled and then activated. No catalog entry names it yet."""
    folder = find_table(lake.catalog(), name).folder
    return create_revision(lake.store, folder, definition, lake.surroundings)


def open_active(lake: LakeCatalog, name: str, max_staleness_seconds: float = 0.0) -> Revision:
    """The active revision of a table, after finishing what another process began. Raises TableNotFound."""
    for _ in range(_HOPS):
        record = find_table(lake.catalog(max_staleness_seconds), name)
        revision = Revision(lake.store, record.folder, record.active, lake.surroundings)
        head = revision.head()
        if head.terminal is None:
            return revision
        # Another process closed the revision and has not written the entry yet, or never will: we write it.
        finish(lake, revision, head)
        max_staleness_seconds = 0.0
    raise TableNotFound(f"the revisions of {name} do not lead to an active one")


def activate(lake: LakeCatalog, name: str, old: Revision, base: Root, successor: Revision) -> None:
    """Make `successor`, which was made from the version `base` of `old`, the active revision.

    Raises CommitConflict when `old` changed since, RevisionClosed when another process closed it.
    """
    transaction = Transaction(old, base, Operation.ACTIVATE)
    # The successor holds only the rows of `base`: a commit since then would be lost with the old revision.
    transaction.rely_on(ReadSet(is_whole=True))
    transaction.close(_terminal(lake, name, "activate", successor.id))
    _finish_own(lake, old, commit(transaction))


def drop(lake: LakeCatalog, name: str) -> None:
    """Drop the table. Its folder stays until it is swept. Raises TableNotFound."""
    while True:
        revision = open_active(lake, name)
        transaction = Transaction(revision, revision.head(), Operation.DROP)
        transaction.close(_terminal(lake, name, "drop", None))
        try:
            closed = commit(transaction)
        except RevisionClosed:
            continue  # another revision took over: that one is the table to drop
        return _finish_own(lake, revision, closed)


def finish(lake: LakeCatalog, revision: Revision, closed: Root) -> None:
    """Write the catalog entry that the terminal root `closed` names, unless it exists."""
    terminal = closed.terminal
    if terminal is None:
        raise InvalidRequest("the revision is not closed", place=revision.place)
    if terminal.successor is not None:
        change = activate_revision(revision.table_folder, revision.id, terminal.successor, closed.committed_us)
    else:
        change = drop_table(revision.table_folder, revision.id, closed.committed_us)
    # The id is in the terminal root: all processes that finish this revision write the same entry, and one lands.
    lake.change(change, commit_id=terminal.commit_id)


def _finish_own(lake: LakeCatalog, revision: Revision, closed: Root) -> None:
    """Write the entry of a revision that this process closed. The terminal root cannot be taken back, so an error is
    CommitUnknown, and the caller must not do it again."""
    try:
        finish(lake, revision, closed)
    except Unavailable as error:
        entry_id = closed.terminal.commit_id if closed.terminal is not None else closed.commit_id
        raise CommitUnknown(
            f"the revision is closed, but the catalog entry could not be written ({error.place}: {error.problem})",
            place=revision.place,
            hint="The next process that opens the table writes it.",
        ).of(entry_id) from error


def _terminal(lake: LakeCatalog, name: str, reason: str, successor: str | None) -> Terminal:
    return Terminal(reason=reason, table=name, successor=successor, commit_id=lake.surroundings.new_commit_id())
