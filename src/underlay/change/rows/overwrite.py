"""New rows in place of all that a table has, in process and in one commit."""

from __future__ import annotations

import numpy as np

from underlay.change.files.rows import read_rows
from underlay.change.rows.append import Appended, add_rows, appended
from underlay.index.operation import Operation
from underlay.plan.part import Part
from underlay.table.commit.conflicts import ReadSet
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change
from underlay.table.open_table import OpenTable


def replace_all(transaction: Transaction) -> None:
    """Remove every file of the base, and rely on there being no other rows.

    A later commit that touched rows conflicts: its rows would be lost unseen, or would stay.
    """
    transaction.rely_on(ReadSet(is_whole=True))
    for part in transaction.snapshot.parts():
        for name in _names(part):
            transaction.remove_file(name)


def _names(part: Part) -> list[str]:
    """The files of a part that the snapshot has."""
    locations = part.segment.locations
    if part.is_removed is not None:
        locations = locations.take(np.flatnonzero(~part.is_removed))
    return [name for name in locations.to_pylist() if name is not None]


def overwrite(table: OpenTable, data: object, *, token: str | None = None) -> Appended:
    """Replace every row by those of `data` (see `rows.read_rows`). Older versions keep theirs.

    What is replaced is the newest version at the call. Raises CommitConflict when rows were added, changed or removed
    since, SchemaMismatch, RevisionClosed, CommitUnknown (then call it again with the same token).
    """
    rows = read_rows(data)

    def prepare(transaction: Transaction) -> None:
        add_rows(transaction, rows)
        replace_all(transaction)

    # Never prepared again: the caller decided for the rows that the table had, not for those of a later commit.
    done = commit_change(table, Operation.OVERWRITE, prepare, token=token, base=table.head(), can_redo=False)
    return appended(done)
