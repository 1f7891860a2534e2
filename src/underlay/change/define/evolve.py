"""Changes of what a table is: new columns, and comments."""

from __future__ import annotations

import pyarrow as pa
from msgspec.structs import replace

from underlay.index.operation import Operation
from underlay.index.root import Definition, Root
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.record import from_record, to_record
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change
from underlay.table.open_table import Head, OpenTable


def add_columns(table: OpenTable, columns: pa.Schema) -> Head:
    """A version with these columns after its others, null in the rows that there are. Known columns stay as they are.

    Raises SchemaMismatch for invalid names, Unsupported for types that tables do not have, RevisionClosed.
    """

    def prepare(transaction: Transaction) -> None:
        definition = transaction.base.definition
        if not set(columns.names) <= {field.name for field in definition.schema.fields}:
            transaction.set_definition(_with_columns(definition, columns))

    return commit_change(table, Operation.ADD_COLUMNS, prepare, base=table.head()).head


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

    def prepare(transaction: Transaction) -> None:
        definition = transaction.base.definition
        if column is None:
            transaction.set_definition(replace(definition, comment=text))
            return
        from_record(definition.schema).column(column)
        fields = tuple(
            replace(field, comment=text) if field.name == column else field for field in definition.schema.fields
        )
        transaction.set_definition(replace(definition, schema=replace(definition.schema, fields=fields)))

    return commit_change(table, Operation.COMMENT, prepare).head.root
