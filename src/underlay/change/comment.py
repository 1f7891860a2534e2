"""What people say about a table and its columns."""

from __future__ import annotations

from msgspec.structs import replace

from underlay.index.root import Root
from underlay.schema.record import from_record
from underlay.table.commit import commit
from underlay.table.opened import Head, OpenTable
from underlay.table.transaction import Transaction


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
        transaction = table.begin(Head(revision, base), "comment")
        transaction.set_definition(definition)
        return transaction

    return commit(prepare(head), redo=prepare)
