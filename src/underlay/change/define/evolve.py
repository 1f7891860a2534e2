"""Changes of what a table is: new columns, and comments."""

from __future__ import annotations

import pyarrow as pa
from msgspec.structs import replace

from underlay.index.operation import Operation
from underlay.index.root import Root
from underlay.schema.convert.new_fields import lacking, with_new_fields
from underlay.schema.record import from_record, to_record
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change
from underlay.table.open_table import Head, OpenTable


def add_columns(table: OpenTable, columns: pa.Schema) -> Head:
    """A version with these columns after its others, and with the fields of known columns that these lack, null in the
    rows that there are. Known columns and fields stay as they are.

    Raises SchemaMismatch for invalid names, Unsupported for types that tables do not have, RevisionClosed.
    """

    def prepare(transaction: Transaction) -> None:
        definition = transaction.base.definition
        known = from_record(definition.schema)
        if len(lacking(columns, known)):
            schema = to_record(with_new_fields(known, columns))
            transaction.set_definition(replace(definition, schema=schema))

    return commit_change(table, Operation.ADD_COLUMNS, prepare, base=table.head()).head


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
