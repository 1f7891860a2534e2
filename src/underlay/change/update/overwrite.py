"""Replaces the rows that a condition matches, or all rows, by new ones, in this process and in one commit."""

from __future__ import annotations

from underlay.change.files.rows import read_rows
from underlay.change.update.condition import Condition, every_row, query_of, reads_of, remove_matching
from underlay.change.update.edit import FileAccess, RowEdit, commit_edit
from underlay.change.update.result import Changed
from underlay.index.operation import Operation
from underlay.table.open_table import OpenTable


def overwrite(
    table: OpenTable,
    files: FileAccess,
    data: object,
    condition: Condition = every_row,
    *,
    token: str | None = None,
) -> Changed:
    """Replace the rows for which the condition is true by those of `data` (see `rows.read_rows`), all or none.

    New rows need not match the condition. The rows to replace are those of the newest version at the call. Raises
    CommitConflict when a later commit added rows that may match, or changed some that do; SchemaMismatch,
    RevisionClosed, CommitUnknown (then call it again with the same token).
    """
    rows = read_rows(data, is_kept=True)  # a compaction that comes first must not make it fail

    def prepare(edit: RowEdit) -> None:
        query = query_of(edit, condition)
        remove_matching(edit, query)
        edit.finish(rows(), reads=reads_of(query))

    # Prepared again only after commits that merely rewrote rows: the caller decided about the rows that the table had,
    # not about those of a later commit.
    return commit_edit(table, files, Operation.OVERWRITE, prepare, token=token, base=table.head(), can_redo=False)
