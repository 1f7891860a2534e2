"""New rows in place of all that a table has, in process and in one commit."""

from __future__ import annotations

from underlay.change.append import Appended, add_rows, begin_with_token, committed, find_token
from underlay.change.replace_all import replace_all
from underlay.change.rows import read_rows
from underlay.table.commit import commit
from underlay.table.opened import OpenTable


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
    transaction = begin_with_token(table, head, "overwrite", token)
    add_rows(transaction, rows)
    if not replace_all(transaction) and transaction.is_empty:
        return Appended(version=head.root.version, row_count=0, file_count=0)
    return committed(transaction, commit(transaction))
