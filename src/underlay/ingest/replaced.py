"""The old rows of sources that came again with other content: found by the column that names each row's source."""

from __future__ import annotations

from collections.abc import Collection

from underlay.errors import InvalidRequest
from underlay.prune.build import col
from underlay.scan.locate import FileStores
from underlay.scan.positions import file_may_match, row_positions
from underlay.scan.scan import Query
from underlay.table.conflicts import ReadSet
from underlay.table.opened import Head
from underlay.table.transaction import Transaction

SOURCE_COLUMN = "_source"
"""The column of a table that holds the uri of the source that a row came from."""


def check_replaceable(head: Head, uris: Collection[str]) -> None:
    """Raise InvalidRequest when rows of these sources would have to be replaced, and nobody can find them."""
    names = {field.name for field in head.root.definition.schema.fields}
    if uris and SOURCE_COLUMN not in names:
        raise InvalidRequest(
            f"the rows of {min(uris)} cannot be replaced: nothing says which they are",
            place=head.revision.place,
            expected=f"a column {SOURCE_COLUMN}",
            hint=f"A table that is created with the column {SOURCE_COLUMN} string can have sources replaced; or choose "
            "skip.",
        )


def delete_rows_of(transaction: Transaction, column: str, uris: Collection[str], stores: FileStores) -> int:
    """Delete the rows of the base whose `column` is one of these uris, and rely on there being no others; how many.

    Reads that column of the blocks that may hold one.
    """
    if not uris:
        return 0
    snapshot = transaction.snapshot
    predicate = col(column).is_in(sorted(uris))
    query = Query(snapshot=snapshot, columns=(), stores=stores, predicate=predicate)
    count = 0
    for location, positions in row_positions(query):
        transaction.delete_rows(location, positions.tolist())
        count += len(positions)
    transaction.rely_on(ReadSet(may_match=file_may_match(snapshot.schema, predicate)))
    return count
