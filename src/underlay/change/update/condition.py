"""Finds the rows that a condition matches, by its columns, and removes them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.compute as pc

from underlay.change.update.edit import RowEdit
from underlay.prune import TRUE, Predicate
from underlay.scan.positions import file_may_match, matched_rows
from underlay.scan.query import Query, RestFilter
from underlay.table.commit.conflicts import ReadSet
from underlay.table.versions.snapshot import Snapshot

Condition = Callable[[Snapshot], tuple[Predicate, pc.Expression | RestFilter | None, tuple[str, ...]]]
"""The condition on a version's rows: its predicate for the planner, the rest that only an engine can apply, and the
columns of the rest. Called for each version, since columns may change names and types.
"""


def every_row(_: Snapshot) -> tuple[Predicate, None, tuple[str, ...]]:
    """The condition that is true for all rows."""
    return TRUE, None, ()


def query_of(edit: RowEdit, condition: Condition, columns: tuple[str, ...] = ()) -> Query:
    """The rows of the edited version that match, with these columns."""
    predicate, rest, rest_columns = condition(edit.snapshot)
    return Query(
        snapshot=edit.snapshot,
        columns=columns,
        stores=edit.files.stores,
        cache=edit.files.cache,
        predicate=predicate,
        rest=rest,
        rest_columns=rest_columns,
    )


def reads_of(query: Query) -> ReadSet:
    """What the choice of these rows depends on: all of the table, or files that may hold matching rows."""
    if is_everything(query):
        return ReadSet(is_whole=True)
    return ReadSet(may_match=file_may_match(query.table_schema, query.predicate))


def remove_matching(edit: RowEdit, query: Query) -> int:
    """Remove the rows that match, and return their number. Reads no file when all do."""
    if is_everything(query):
        return edit.remove_all()
    matched = 0
    for found in matched_rows(query):
        edit.read(found)
        edit.remove(found.location, found.positions)
        matched += len(found.positions)
    return matched


def is_everything(query: Query) -> bool:
    """Whether all rows match."""
    return query.predicate == TRUE and query.rest is None
