"""Upserts a DataFrame's rows by key: small ones in this process, others by tasks."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.update.keys import key_leaves
from underlay.change.update.result import Changed
from underlay.errors import InvalidRequest, SchemaMismatch
from underlay.index.operation import Operation
from underlay.prune.predicates.operand import format_column
from underlay.schema.table_schema import LeafColumn
from underlay.spark.change.change_frame import ChangeFrame, RowAct
from underlay.spark.change.statement import Attempt, run_statement
from underlay.spark.start.session_lakes import find_table
from underlay.spark.tasks.collect import collect_small
from underlay.spark.tasks.stage_rows import check_columns
from underlay.spark.types.from_spark import SESSION_ZONE, table_rows
from underlay.spark.types.spark_types import quoted
from underlay.table.commit.conflicts import ReadSet

_ACT, _PLACE = "__underlay_act", "__underlay_place"
_SHOWN = 3


def upsert_frame(
    frame: DataFrame, table: Table | str, key: str | Sequence[str] | None, lake: Lake | None, token: str | None
) -> Changed:
    """Replace rows with the same key, and add the others. Raises what the in-process verb raises."""
    spark = frame.sparkSession
    target = find_table(spark, table, lake)
    head = target.writable().head()
    check_columns(frame.schema, head.root.definition)
    rows = collect_small(frame)
    if rows is not None:
        schema = target.at_head(head).snapshot().schema
        given = table_rows(rows, schema, session_zone=spark.conf.get(SESSION_ZONE))
        return target.upsert(given, key, token)

    def prepare(attempt: Attempt) -> None:
        schema = attempt.edit.snapshot.schema
        leaves = key_leaves(schema, attempt.edit.snapshot.definition, key)
        for leaf in leaves:
            if leaf.path[0] not in frame.columns:
                raise SchemaMismatch(
                    f"the rows lack the key's column {format_column(leaf.path[:1])}",
                    found=", ".join(frame.columns),
                    hint="Add the column, or name another key.",
                )
        _check_distinct(frame, leaves)
        numbered = attempt.numbered()
        old, new = numbered.frame.alias("old"), frame.alias("new")
        same = [_leaf("old", leaf) == _leaf("new", leaf) for leaf in leaves]
        joined = old.join(new, _all(same), "right")
        # Of the table's rows that share a key, one is replaced, and the others are deleted.
        place = Window.partitionBy(*(_leaf("new", leaf) for leaf in leaves)).orderBy(f.col(numbered.number).desc())
        is_new = f.col(numbered.number).isNull()
        act = (
            f.when(is_new, int(RowAct.INSERT))
            .when(f.col(_PLACE) == 1, int(RowAct.UPDATE))
            .otherwise(int(RowAct.DELETE))
        )
        sides = {name: "new" if name in frame.columns else "old" for name in schema.names}
        columns = [f.col(f"{side}.{quoted(name)}").alias(name) for name, side in sides.items()]
        change = ChangeFrame(
            frame=joined.withColumn(_PLACE, f.row_number().over(place)).select(
                f.col(numbered.number), act.alias(_ACT), *columns
            ),
            number=numbered.number,
            act=_ACT,
            locations=numbered.locations,
        )
        attempt.finish(attempt.find_by_tasks(attempt.clustered(change)), ReadSet(may_match=lambda _: True))

    return run_statement(spark, lake, target, Operation.UPSERT, prepare, token=token, frames=[frame])


def _leaf(side: str, leaf: LeafColumn) -> Column:
    return f.col(".".join((side, *map(quoted, leaf.path))))


def _all(conditions: list[Column]) -> Column:
    found = conditions[0]
    for condition in conditions[1:]:
        found = found & condition
    return found


def _check_distinct(frame: DataFrame, leaves: Sequence[LeafColumn]) -> None:
    """Raise InvalidRequest when a key is null, or several rows have the same. One job."""
    keys = [f.col(".".join(map(quoted, leaf.path))).alias(f"key{at}") for at, leaf in enumerate(leaves)]
    names = [f"key{at}" for at in range(len(leaves))]
    has_null = ~_all([f.col(name).isNotNull() for name in names])
    counted = frame.select(*keys).groupBy(*names).count()
    bad = counted.where((f.col("count") > 1) | has_null).limit(_SHOWN).collect()
    place = ", ".join(format_column(leaf.path) for leaf in leaves)
    if any(value is None for row in bad for value in row):
        raise InvalidRequest(
            "the key is null in a row",
            place=place,
            hint="Null equals nothing, so such a row can only be appended. Fill it, or leave the row out.",
        )
    if bad:
        shown = "; ".join(", ".join(map(str, row[:-1])) for row in bad)
        raise InvalidRequest(
            "several rows have the same key",
            place=place,
            found=shown,
            hint="Keep one row per key.",
        )
