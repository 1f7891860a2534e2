"""A merge: rows of a DataFrame decide which rows of the table change, which go, and which come. Spark joins them.

A small source is collected, the rows that have one of its keys are read by this process, and only these are joined.
Else all rows of files that may have a key are joined by tasks, which write what comes of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.update.result import Changed
from underlay.errors import InvalidRequest
from underlay.index.operation import Operation
from underlay.spark.change.expressions import Expression
from underlay.spark.change.merge_join import FrameMerge, JoinedMerge, MergeClause
from underlay.spark.change.statement import Attempt, run_statement
from underlay.table.commit.conflicts import ReadSet


def merge_frames(
    spark: SparkSession,
    lake: Lake | None,
    table_name: Table | str,
    source: DataFrame,
    on: Expression,
    clauses: Sequence[MergeClause],
    *,
    source_alias: str = "source",
    target_alias: str = "target",
    token: str | None = None,
) -> Changed:
    """Change, delete and insert rows by those of a source, in one commit.

    Raises TableNotFound, InvalidRequest when two rows of the source would change the same row, SchemaMismatch for null
    in a required column, CommitConflict, CommitUnknown (then call it again with the same token), Spark's errors.
    """
    statement = FrameMerge(on=on, clauses=tuple(clauses), source_alias=source_alias, target_alias=target_alias)
    statement.check()
    if not isinstance(source, DataFrame):
        raise InvalidRequest("not a Spark DataFrame", found=type(source).__name__)

    def prepare(attempt: Attempt) -> None:
        rows = attempt.numbered()
        bound = JoinedMerge(statement, attempt.edit.snapshot.schema, rows.frame, rows.number, source)
        change = bound.changes(rows.locations)
        found = attempt.find_by_tasks(change)
        attempt.finish(found, ReadSet(may_match=lambda _: True))

    return run_statement(spark, lake, table_name, Operation.MERGE, prepare, token=token, frames=[source])
