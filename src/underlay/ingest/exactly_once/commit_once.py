"""Commits rows together with records of their sources, so that repeating the commit adds nothing.

The records are read from the head that the commit is made for. If another commit with the same source comes first, the
conflict rule for sources refuses this one: it is prepared again on the new head, and the records are read again. So
what was read holds for the version that the commit follows, whatever else is committed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from underlay.change.files.add_files import add_files
from underlay.change.rows.append import Appended, appended
from underlay.change.rows.staged import Staged
from underlay.errors import RevisionClosed
from underlay.index.operation import Operation
from underlay.index.state import count_rows
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change
from underlay.table.open_table import Head, OpenTable


class Repeated(Exception):
    """The table has had this commit's content since that version. Never leaves this package."""

    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(version)


def commit_once(
    table: OpenTable, head: Head, operation: Operation, prepare: Callable[[Transaction, Head], None]
) -> Appended:
    """Commit what `prepare` puts into a transaction on `head`. After a conflict over sources, `prepare` is called again
    for a newer version.

    `prepare` raises Repeated when it finds everything done already. Raises what `prepare` and `commit` raise.
    """
    try:
        done = commit_change(
            table, operation, lambda change: prepare(change, Head(head.revision, change.base)), base=head
        )
    except Repeated as repeated:
        return Appended(version=repeated.version, row_count=0, file_count=0, is_repeat=True)
    except RevisionClosed as closed:
        closed.hint = "The files were written for a revision that is closed now. Redo the work."
        raise
    return appended(done)


def newest_base(table: OpenTable, staged_for: Head) -> Head:
    """The version on which to commit files that were written for an older one: the newest.

    If the table's definition changed since, it is the older one: the commit then checks against every later version
    whether the files still fit.
    """
    newest = table.head()
    is_alike = newest.revision.id == staged_for.revision.id and newest.root.definition == staged_for.root.definition
    return newest if is_alike else staged_for


def add_staged(transaction: Transaction, staged: Sequence[Staged]) -> None:
    """Add files that were staged in the store."""
    layouts = {layout.id: layout for one in staged for layout in one.layouts}
    add_files(transaction, [entry for one in staged for entry in one.entries], layouts.values())


def rows_of(staged: Iterable[Staged]) -> int:
    """The number of rows in staged files."""
    return sum(count_rows(entry) for one in staged for entry in one.entries)
