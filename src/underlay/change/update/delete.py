"""Deletes rows by a condition or by their keys, or all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from underlay.change.files.update_set import UpdateSet
from underlay.change.update.condition import Condition, every_row, query_of, reads_of, remove_matching
from underlay.change.update.edit import FileAccess, RowEdit, commit_edit
from underlay.change.update.find_keys import find_keys, may_hold_keys
from underlay.change.update.keys import KeySet, key_leaves
from underlay.change.update.result import Changed
from underlay.change.update.upsert import check_columns
from underlay.index.operation import Operation
from underlay.schema.cast.conform import conform
from underlay.table.commit.conflicts import ReadSet
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

    Rows that other commits add meanwhile are matched as well. Raises CommitConflict, CommitUnknown (then call it again
    with the same token), and what the condition raises.
    """

    def prepare(edit: RowEdit) -> None:
        query = query_of(edit, condition)
        remove_matching(edit, query)
        edit.finish(reads=reads_of(query))

    return commit_edit(table, files, operation, prepare, token=token, dry_run=dry_run)


def delete_keys(
    table: OpenTable,
    files: FileAccess,
    data: object,
    *,
    key: str | Sequence[str] | None = None,
    token: str | None = None,
    dry_run: bool = False,
) -> Changed:
    """Delete the rows with the key of a row of `data` (see `rows.read_rows`), which may have other columns too.

    A key may occur twice in `data`, and a null key matches nothing. Raises as `upsert` does.
    """
    source = UpdateSet(data)

    def prepare(edit: RowEdit) -> None:
        rows, is_of_table = source.of_version(edit.snapshot)
        schema = edit.snapshot.schema
        leaves = key_leaves(schema, edit.snapshot.definition, key)
        check_columns(rows, leaves)
        named = {leaf.path[0] for leaf in leaves}
        fields = tuple(replace(field, is_required=False) for field in schema.fields if field.name in named)
        keys = KeySet(conform(rows.select(sorted(named)), replace(schema, fields=fields)), leaves)
        for found in find_keys(edit, keys):
            edit.remove(found.found.location, found.found.positions)
        edit.finish(reads=ReadSet(is_whole=is_of_table, may_match=may_hold_keys(schema, keys)))

    return commit_edit(table, files, Operation.DELETE, prepare, token=token, dry_run=dry_run)


def truncate(table: OpenTable, files: FileAccess, *, token: str | None = None) -> Changed:
    """Delete all rows. Reads no file."""
    return delete(table, files, token=token, operation=Operation.TRUNCATE)
