"""A merge: rows of a source decide which rows of the table are updated, deleted and inserted.

First it reads the columns that decide, from blocks that may matter, and joins them with the source, a group of rows at
a time; then the other columns, from blocks that have a row to update. Of the rows that change it keeps only positions
and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.change.update.condition import reads_of
from underlay.change.update.edit import FileAccess, RowEdit, commit_edit
from underlay.change.update.find_keys import ColumnValues, blocks_with_values, may_hold_values
from underlay.change.update.placed_rows import rows_at
from underlay.change.update.result import Changed
from underlay.index.operation import Operation
from underlay.plan.part import BoolArray, Numbers
from underlay.prune import FALSE, Predicate
from underlay.scan.positions import MatchedRows, Positions, file_may_match, matched_rows
from underlay.scan.query import Query
from underlay.table.commit.conflicts import ReadSet
from underlay.table.open_table import OpenTable
from underlay.table.versions.snapshot import Snapshot

GROUP_ROWS = 1 << 18
"""Rows of the table that are joined with the source together, or as many as the source has."""
GROUP_BYTES = 128 << 20
"""Bytes of their columns, or as many as the source has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """For each of some rows: the clause that applies, 0 for none, and the row of the source to apply it with."""

    clauses: NDArray[np.int64]
    sources: NDArray[np.int64]
    is_matched: NDArray[np.bool_]


class MergeRules(Protocol):
    """What a merge does with the rows of one version, given all rows of a source."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that decide which clause applies; at least one."""

    @property
    def predicate(self) -> Predicate:
        """True for every row of the table that a clause may apply to, or that the source may match."""

    @property
    def keys(self) -> Sequence[ColumnValues]:
        """Columns, each with values of which every such row has one, in addition to the predicate."""

    @property
    def is_delete(self) -> BoolArray:
        """Which clauses delete, by their numbers from 1."""

    @property
    def source_rows(self) -> int:
        """The number of rows in the source."""

    @property
    def source_bytes(self) -> int:
        """How much memory the source takes."""

    def decide(self, rows: pa.Table) -> Decided:
        """Which clause applies to each of some rows. No row is passed twice. Raises InvalidRequest."""

    @property
    def update_columns(self) -> tuple[str, ...]:
        """The columns of updated rows that their new values depend on; there may be none."""

    def updated(self, rows: pa.Table, clauses: Numbers, sources: Numbers) -> Iterator[pa.Table]:
        """The new rows for rows with these columns, given what was decided for each. Raises SchemaMismatch."""

    def inserted(self) -> Iterator[pa.Table]:
        """The new rows for rows of the source without a match. Called after all decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Updates:
    """Rows of one file to update, ascending by position."""

    positions: Positions
    clauses: Numbers
    sources: Numbers


def merge(
    table: OpenTable,
    files: FileAccess,
    rules_for: Callable[[Snapshot], MergeRules],
    *,
    reads_table: bool = False,
    token: str | None = None,
    dry_run: bool = False,
) -> Changed:
    """Apply the rules to the newest version, and again after commits that changed rows that matter meanwhile.

    `reads_table`: the source consists of rows of the same table, and changes with it. Raises CommitUnknown (then call
    it again with the same token), and what the rules raise.
    """

    def prepare(edit: RowEdit) -> None:
        rules = rules_for(edit.snapshot)
        query = Query(
            snapshot=edit.snapshot,
            columns=rules.columns,
            stores=edit.files.stores,
            cache=edit.files.cache,
            predicate=rules.predicate,
        )
        matched, updates = (0, {}) if query.predicate == FALSE else _decide(edit, query, rules)
        updated = sum(len(one.positions) for one in updates.values())
        rows = _coming(edit, rules, updates, query)
        reads = ReadSet(is_whole=True) if reads_table else _reads(query, rules)
        edit.finish(rows, reads=reads, matched=matched, updated=updated)

    return commit_edit(table, files, Operation.MERGE, prepare, token=token, dry_run=dry_run)


def _reads(query: Query, rules: MergeRules) -> ReadSet:
    """What the choice of rows depends on: that no new file may have other rows that matter."""
    if not rules.keys:
        return reads_of(query)
    may_hold = may_hold_values(query.table_schema, rules.keys)
    may_match = file_may_match(query.table_schema, query.predicate)
    return ReadSet(may_match=lambda file: may_hold(file) and may_match(file))


def _decide(edit: RowEdit, query: Query, rules: MergeRules) -> tuple[int, dict[str, _Updates]]:
    """Delete the rows to delete or update; returns how many rows matched, and which to update."""
    matched = 0
    found: dict[str, list[_Updates]] = {}
    for group in _groups(edit, query, rules):
        decided = rules.decide(pa.concat_tables([one.rows for one in group]))
        matched += int(decided.is_matched.sum())
        begin = 0
        for one in group:
            end = begin + len(one.positions)
            clauses, sources = decided.clauses[begin:end], decided.sources[begin:end]
            begin = end
            is_gone = clauses > 0
            if not is_gone.any():
                continue
            edit.remove(one.location, one.positions[is_gone])
            stays = is_gone & ~rules.is_delete[clauses]
            if stays.any():
                kept = _Updates(positions=one.positions[stays], clauses=clauses[stays], sources=sources[stays])
                found.setdefault(one.location, []).append(kept)
    return matched, {location: _joined(runs) for location, runs in found.items()}


def _groups(edit: RowEdit, query: Query, rules: MergeRules) -> Iterator[list[MatchedRows]]:
    """The rows that may matter, in groups large enough that joining one with the source takes longer than reading the
    source."""
    most_rows, most_bytes = max(GROUP_ROWS, rules.source_rows), max(GROUP_BYTES, rules.source_bytes)
    slabs = query.slabs(query.plan.narrowed(blocks_with_values(rules.keys))) if rules.keys else None
    group: list[MatchedRows] = []
    count = size = 0
    for some in matched_rows(query, slabs):
        edit.read(some)
        if not len(some.positions):
            continue
        if group and (count + len(some.positions) > most_rows or size + some.rows.nbytes > most_bytes):
            yield group
            group, count, size = [], 0, 0
        group.append(some)
        count += len(some.positions)
        size += some.rows.nbytes
    if group:
        yield group


def _joined(runs: Sequence[_Updates]) -> _Updates:
    return _Updates(
        positions=np.concatenate([one.positions for one in runs]),
        clauses=np.concatenate([one.clauses for one in runs]),
        sources=np.concatenate([one.sources for one in runs]),
    )


def _coming(edit: RowEdit, rules: MergeRules, updates: dict[str, _Updates], query: Query) -> Iterator[pa.Table]:
    if rules.update_columns and updates:
        positions = {location: one.positions for location, one in updates.items()}
        for found in rows_at(edit, positions, rules.update_columns, query.plan):
            of_file = updates[found.location]
            yield from rules.updated(found.rows, of_file.clauses[found.places], of_file.sources[found.places])
    else:
        for of_file in updates.values():
            yield from rules.updated(pa.table({}), of_file.clauses, of_file.sources)
    yield from rules.inserted()
