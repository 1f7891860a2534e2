"""Gives rows that a condition matches new values, computed from their current ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from underlay.change.update.condition import Condition, every_row, is_everything, query_of, reads_of
from underlay.change.update.edit import FileAccess, RowEdit, commit_edit
from underlay.change.update.placed_rows import blocks_with, rows_at
from underlay.change.update.result import Changed
from underlay.index.operation import Operation
from underlay.scan.positions import Positions, matched_rows
from underlay.scan.query import Query
from underlay.table.open_table import OpenTable
from underlay.table.versions.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """Makes whole new rows from some columns of the current ones, at least one."""

    columns: tuple[str, ...]
    make: Callable[[pa.Table], pa.Table]


def update(
    table: OpenTable,
    files: FileAccess,
    change_for: Callable[[Snapshot], RowChange],
    condition: Condition = every_row,
    *,
    token: str | None = None,
    dry_run: bool = False,
) -> Changed:
    """Change the rows for which the condition is true by the RowChange that `change_for` returns for their version.

    Starts over after commits that changed such rows meanwhile. Raises CommitUnknown (then call it again with the same
    token), SchemaMismatch for a value that does not fit, and what the condition and the values raise.
    """

    def prepare(edit: RowEdit) -> None:
        query = query_of(edit, condition)
        change = change_for(edit.snapshot)
        if is_everything(query):
            matched = edit.remove_all()
            rows = _all_rows(edit, replace(query, columns=change.columns))
        else:
            positions = _matching(edit, query)
            matched = sum(map(len, positions.values()))
            rows = (found.rows for found in rows_at(edit, positions, change.columns, query.plan))
        edit.finish((change.make(run) for run in rows if run.num_rows), reads=reads_of(query), updated=matched)

    return commit_edit(table, files, Operation.UPDATE, prepare, token=token, dry_run=dry_run)


def _all_rows(edit: RowEdit, query: Query) -> Iterator[pa.Table]:
    for found in matched_rows(query):
        edit.read(found)
        yield found.rows


def _matching(edit: RowEdit, query: Query) -> dict[str, Positions]:
    """Remove the rows that match; returns their positions by file."""
    found: dict[str, list[Positions]] = {}
    unread: dict[str, list[Positions]] = {}
    for some in matched_rows(query):
        edit.read(some)
        if len(some.positions):
            edit.remove(some.location, some.positions)
            found.setdefault(some.location, []).append(some.positions)
            if not some.block_count:  # all rows match: nothing was read to find them
                unread.setdefault(some.location, []).append(some.positions)
    edit.count_read(blocks=sum(map(len, blocks_with(edit, _joined(unread)).values())))
    return _joined(found)


def _joined(runs: dict[str, list[Positions]]) -> dict[str, Positions]:
    return {location: np.concatenate(some) for location, some in runs.items()}
