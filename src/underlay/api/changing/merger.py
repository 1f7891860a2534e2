"""Builds and executes a merge. Clauses have the names and meanings that they have in delta-rs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from underlay.change.files.rows import read_rows
from underlay.change.files.update_set import RowsOfVersion, TableRows, or_no_rows_of
from underlay.change.update import merge as merging
from underlay.change.update.edit import FileAccess
from underlay.change.update.result import Changed
from underlay.errors import InvalidRequest
from underlay.local.expressions.merge_rules import DuckDbRules
from underlay.local.expressions.merge_statement import ClauseKind, MergeStatement, TextClause, bind_merge
from underlay.local.expressions.row_names import key_columns
from underlay.runtime.locks import cached_property
from underlay.schema.arrow_aliases import AnyChunks
from underlay.schema.cast.plain import takeable
from underlay.table.open_table import OpenTable
from underlay.table.versions.snapshot import Snapshot
from underlay.values.literal import Literal

Updates = Mapping[str, str | Literal]
"""SQL expressions by column, Python values as `ul.lit(value)`."""


class TableMerger:
    """Collects what to do with rows that match and rows that do not. Made by `Table.merge`, run by `execute`.

    Clauses are tried in the order in which they were added; for each row the first one whose predicate is true applies.
    Predicates and values may name columns of both sides by their aliases; for rows without a match, only columns of the
    side that the row is from.
    """

    def __init__(
        self,
        table: OpenTable,
        files: FileAccess,
        source: object,
        statement: MergeStatement,
        *,
        token: str | None = None,
        dry_run: bool = False,
    ) -> None:
        self._table = table
        self._files = files
        self._given = source
        self._statement = statement
        self._token = token
        self._dry_run = dry_run

    def when_matched_update(self, updates: Updates, predicate: str | None = None) -> TableMerger:
        """Set columns of a matching row."""
        return self._add(ClauseKind.MATCHED_UPDATE, predicate, updates=updates)

    def when_matched_update_all(
        self, predicate: str | None = None, except_cols: Sequence[str] | None = None
    ) -> TableMerger:
        """Set all columns of a matching row, by name, to the source's values, except these."""
        return self._add(ClauseKind.MATCHED_UPDATE, predicate, except_cols=except_cols)

    def when_matched_delete(self, predicate: str | None = None) -> TableMerger:
        """Delete a matching row."""
        return self._add(ClauseKind.MATCHED_DELETE, predicate)

    def when_not_matched_insert(self, updates: Updates, predicate: str | None = None) -> TableMerger:
        """Insert a row with these values for a source row without a match; other columns get their defaults."""
        return self._add(ClauseKind.NOT_MATCHED_INSERT, predicate, updates=updates)

    def when_not_matched_insert_all(
        self, predicate: str | None = None, except_cols: Sequence[str] | None = None
    ) -> TableMerger:
        """Insert a source row without a match, with all its columns except these, by name."""
        return self._add(ClauseKind.NOT_MATCHED_INSERT, predicate, except_cols=except_cols)

    def when_not_matched_by_source_update(self, updates: Updates, predicate: str | None = None) -> TableMerger:
        """Set columns of a row that no source row matches."""
        return self._add(ClauseKind.NOT_MATCHED_BY_SOURCE_UPDATE, predicate, updates=updates)

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> TableMerger:
        """Delete a row that no source row matches."""
        return self._add(ClauseKind.NOT_MATCHED_BY_SOURCE_DELETE, predicate)

    def execute(self) -> Changed:
        """Run the merge in one commit. If one row cannot be changed, none is.

        Raises InvalidRequest when two rows of the source would change the same row, or an expression is wrong;
        SchemaMismatch for a value that does not fit its column.
        """
        if not self._statement.clauses:
            raise InvalidRequest("a merge needs a clause", hint="Add one, such as when_matched_update_all().")
        return merging.merge(
            self._table,
            self._files,
            self._rules_for,
            reads_table=self._on_version(self._table.snapshot(self._table.head())) is not None,
            token=self._token,
            dry_run=self._dry_run,
        )

    def _add(
        self,
        kind: ClauseKind,
        predicate: str | None,
        *,
        updates: Updates | None = None,
        except_cols: Sequence[str] | None = None,
    ) -> TableMerger:
        if isinstance(except_cols, str):
            raise InvalidRequest("except_cols must be a list of names", found=repr(except_cols))
        values = None if updates is None else dict(updates) if isinstance(updates, Mapping) else updates
        clause = TextClause(kind=kind, predicate=predicate, values=values, except_columns=tuple(except_cols or ()))
        self._statement = replace(self._statement, clauses=(*self._statement.clauses, clause))
        return self

    def _rules_for(self, snapshot: Snapshot) -> DuckDbRules:
        again = self._on_version(snapshot)
        source = or_no_rows_of(snapshot, self._rows) if again is None else again.table()
        bound = bind_merge(self._statement, snapshot.schema, source.schema)
        return DuckDbRules(bound, source, key_columns(snapshot))

    def _on_version(self, snapshot: Snapshot) -> RowsOfVersion | None:
        return self._given.on_version(snapshot) if isinstance(self._given, TableRows) else None

    @cached_property
    def _rows(self) -> pa.Table:
        """The rows of a source that does not depend on the table. Some sources can be read only once."""
        rows = pa.concat_tables(list(read_rows(self._given)()))
        names = [name.lower() for name in rows.schema.names]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidRequest("the source has two columns of one name", found=twice, hint="Rename or drop one.")
        return pa.table([_takeable(column) for column in rows.columns], rows.schema.names)


def _takeable(column: AnyChunks) -> AnyChunks:
    return pa.chunked_array([takeable(chunk) for chunk in column.chunks]) if column.num_chunks else column
