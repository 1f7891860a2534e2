"""Deletes or updates the rows that a condition matches. Spark evaluates condition and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.update.result import Changed
from underlay.index.deletion_vectors import Positions
from underlay.index.operation import Operation
from underlay.prune import TRUE, Predicate
from underlay.scan.positions import file_may_match
from underlay.spark.change.change_frame import ChangeFrame, FoundChange, RowAct, by_file, found_in
from underlay.spark.change.expressions import (
    Expression,
    attributes_of,
    check_condition,
    named,
    references,
    resolve,
    resolved_column,
)
from underlay.spark.change.new_values import NewValues
from underlay.spark.change.statement import Attempt, run_statement
from underlay.spark.filters.applicable import applied_part
from underlay.spark.filters.catalyst import read_filter
from underlay.spark.jvm.gateway import JavaObject, call, call_text, gateway_of, java_plan
from underlay.spark.relation.relation import NumberedRows
from underlay.spark.tasks.collect import collect_rows, limited_by_task
from underlay.table.commit.conflicts import ReadSet

ACT = "__underlay_act"
"""The prefix of the column that says what happens to a row."""


def delete_where(
    spark: SparkSession,
    lake: Lake | None,
    table_name: Table | str,
    condition: Expression | None = None,
    *,
    token: str | None = None,
    target_name: Sequence[str] = (),
) -> Changed:
    """Delete the rows for which the condition is true; without one, all rows, without reading a file.

    Raises TableNotFound, CommitUnknown (then call it again with the same token), Spark's AnalysisException.
    """

    def prepare(attempt: Attempt) -> None:
        if condition is None:
            attempt.edit.remove_all()
            attempt.edit.finish(reads=ReadSet(is_whole=True))
            return
        rows = _named(attempt.numbered(), target_name)
        matching = matching_rows(rows, condition)
        numbers = _collect_numbers(matching, rows.number, attempt.small_rows)
        act = _act_column(matching)
        change = ChangeFrame(
            frame=matching.select(rows.number, f.lit(int(RowAct.DELETE)).alias(act)),
            number=rows.number,
            act=act,
            locations=rows.locations,
        )
        found = attempt.find_by_tasks(change) if numbers is None else _deleted(numbers, rows)
        attempt.finish(found, _reads(attempt, matching))

    return run_statement(spark, lake, table_name, Operation.DELETE, prepare, token=token)


def update_where(
    spark: SparkSession,
    lake: Lake | None,
    table_name: Table | str,
    assignments: Mapping[str, Expression],
    condition: Expression | None = None,
    *,
    token: str | None = None,
    target_name: Sequence[str] = (),
) -> Changed:
    """Set columns to new values in the rows for which the condition is true, or in all: `{"fare": "fare * 1.1"}`.

    Values are computed from the old row, and cast to the column's type by ANSI store assignment. Raises what
    `delete_where` raises, and SchemaMismatch for null in a required column.
    """

    def prepare(attempt: Attempt) -> None:
        rows = _named(attempt.numbered(), target_name)
        matching = matching_rows(rows, condition)
        numbers = _collect_numbers(matching, rows.number, attempt.small_rows)
        if numbers is None:
            change = _updates(attempt, assignments, matching, rows, target_name)
            found = attempt.find_by_tasks(attempt.clustered(change))
        elif len(numbers):
            files = dict(enumerate(rows.locations))
            positions = {files[file]: at for file, at in by_file(numbers).items()}
            columns = _needed(attempt, assignments, target_name)
            places = {location: file for file, location in files.items()}
            local = attempt.rows_at(positions, places, columns)
            change = _updates(attempt, assignments, local, rows, target_name)
            found = found_in(collect_rows(change.frame), change)
        else:
            found = FoundChange()
        attempt.finish(found, _reads(attempt, matching))

    return run_statement(spark, lake, table_name, Operation.UPDATE, prepare, token=token)


def _act_column(frame: DataFrame) -> str:
    return ACT + "_" * max(map(len, frame.columns))


def _named(rows: NumberedRows, name: Sequence[str]) -> NumberedRows:
    return replace(rows, frame=named(rows.frame, name)) if name else rows


def matching_rows(rows: NumberedRows, condition: Expression | None) -> DataFrame:
    """The rows for which the condition is true."""
    if condition is None:
        return rows.frame
    (found,) = resolve(rows.frame, [condition])
    gateway = gateway_of(rows.frame.sparkSession)
    check_condition(found, "the condition")
    return rows.frame.where(resolved_column(gateway, found))


def _collect_numbers(matching: DataFrame, number: str, most: int) -> Positions | None:
    """The numbers of rows, if there are at most `most`."""
    if not most:
        return None
    found = limited_by_task(matching.select(number), most + 1).toArrow()
    return np.asarray(found.column(0), np.int64) if found.num_rows <= most else None


def _deleted(numbers: Positions, rows: NumberedRows) -> FoundChange:
    found = FoundChange()
    found.add_numbers(numbers, rows.locations)
    return found


def _updates(
    attempt: Attempt,
    given: Mapping[str, Expression],
    matching: DataFrame,
    rows: NumberedRows,
    name: Sequence[str],
) -> ChangeFrame:
    """Every row of a frame, with its new values."""
    scope = named(matching, name) if name else matching
    schema = attempt.edit.snapshot.schema
    bound = NewValues(given, schema, name[-1] if name else None)
    values = bound.bind(scope, resolve(scope, bound.values), keep=True)
    act = _act_column(matching)
    columns = [value.alias(name) for name, value in values.items()]
    frame = scope.select(f.col(rows.number), f.lit(int(RowAct.UPDATE)).alias(act), *columns)
    return ChangeFrame(frame=frame, number=rows.number, act=act, locations=rows.locations)


def _needed(attempt: Attempt, given: Mapping[str, Expression], name: Sequence[str]) -> tuple[str, ...]:
    """The columns of a row that are needed to compute its new values."""
    scope = named(attempt.prototype(), name) if name else attempt.prototype()
    schema = attempt.edit.snapshot.schema
    bound = NewValues(given, schema, name[-1] if name else None)
    used = references(resolve(scope, bound.values))
    names = {name for at, name in attributes_of(scope).items() if at in used} | bound.kept
    return tuple(name for name in schema.names if name in names)


def _reads(attempt: Attempt, matching: DataFrame) -> ReadSet:
    """What the choice of rows depends on: files that may hold further matching rows."""
    schema = attempt.edit.snapshot.schema
    return ReadSet(may_match=file_may_match(schema, _predicate(matching, attempt)))


def _predicate(matching: DataFrame, attempt: Attempt) -> Predicate:
    """A predicate that is true for every matching row, as far as the plan, of a single relation, is understood."""
    plan: JavaObject = call(java_plan(matching), "optimizedPlan")
    found: list[JavaObject] = []
    while (kind := call_text(plan, "nodeName")) in ("Project", "Filter"):
        if kind == "Filter":
            found.append(call(plan, "condition"))
        plan = call(plan, "child")
    if not kind.startswith("Relation") or not found:
        return TRUE
    parts = [applied_part(read_filter(one), attempt.edit.snapshot.schema) for one in found]
    return parts[0]
