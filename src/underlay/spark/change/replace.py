"""Replaces the rows that a condition matches, or the partitions that a DataFrame has rows in, by the DataFrame's
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import LongType

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.update.result import Changed
from underlay.errors import Unsupported
from underlay.index.operation import Operation
from underlay.prune.predicates.operand import format_column
from underlay.schema.partitioning import transform
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import TypeKind
from underlay.spark.change.change_frame import ChangeFrame, RowAct, found_in
from underlay.spark.change.expressions import Expression, as_column
from underlay.spark.change.statement import Attempt, run_statement
from underlay.spark.change.update_and_delete import ACT, matching_rows
from underlay.spark.relation.adapted import missing_column
from underlay.spark.relation.relation import NumberedRows
from underlay.spark.tasks.collect import collect_small
from underlay.spark.types.spark_types import quoted
from underlay.spark.types.to_spark import source_schema
from underlay.table.commit.conflicts import ReadSet

_PART = "__underlay_part"
_HINT = "Say which rows to replace: INSERT INTO … REPLACE WHERE condition."


def replace_where(
    spark: SparkSession,
    lake: Lake | None,
    table: Table | str,
    frame: DataFrame,
    condition: Expression,
    *,
    token: str | None = None,
    are_checked: bool = True,
) -> Changed:
    """Replace the rows for which the condition is true by the frame's, in one commit. `are_checked`: each new row must
    match it too.

    Raises TableNotFound, CommitConflict, CommitUnknown, Spark's errors: also for a row that does not match.
    """

    def gone(attempt: Attempt) -> NumberedRows:
        rows = attempt.numbered()
        return NumberedRows(frame=matching_rows(rows, condition), number=rows.number, locations=rows.locations)

    misfit = f.raise_error(f.lit("a new row does not match the condition of the rows that are replaced")).cast("int")
    coming = f.lit(int(RowAct.INSERT))
    if are_checked:
        coming = f.when(as_column(condition), coming).otherwise(misfit)
    return _replace(spark, lake, table, frame, gone, coming, token)


def replace_partitions(
    spark: SparkSession, lake: Lake | None, table: Table | str, frame: DataFrame, *, token: str | None = None
) -> Changed:
    """Replace all rows of the partitions that the frame has rows in by the frame's, in one commit.

    Raises what `replace_where` raises, and Unsupported for a table that is partitioned by buckets.
    """

    def gone(attempt: Attempt) -> NumberedRows:
        rows, snapshot = attempt.numbered(), attempt.edit.snapshot
        parts = partition_columns(snapshot.schema, attempt)
        names = [f"{_PART}{at}" for at in range(len(parts))]
        wanted = frame.select(*(part.alias(name) for part, name in zip(parts, names, strict=True))).distinct()
        same = [part.eqNullSafe(wanted[name]) for part, name in zip(parts, names, strict=True)]
        matching = rows.frame.join(wanted, reduce(Column.__and__, same), "left_semi")
        return NumberedRows(frame=matching, number=rows.number, locations=rows.locations)

    return _replace(spark, lake, table, frame, gone, f.lit(int(RowAct.INSERT)), token)


def _replace(
    spark: SparkSession,
    lake: Lake | None,
    table: Table | str,
    frame: DataFrame,
    gone: Callable[[Attempt], NumberedRows],
    coming: Column,
    token: str | None,
) -> Changed:
    def prepare(attempt: Attempt) -> None:
        schema = attempt.edit.snapshot.schema
        rows = gone(attempt)
        fields = source_schema(schema, schema.names).fields
        nothing = [f.lit(None).cast(field.dataType).alias(field.name) for field in fields]
        going = rows.frame.select(f.col(rows.number), f.lit(int(RowAct.DELETE)).alias(ACT), *nothing)
        known = {name.lower() for name in frame.columns}
        columns = [
            f.col(quoted(field.name)) if field.name.lower() in known else missing_column(field).alias(field.name)
            for field in schema.fields
        ]
        added = frame.select(f.lit(None).cast(LongType()).alias(rows.number), coming.alias(ACT), *columns)
        change = ChangeFrame(frame=going.union(added), number=rows.number, act=ACT, locations=rows.locations)
        small = collect_small(change.frame) if attempt.small_rows else None
        found = found_in(small, change) if small is not None else attempt.find_by_tasks(attempt.clustered(change))
        attempt.finish(found, ReadSet(may_match=lambda _: True))

    return run_statement(spark, lake, table, Operation.OVERWRITE, prepare, token=token, frames=[frame])


def partition_columns(schema: TableSchema, attempt: Attempt) -> list[Column]:
    """The table's partition values, as Spark expressions."""
    found: list[Column] = []
    for part in attempt.edit.snapshot.definition.partition_by:
        leaf = schema.leaf_by_id[part.field]
        column = f.col(".".join(map(quoted, leaf.path)))
        if leaf.type.kind is TypeKind.TIMESTAMP and part.transform != transform.IDENTITY:
            column = _in_utc(column, is_instant=leaf.type.zone is not None)
        match part.transform:
            case transform.IDENTITY:
                found.append(column)
            case transform.YEAR:
                found.append(f.year(column))
            case transform.MONTH:
                found.append(f.year(column) * 12 + f.month(column))
            case transform.DAY:
                found.append(column.cast("date"))
            case transform.HOUR:
                found += [column.cast("date"), f.hour(column)]
            case transform.TRUNCATE if leaf.type.kind in (TypeKind.STRING, TypeKind.BINARY):
                found.append(f.substring(column, 1, part.width))
            case transform.TRUNCATE:
                found.append(column - f.pmod(column, f.lit(part.width)))
            case _:
                raise Unsupported(
                    "Spark does not compute Underlay's buckets, and cannot tell which partitions rows are in",
                    place=format_column(leaf.path),
                    found=part.transform,
                    hint=_HINT,
                )
    return found


def _in_utc(column: Column, *, is_instant: bool) -> Column:
    """An instant as local time in UTC, which partitions go by."""
    if not is_instant:
        return column
    return f.convert_timezone(f.current_timezone(), f.lit("UTC"), column.cast("timestamp_ntz"))
