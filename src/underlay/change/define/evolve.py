"""New columns of a table, which are null in the rows that there are.

What people say about a table and its columns.
"""

from __future__ import annotations

import pyarrow as pa
from msgspec.structs import replace

from underlay.index.operation import Operation
from underlay.index.root import Definition, Root
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.record import from_record, to_record
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.open_table import Head, OpenTable


def add_columns(table: OpenTable, columns: pa.Schema) -> Head:
    """A version with these columns after its others; those that it has already are left as they are.

    Raises SchemaMismatch for names that cannot be, Unsupported for types that tables do not have, RevisionClosed.
    """
    revision, root = table.head()

    def prepare(base: Root) -> Transaction:
        transaction = table.begin(Head(revision, base), Operation.ADD_COLUMNS)
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


def set_comment(table: OpenTable, text: str | None, column: str | None = None) -> Root:
    """A new version in which the table, or a column, has this comment. Raises UnknownColumn."""
    revision, head = table.head()

    def prepare(base: Root) -> Transaction:
        definition = base.definition
        if column is None:
            definition = replace(definition, comment=text)
        else:
            from_record(definition.schema).column(column)
            fields = tuple(
                replace(field, comment=text) if field.name == column else field for field in definition.schema.fields
            )
            definition = replace(definition, schema=replace(definition.schema, fields=fields))
        transaction = table.begin(Head(revision, base), Operation.COMMENT)
        transaction.set_definition(definition)
        return transaction

    return commit(prepare(head), redo=prepare)
