"""Deletes rows that an engine chose, or gives them the values that it computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from underlay.change.update.edit import FileAccess, RowEdit, commit_edit
from underlay.change.update.placed_rows import rows_at
from underlay.change.update.result import Changed
from underlay.index.operation import Operation
from underlay.plan.part import Numbers
from underlay.prune import Predicate
from underlay.scan.positions import Positions, file_may_match
from underlay.table.commit.conflicts import ReadSet
from underlay.table.open_table import OpenTable
from underlay.table.versions.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRows:
    """Rows of a version: positions by file, each once and ascending, and the number of each among the chosen rows.

    `predicate` is true for every row that the choice depends on; `reads_table` says that it depends on others too.
    """

    places: Mapping[str, tuple[Positions, Numbers]]
    predicate: Predicate
    reads_table: bool
    block_count: int
    fetch_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenValues:
    """What chosen rows become: whole rows, made from at least one of their columns and their numbers."""

    columns: tuple[str, ...]
    make: Callable[[pa.Table, Numbers], pa.Table]


Choose = Callable[[Snapshot, FileAccess], tuple[ChosenRows, ChosenValues | None]]
"""The rows of a version to change, and their new values; without values they are deleted."""


def change_chosen(
    table: OpenTable,
    files: FileAccess,
    choose: Choose,
    operation: Operation,
    *,
    then: Callable[[], object] | None = None,
    token: str | None = None,
    dry_run: bool = False,
) -> Changed:
    """Change the chosen rows of the newest version; they are chosen again when commits that matter came first.

    `then` is called just before the commit. With a token this is done once. Raises CommitUnknown, SchemaMismatch for a
    value that does not fit, and what `choose` and `then` raise.
    """

    def prepare(edit: RowEdit) -> None:
        chosen, values = choose(edit.snapshot, files)
        edit.count_read(blocks=chosen.block_count, fetched=chosen.fetch_bytes)
        for location, (positions, _) in chosen.places.items():
            edit.remove(location, positions)
        reads = ReadSet(is_whole=chosen.reads_table, may_match=file_may_match(edit.snapshot.schema, chosen.predicate))
        if values is None:
            edit.finish(reads=reads)
        else:
            count = sum(len(positions) for positions, _ in chosen.places.values())
            edit.finish(_changed(edit, chosen, values), reads=reads, updated=count)
        if then is not None:
            then()

    return commit_edit(table, files, operation, prepare, token=token, dry_run=dry_run)


def _changed(edit: RowEdit, chosen: ChosenRows, values: ChosenValues) -> Iterator[pa.Table]:
    positions = {location: found for location, (found, _) in chosen.places.items()}
    for found in rows_at(edit, positions, values.columns):
        _, numbers = chosen.places[found.location]
        if found.rows.num_rows:
            yield values.make(found.rows, numbers[found.places])
