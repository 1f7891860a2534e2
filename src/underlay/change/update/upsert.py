"""Upserts rows: each replaces the row with the same key, or is added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from underlay.change.files.update_set import UpdateSet
from underlay.change.update.edit import FileAccess, RowEdit, commit_edit
from underlay.change.update.find_keys import FoundKeys, find_keys, may_hold_keys
from underlay.change.update.keys import KeySet, key_leaves
from underlay.change.update.result import Changed
from underlay.errors import SchemaMismatch
from underlay.index.operation import Operation
from underlay.prune.predicates.operand import format_column
from underlay.schema.cast.conform import conform
from underlay.schema.convert.stored_values import one_array
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.table.commit.conflicts import ReadSet
from underlay.table.open_table import OpenTable


def upsert(
    table: OpenTable,
    files: FileAccess,
    data: object,
    *,
    key: str | Sequence[str] | None = None,
    token: str | None = None,
    dry_run: bool = False,
) -> Changed:
    """Put the rows of `data` (see `rows.read_rows`) in place of those with the same key, and add the others.

    Columns that `data` lacks keep their values in replaced rows. Raises InvalidRequest for a key that is null or occurs
    twice, and when there is no key; SchemaMismatch, CommitConflict, CommitUnknown (then call it again with the same
    token).
    """
    source = UpdateSet(data)

    def prepare(edit: RowEdit) -> None:
        rows, is_of_table = source.of_version(edit.snapshot)
        schema = edit.snapshot.schema
        leaves = key_leaves(schema, edit.snapshot.definition, key)
        check_columns(rows, leaves)
        missing = tuple(name for name in schema.names if name not in rows.schema.names)
        new = conform(rows, _without_requirements(schema, missing))
        keys = KeySet(new, leaves)
        keys.check_distinct()
        is_known = np.zeros(new.num_rows, np.bool_)
        matched = 0
        kept: list[FoundKeys] = []
        for found in find_keys(edit, keys, missing):
            edit.remove(found.found.location, found.found.positions)
            is_known[found.key_rows] = True
            matched += len(found.key_rows)
            kept.append(found)
        if missing:
            new = _with_kept(new, missing, kept)
        reads = ReadSet(is_whole=is_of_table, may_match=may_hold_keys(schema, keys))
        edit.finish([new], reads=reads, matched=matched, updated=int(is_known.sum()))

    return commit_edit(table, files, Operation.UPSERT, prepare, token=token, dry_run=dry_run)


def check_columns(rows: pa.Table, leaves: Sequence[LeafColumn]) -> None:
    """Raise SchemaMismatch unless the rows have the columns of the key."""
    for leaf in leaves:
        if leaf.path[0] not in rows.schema.names:
            raise SchemaMismatch(
                f"the rows lack the key's column {format_column(leaf.path[:1])}",
                found=", ".join(rows.schema.names),
                hint="Add the column, or name another key.",
            )


def _without_requirements(schema: TableSchema, missing: Sequence[str]) -> TableSchema:
    """The schema in which these columns may be null: replaced rows supply their values."""
    fields = [replace(field, is_required=False) if field.name in missing else field for field in schema.fields]
    return replace(schema, fields=tuple(fields))


def _with_kept(new: pa.Table, names: Sequence[str], kept: Sequence[FoundKeys]) -> pa.Table:
    """The new rows with these columns of the rows that they replace."""
    found = [one for one in kept if len(one.key_rows)]
    if not found:
        return new
    old = pa.concat_tables([one.found.rows for one in found])
    key_rows = np.concatenate([one.key_rows for one in found])
    sources = np.arange(new.num_rows)
    sources[key_rows] = new.num_rows + np.arange(len(key_rows))
    for name in names:
        at = new.schema.get_field_index(name)
        both = pa.concat_arrays(
            [one_array(new.column(at)), one_array(old.column(name)).cast(new.schema.field(at).type)]
        )
        new = new.set_column(at, new.schema.field(at), both.take(pa.array(sources)))
    return new
