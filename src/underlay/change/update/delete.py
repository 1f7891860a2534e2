"""Rows deleted by a condition, or all of them."""

from __future__ import annotations

from underlay.change.update.condition import Condition, every_row, query_of, reads_of, remove_matching
from underlay.change.update.edit import FileAccess, RowEdit, commit_edit
from underlay.change.update.result import Changed
from underlay.index.operation import Operation
from underlay.table.open_table import OpenTable


def delete(
    table: OpenTable,
    files: FileAccess,
    condition: Condition = every_row,
    *,
    token: str | None = None,
    dry_run: bool = False,
    operation: Operation = Operation.DELETE,
) -> Changed:
    """Delete the rows for which the condition is true: not those for which it is null.

    Rows that other commits added meanwhile are matched as well. Raises CommitConflict, CommitUnknown (then call it
    again with the same token), and what the condition raises.
    """

    def prepare(edit: RowEdit) -> None:
        query = query_of(edit, condition)
        remove_matching(edit, query)
        edit.finish(reads=reads_of(query))

    return commit_edit(table, files, operation, prepare, token=token, dry_run=dry_run)


def truncate(table: OpenTable, files: FileAccess, *, token: str | None = None) -> Changed:
    """Delete all rows. Reads no file."""
    return delete(table, files, token=token, operation=Operation.TRUNCATE)
