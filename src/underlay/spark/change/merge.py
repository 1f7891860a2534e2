"""Runs a merge: rows of a DataFrame decide which rows of the table are updated, deleted and inserted. Spark joins them.

A small source is collected; this process reads the rows that have one of its keys, and only these are joined. Otherwise
tasks join all rows of files that may have a key, and write the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.update.find_keys import find_keys, may_hold_keys
from underlay.change.update.result import Changed
from underlay.errors import InvalidRequest, Unsupported
from underlay.index.deletion_vectors import Positions
from underlay.index.operation import Operation
from underlay.spark.change.change_frame import FoundChange, found_in
from underlay.spark.change.expressions import Expression
from underlay.spark.change.merge_join import FrameMerge, JoinedMerge, MergeClause
from underlay.spark.change.merge_keys import MergeKey, is_repeatable, key_set, keys_of, within_bounds
from underlay.spark.change.statement import Attempt, run_statement
from underlay.spark.relation.row_numbers import number_column
from underlay.spark.tasks.collect import collect_rows, collect_small
from underlay.spark.types.arrow_types import arrow_schema
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
    source_qualifier: tuple[str, ...] = (),
    target_qualifier: tuple[str, ...] = (),
    token: str | None = None,
) -> Changed:
    """Update, delete and insert rows by those of a source, in one commit.

    Raises TableNotFound, InvalidRequest when two rows of the source would change the same row, SchemaMismatch for null
    in a required column, CommitConflict, CommitUnknown (then call it again with the same token), Spark's errors.
    """
    statement = FrameMerge(
        on=on,
        clauses=tuple(clauses),
        source_alias=source_alias,
        target_alias=target_alias,
        source_qualifier=source_qualifier,
        target_qualifier=target_qualifier,
    )
    statement.check()
    if not isinstance(source, DataFrame):
        raise InvalidRequest("not a Spark DataFrame", found=type(source).__name__)

    collected = CollectedSource(source)

    def prepare(attempt: Attempt) -> None:
        schema = attempt.edit.snapshot.schema
        number = number_column(schema.names)
        bound = JoinedMerge(statement, schema, attempt.prototype(), number, source)
        keys = keys_of(bound, schema) if statement.is_of_pairs else []
        found = reads = None
        if keys and attempt.small_rows:
            local = collected.rows()
            if local is not None:
                found, reads = _by_driver(attempt, statement, local, source, keys)
        if found is None:
            rows = attempt.numbered()
            target = rows.frame
            if keys and is_repeatable(source):
                target = within_bounds(target, keys, bound.of_source([key.value for key in keys]))
            whole = JoinedMerge(statement, schema, target, rows.number, source)
            found = attempt.find_by_tasks(attempt.clustered(whole.changes(rows.locations)))
        attempt.finish(found, reads or ReadSet(may_match=lambda _: True))

    return run_statement(spark, lake, table_name, Operation.MERGE, prepare, token=token, frames=[source])


class CollectedSource:
    """The rows of a source, collected once if they are small, however often the commit is retried."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self._is_tried = False
        self._rows: pa.Table | None = None

    def rows(self) -> pa.Table | None:
        """The rows; None when they are not small, or have a type that cannot travel to the driver and back."""
        if not self._is_tried:
            self._is_tried = True
            names = [name.lower() for name in self._frame.columns]
            if len(set(names)) == len(names) and _is_plain(self._frame):
                self._rows = collect_small(self._frame)
        return self._rows


def _is_plain(frame: DataFrame) -> bool:
    try:
        arrow_schema(frame.schema)
    except Unsupported:
        return False
    return True


def _by_driver(
    attempt: Attempt, statement: FrameMerge, local: pa.Table, source: DataFrame, keys: list[MergeKey]
) -> tuple[FoundChange | None, ReadSet | None]:
    """The change by a small source: this process finds the rows that have its keys, and Spark joins these.

    None when there are many such rows.
    """
    schema, spark = attempt.edit.snapshot.schema, attempt.spark
    number = number_column(schema.names)
    frame = spark.createDataFrame(local, source.schema)
    bound = JoinedMerge(statement, schema, attempt.prototype(), number, frame)
    keys = keys_of(bound, schema)
    values = key_set(keys, collect_rows(bound.of_source([key.value for key in keys])), schema)
    positions: dict[str, list[Positions]] = {}
    count = 0
    for some in find_keys(attempt.edit, values):
        if len(some.found.positions):
            positions.setdefault(some.found.location, []).append(some.found.positions)
            count += len(some.found.positions)
        if count > attempt.small_rows:
            return None, None
    placed = {location: np.sort(np.concatenate(runs)) for location, runs in positions.items()}
    locations = tuple(placed)
    target = attempt.rows_at(placed, {location: at for at, location in enumerate(locations)}, bound.needed)
    change = JoinedMerge(statement, schema, target, number, frame).changes(locations)
    reads = ReadSet(may_match=may_hold_keys(schema, values))
    return found_in(collect_rows(change.frame), change), reads
