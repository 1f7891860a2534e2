"""Deletes the old rows of changed sources, found by the column that holds each row's source."""

from __future__ import annotations

from collections.abc import Collection

from underlay.errors import InvalidRequest
from underlay.prune.predicates.column import col
from underlay.scan.positions import file_may_match, row_positions
from underlay.scan.query import Query
from underlay.scan.read.file_stores import FileStores
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar, TypeKind
from underlay.table.commit.conflicts import ReadSet
from underlay.table.commit.transaction import Transaction
from underlay.table.open_table import Head

SOURCE_COLUMN = "_source"
"""The column with the URI of each row's source."""


def source_column(schema: TableSchema) -> str | None:
    """The name of that column, if the table has it; a column with this name but another type belongs to the user."""
    has_it = any(field.name == SOURCE_COLUMN and field.type == Scalar(TypeKind.STRING) for field in schema.fields)
    return SOURCE_COLUMN if has_it else None


def check_replaceable(head: Head, uris: Collection[str]) -> None:
    """Raise InvalidRequest when rows of these sources must be replaced, but the table cannot tell which rows they
    are.
    """
    if uris and source_column(from_record(head.root.definition.schema)) is None:
        raise InvalidRequest(
            f"the rows of {min(uris)} cannot be replaced: the table does not record which source a row came from",
            place=head.revision.place,
            expected=f"a column {SOURCE_COLUMN} string",
            hint=f"Create the table with the column {SOURCE_COLUMN} string (--source-column), or leave the old rows:"
            " --changed skip, no --again.",
        )


def delete_rows_of(transaction: Transaction, column: str, uris: Collection[str], stores: FileStores) -> int:
    """Delete the base version's rows whose `column` is one of these uris. The commit then conflicts with others that
    add such rows. Returns how many were deleted.

    Reads that column of the blocks that may hold one.
    """
    if not uris:
        return 0
    snapshot = transaction.snapshot
    predicate = col(column).is_in(sorted(uris))
    query = Query(snapshot=snapshot, columns=(), stores=stores, predicate=predicate)
    count = 0
    for location, positions in row_positions(query):
        transaction.delete_rows(location, positions)
        count += len(positions)
    transaction.rely_on(ReadSet(may_match=file_may_match(snapshot.schema, predicate)))
    return count
