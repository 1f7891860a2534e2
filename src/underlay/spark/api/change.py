"""Verbs that change a table's rows with DataFrames; names and meanings are those of the in-process verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.update.result import Changed
from underlay.errors import InvalidRequest
from underlay.spark.change.expressions import Expression
from underlay.spark.change.merge import merge_frames
from underlay.spark.change.merge_join import ClauseAction, ClauseKind, MergeClause
from underlay.spark.change.update_and_delete import delete_where, update_where
from underlay.spark.change.upsert import upsert_frame
from underlay.spark.change.write_frame import check_frame

Values = Mapping[str, Expression]
"""SQL texts or Columns by column name."""


def upsert(
    frame: DataFrame,
    table: Table | str,
    key: str | Sequence[str] | None = None,
    token: str | None = None,
    lake: Lake | None = None,
) -> Changed:
    """Replace rows that have the same key as a row of a DataFrame, and add its other rows; all or none.

    The key is the table's unless columns are named. Replaced rows keep their values in columns that the frame lacks.
    Raises InvalidRequest for a key that is null or occurs twice, SchemaMismatch, TableNotFound, CommitConflict,
    CommitUnknown (then call it again with the same token).
    """
    check_frame(frame)
    return upsert_frame(frame, table, key, lake, token)


def delete(
    table: Table | str,
    where: Expression | None = None,
    *,
    lake: Lake | None = None,
    token: str | None = None,
    spark: SparkSession | None = None,
) -> Changed:
    """Delete the rows for which a Spark condition is true, or all rows."""
    return delete_where(_session(spark), lake, table, where, token=token)


def update(
    table: Table | str,
    values: Values,
    where: Expression | None = None,
    *,
    lake: Lake | None = None,
    token: str | None = None,
    spark: SparkSession | None = None,
) -> Changed:
    """Set columns to new values in the rows for which a condition is true, or in all: `{"fare": "fare * 1.1"}`.

    Spark computes the values from the old row, and casts them to the column's type by ANSI store assignment.
    """
    return update_where(_session(spark), lake, table, values, where, token=token)


def merge(
    frame: DataFrame,
    table: Table | str,
    on: Expression,
    source_alias: str = "source",
    target_alias: str = "target",
    *,
    lake: Lake | None = None,
    token: str | None = None,
) -> FrameMerger:
    """Change, delete and insert rows by those of a DataFrame: add clauses to what this returns, then `execute()` it."""
    check_frame(frame)
    return FrameMerger(frame, table, on, source_alias, target_alias, lake, token)


class FrameMerger:
    """Collects what to do with rows that match and rows that do not. Made by `merge`, run by `execute`.

    Clauses are tried in the order in which they were added; for each row the first one whose predicate is true applies.
    """

    def __init__(
        self,
        frame: DataFrame,
        table: Table | str,
        on: Expression,
        source_alias: str,
        target_alias: str,
        lake: Lake | None,
        token: str | None,
    ) -> None:
        self._frame = frame
        self._table = table
        self._on = on
        self._aliases = (source_alias, target_alias)
        self._lake = lake
        self._token = token
        self._clauses: tuple[MergeClause, ...] = ()

    def when_matched_update(self, updates: Values, predicate: Expression | None = None) -> FrameMerger:
        """Set columns of a matching row."""
        return self._add("matched", "update", predicate, updates)

    def when_matched_update_all(
        self, predicate: Expression | None = None, except_cols: Sequence[str] | None = None
    ) -> FrameMerger:
        """Set all columns of a matching row, by name, to the source's values, except these."""
        return self._add("matched", "update_all", predicate, except_cols=except_cols)

    def when_matched_delete(self, predicate: Expression | None = None) -> FrameMerger:
        """Delete a matching row."""
        return self._add("matched", "delete", predicate)

    def when_not_matched_insert(self, updates: Values, predicate: Expression | None = None) -> FrameMerger:
        """Insert a row with these values for a source row without a match; other columns get their defaults."""
        return self._add("not matched", "insert", predicate, updates)

    def when_not_matched_insert_all(
        self, predicate: Expression | None = None, except_cols: Sequence[str] | None = None
    ) -> FrameMerger:
        """Insert a source row without a match, with all columns of the table except these, by name."""
        return self._add("not matched", "insert_all", predicate, except_cols=except_cols)

    def when_not_matched_by_source_update(self, updates: Values, predicate: Expression | None = None) -> FrameMerger:
        """Set columns of a row that no source row matches."""
        return self._add("not matched by source", "update", predicate, updates)

    def when_not_matched_by_source_delete(self, predicate: Expression | None = None) -> FrameMerger:
        """Delete a row that no source row matches."""
        return self._add("not matched by source", "delete", predicate)

    def execute(self) -> Changed:
        """Run the merge in one commit. If one row cannot be changed, none is.

        Raises InvalidRequest when two rows of the source would change the same row, SchemaMismatch, TableNotFound,
        CommitConflict, CommitUnknown (then do it again with the same token), and Spark's errors.
        """
        source_alias, target_alias = self._aliases
        return merge_frames(
            self._frame.sparkSession,
            self._lake,
            self._table,
            self._frame,
            self._on,
            self._clauses,
            source_alias=source_alias,
            target_alias=target_alias,
            token=self._token,
        )

    def _add(
        self,
        kind: ClauseKind,
        action: ClauseAction,
        predicate: Expression | None,
        updates: Values | None = None,
        except_cols: Sequence[str] | None = None,
    ) -> FrameMerger:
        if isinstance(except_cols, str):
            raise InvalidRequest("except_cols must be a list of names", found=repr(except_cols))
        clause = MergeClause(
            kind=kind,
            action=action,
            predicate=predicate,
            assignments=None if updates is None else dict(updates),
            except_columns=tuple(except_cols or ()),
        )
        self._clauses = (*self._clauses, clause)
        return self


def _session(given: SparkSession | None) -> SparkSession:
    found = given or SparkSession.getActiveSession()
    if found is None:
        raise InvalidRequest("no session of Spark is active", hint="Call underlay.spark.session(lake) first.")
    return found
