"""A commit of rows together with records of where they came from, so that repeating it adds nothing.

The records are looked at in the head that the commit is made for. The conflict rule for sources lets no commit pass
that another one with the same source overtook: it is prepared again on the new head, and the records are looked at
again. So what was seen holds for the version that is committed on, whatever else is committed meanwhile.
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
    """What was to be committed is in the table already, since this version. Never leaves this package."""

    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(version)


def commit_once(
    table: OpenTable, head: Head, operation: Operation, prepare: Callable[[Transaction, Head], None]
) -> Appended:
    """Commit what `prepare` puts into a transaction on `head`, and puts again into one on a newer version when the
    sources are looked at anew.

    `prepare` raises Repeated when it finds everything done. Raises what it raises, and what `commit` does.
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
    """The newest version, to commit files on that were written for an older one.

    It is the older one itself when the table's definition changed since: the commit then learns from all that came
    after whether the files still fit.
    """
    newest = table.head()
    is_alike = newest.revision.id == staged_for.revision.id and newest.root.definition == staged_for.root.definition
    return newest if is_alike else staged_for


def add_staged(transaction: Transaction, staged: Sequence[Staged]) -> None:
    """Add files that are in the store."""
    layouts = {layout.id: layout for one in staged for layout in one.layouts}
    add_files(transaction, [entry for one in staged for entry in one.entries], layouts.values())


def rows_of(staged: Iterable[Staged]) -> int:
    """The rows of staged files."""
    return sum(count_rows(entry) for one in staged for entry in one.entries)
