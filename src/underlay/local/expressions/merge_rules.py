"""Applies a merge to rows: which clause applies to a row of the table or of the source, and the resulting rows.

DuckDB joins rows of the table with the source by the condition, and determines the first clause that holds for each
pair. It returns only row numbers; values are computed later, for the rows that change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.change.update.find_keys import ColumnValues
from underlay.change.update.merge import Decided
from underlay.errors import InvalidRequest, UnderlayError
from underlay.local.conditions.shared_engine import connected
from underlay.local.expressions.merge_pruning import implied_for_rows, key_values
from underlay.local.expressions.merge_statement import (
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    SOURCE,
    TARGET,
    BoundClause,
    BoundMerge,
)
from underlay.local.expressions.row_names import name_row
from underlay.local.expressions.scope import Scope
from underlay.local.expressions.texts import SqlText, are_rewritten_right
from underlay.prune import FALSE, TRUE, Predicate
from underlay.prune.predicates.normalise import normalise
from underlay.prune.predicates.predicate import And, Or
from underlay.runtime.locks import cached_property
from underlay.schema.cast.conform import RowName

Numbers = NDArray[np.int64]
_BATCH_ROWS = 1 << 16
_INSERTED_ROWS = 1 << 18
"""Values are computed for this many source rows at a time."""


class DuckDbRules:
    """What a merge does to rows of one version, given all rows of the source. Valid for one attempt."""

    def __init__(self, bound: BoundMerge, source: pa.Table, key: Sequence[str]) -> None:
        self._bound = bound
        self._source = source
        self._key = tuple(key)
        self._is_source_matched = np.zeros(source.num_rows, np.bool_)
        self._condition = bound.pairs.exact(bound.condition)
        self._matched = bound.of(MATCHED)
        self._unmatched = bound.of(NOT_MATCHED_BY_SOURCE)
        self.is_delete = np.array([False, *(one.kind.is_delete for one in bound.clauses)])
        self.source_rows = source.num_rows
        self.source_bytes = source.nbytes

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that determine which clause applies."""
        bound = self._bound
        pairs = bound.pairs.read_columns([self._condition, *_predicates(bound.pairs, self._matched)])[TARGET]
        alone = bound.target.read_columns(_predicates(bound.target, self._unmatched))[TARGET]
        named = tuple(dict.fromkeys((*pairs, *alone, *self._key)))
        return named or (self._bound.target.sides[TARGET].schema.names[0],)  # rows without a column have no number

    @cached_property
    def keys(self) -> Sequence[ColumnValues]:
        """Columns and the values that every relevant row has in them; empty when rows without a match are relevant
        too.
        """
        return () if self._unmatched else self._keys

    @cached_property
    def _keys(self) -> list[ColumnValues]:
        return key_values(self._bound, self._source) if self._source.num_rows else []

    @cached_property
    def predicate(self) -> Predicate:
        """A predicate that is true for every row of the table that a clause may apply to, or that the source may
        match.
        """
        of_pairs: Predicate = FALSE
        if self._source.num_rows:
            keys = (one.predicate for one in self._keys)
            of_pairs = normalise(And((implied_for_rows(self._bound.pairs, self._bound.condition), *keys)))
        if not self._unmatched:
            return of_pairs
        alone = (
            TRUE if one.predicate is None else implied_for_rows(self._bound.target, one.predicate)
            for _, one in self._unmatched
        )
        return normalise(Or((of_pairs, *alone)))

    @cached_property
    def update_columns(self) -> tuple[str, ...]:
        """The columns of updated rows that are needed to compute their new values."""
        every = self._bound.schema.names
        updates = [one for one in self._bound.clauses if one.assignments is not None and one.kind not in NOT_MATCHED]
        needed = {name for one in updates if one.assignments is not None for name in one.assignments.needed()}
        if any(one.kind in NOT_MATCHED_BY_SOURCE for one in updates):
            needed.add(every[0])  # no row of the source is beside them to count by
        if needed:
            needed.update(self._key)  # errors name rows by these
        return tuple(name for name in every if name in needed)

    def decide(self, rows: pa.Table) -> Decided:
        """Which clause applies to each of these rows of the table, and with which row of the source.

        Raises InvalidRequest when more than one row of the source would change a row, unless all delete it.
        """
        found = Decided(
            clauses=np.zeros(rows.num_rows, np.int64),
            sources=np.full(rows.num_rows, -1, np.int64),
            is_matched=np.zeros(rows.num_rows, np.bool_),
        )
        if self._source.num_rows and rows.num_rows:
            for targets, sources, clauses in self._pairs(rows):
                found.is_matched[targets] = True
                self._is_source_matched[sources] = True
                chosen = clauses > 0
                self._claim(found, targets[chosen], sources[chosen], clauses[chosen], rows)
        if self._unmatched:
            alone = np.flatnonzero(~found.is_matched)
            found.clauses[alone] = self._chosen(self._bound.target, self._unmatched, rows.take(alone))
        return found

    def updated(self, rows: pa.Table, clauses: Numbers, sources: Numbers) -> Iterator[pa.Table]:
        """The new rows for rows with `update_columns`, given the decision for each. Raises SchemaMismatch."""
        for number, clause in enumerate(self._bound.clauses, 1):
            at = np.flatnonzero(clauses == number)
            if clause.assignments is None or not len(at):
                continue
            chosen = rows
            name: RowName = partial(_source_row, sources[at])
            if rows.num_columns:
                chosen = rows.take(at)
                name = name_row(chosen, self._key or self.columns)
            sides = [chosen, self._source.take(sources[at])] if clause.kind in MATCHED else [chosen]
            yield clause.assignments.apply(sides, chosen, len(at), name)

    def inserted(self) -> Iterator[pa.Table]:
        """The new rows for rows of the source without a match. Raises SchemaMismatch."""
        clauses = self._bound.of(NOT_MATCHED)
        if not clauses:
            return
        left = np.flatnonzero(~self._is_source_matched)
        for begin in range(0, len(left), _INSERTED_ROWS):
            numbers = left[begin : begin + _INSERTED_ROWS]
            rows = self._source.take(numbers)
            chosen = self._chosen(self._bound.source, clauses, rows)
            for number, clause in clauses:
                at = np.flatnonzero(chosen == number)
                if clause.assignments is not None and len(at):
                    yield clause.assignments.apply([rows.take(at)], None, len(at), partial(_source_row, numbers[at]))

    def _pairs(self, rows: pa.Table) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
        """Pairs of table and source rows for which the condition is true, and the clause that applies to each pair."""
        scope, condition = self._bound.pairs, self._condition
        texts = [condition, *_predicates(scope, self._matched)]
        query = (
            f"SELECT {scope.number_of(TARGET)}, {scope.number_of(SOURCE)}, {_case(scope, self._matched)}"
            f" FROM {scope.table(TARGET)} JOIN {scope.table(SOURCE)} ON (\n{condition.text}\n)"
        )
        try:
            with connected(is_pushing=False, is_rewriting=are_rewritten_right(texts)) as connection:
                scope.register(connection, texts, [rows, self._source], with_row_numbers=True)
                for batch in connection.execute(query, scope.given_for(texts)).to_arrow_reader(_BATCH_ROWS):
                    targets, sources, clauses = (np.asarray(column, np.int64) for column in batch.columns)
                    yield targets, sources, clauses
        except UnderlayError as error:
            raise scope.explained(error, condition if len(texts) == 1 else None) from error.__cause__

    def _chosen(self, scope: Scope, clauses: Sequence[tuple[int, BoundClause]], rows: pa.Table) -> Numbers:
        """The clause that holds first for each row of one side; 0 for none."""
        if not rows.num_rows or not clauses:
            return np.zeros(rows.num_rows, np.int64)
        (found,) = scope.values(_predicates(scope, clauses), [_case(scope, clauses)], [rows])
        return np.asarray(found, np.int64)

    def _claim(self, found: Decided, targets: Numbers, sources: Numbers, clauses: Numbers, rows: pa.Table) -> None:
        """Record the clause of each pair. A row that has one already may only be deleted again."""
        if not len(targets):
            return
        _, firsts = np.unique(targets, return_index=True)
        is_new = np.zeros(len(targets), np.bool_)
        is_new[firsts] = found.clauses[targets[firsts]] == 0
        found.clauses[targets[is_new]] = clauses[is_new]
        found.sources[targets[is_new]] = sources[is_new]
        again = targets[~is_new]
        if len(again) and not (self.is_delete[clauses[~is_new]] & self.is_delete[found.clauses[again]]).all():
            both = self.is_delete[clauses[~is_new]] & self.is_delete[found.clauses[again]]
            at = int(np.flatnonzero(~both)[0])
            raise self._doubled(int(again[at]), int(found.sources[again[at]]), int(sources[~is_new][at]), rows)

    def _doubled(self, row: int, first: int, second: int, rows: pa.Table) -> InvalidRequest:
        shown = name_row(rows, self._key or self.columns)(row)
        return InvalidRequest(
            f"{shown} matches more than one row of the source",
            place="the condition",
            found=f"rows {min(first, second)} and {max(first, second)} of the source",
            hint="Leave one row for each in the source, or add a predicate that holds for one of them.",
        )


def _source_row(numbers: Numbers, row: int) -> str:
    return f"row {numbers[row]} of the source"


def _predicates(scope: Scope, clauses: Sequence[tuple[int, BoundClause]]) -> list[SqlText]:
    return [scope.exact(one.predicate) for _, one in clauses if one.predicate is not None]


def _case(scope: Scope, clauses: Sequence[tuple[int, BoundClause]]) -> str:
    """The number of the first clause that holds, 0 for none."""
    texts = ((number, one.predicate and scope.exact(one.predicate)) for number, one in clauses)
    parts = [f"WHEN {f'({chr(10)}{one.text}{chr(10)})' if one else 'true'} THEN {number}" for number, one in texts]
    return f"CASE {' '.join(parts)} ELSE 0 END" if parts else "0"
