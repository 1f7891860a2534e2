"""New rows in place of all that a table has, in process and in one commit.

All that a version consists of taken out of the table, for what comes in its place.
"""

from __future__ import annotations

import numpy as np

from underlay.change.files.rows import read_rows
from underlay.change.rows.append import Appended, add_rows, begin_with_token, committed, find_token
from underlay.index.operation import Operation
from underlay.plan.part import Part
from underlay.table.commit.commit import commit
from underlay.table.commit.conflicts import ReadSet
from underlay.table.commit.transaction import Transaction
from underlay.table.open_table import OpenTable


def replace_all(transaction: Transaction) -> bool:
    """Remove every file of the base, and rely on there being no other rows; whether there was a file.

    A commit that touched rows since then conflicts: its rows would go unseen, or stay.
    """
    transaction.rely_on(ReadSet(is_whole=True))
    names = [name for part in transaction.snapshot.parts() for name in _names(part)]
    for name in names:
        transaction.remove_file(name)
    return bool(names)


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
    head = table.head()
    known = find_token(table, head, token)
    if known is not None:
        return known
    transaction = begin_with_token(table, head, Operation.OVERWRITE, token)
    add_rows(transaction, rows)
    if not replace_all(transaction) and transaction.is_empty:
        return Appended(version=head.root.version, row_count=0, file_count=0)
    return committed(transaction, commit(transaction))
