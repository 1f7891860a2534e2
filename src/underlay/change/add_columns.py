"""New columns of a table, which are null in the rows that there are."""

from __future__ import annotations

import pyarrow as pa
from msgspec.structs import replace

from underlay.index.root import Definition, Root
from underlay.schema.arrow import from_arrow
from underlay.schema.record import to_record
from underlay.table.commit import commit
from underlay.table.opened import Head, OpenTable
from underlay.table.transaction import Transaction


def add_columns(table: OpenTable, columns: pa.Schema) -> Head:
    """A version with these columns after its others; those that it has already are left as they are.

    Raises SchemaMismatch for names that cannot be, Unsupported for types that tables do not have, RevisionClosed.
    """
    revision, root = table.head()

    def prepare(base: Root) -> Transaction:
        transaction = table.begin(Head(revision, base), "add columns")
        transaction.set_definition(_with_columns(base.definition, columns))
        return transaction

    if set(columns.names) <= {field.name for field in root.definition.schema.fields}:
        return Head(revision, root)
    return Head(revision, commit(prepare(root), redo=prepare))


def _with_columns(definition: Definition, columns: pa.Schema) -> Definition:
    known = definition.schema
    names = {field.name for field in known.fields}
    new = pa.schema([field.with_nullable(True) for field in columns if field.name not in names])
    numbered = to_record(from_arrow(new, first_id=known.last_id + 1))
    return replace(
        definition, schema=replace(known, fields=(*known.fields, *numbered.fields), last_id=numbered.last_id)
    )
