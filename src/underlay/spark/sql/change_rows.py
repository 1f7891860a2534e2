"""Runs MERGE, UPDATE, DELETE and TRUNCATE: Spark's parser parses them, the verbs of `change` do the work."""

from __future__ import annotations

from pyspark.sql import Column

from underlay.errors import InvalidRequest, Unsupported
from underlay.spark.change.merge import merge_frames
from underlay.spark.change.merge_join import MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE, ClauseKind, MergeClause
from underlay.spark.change.update_and_delete import delete_where, update_where
from underlay.spark.jvm.gateway import JavaObject, call, call_text, frame_of_plan
from underlay.spark.jvm.plan_nodes import items_of
from underlay.spark.sql import answers
from underlay.spark.sql.nodes import StatementScope, kind_of, name_parts, named_relation, option_of
from underlay.spark.sql.targets import StatementTarget
from underlay.spark.types.spark_types import quoted


def merge(scope: StatementScope, node: JavaObject, target: StatementTarget) -> JavaObject:
    """Run MERGE; a row of counts."""
    if call(node, "withSchemaEvolution"):
        raise Unsupported(
            "MERGE does not add columns to a table",
            found="WITH SCHEMA EVOLUTION",
            hint="Add them with ALTER TABLE first.",
        )
    given = call(node, "sourceTable")
    source = named_relation(given).name
    clauses: list[MergeClause] = []
    for kind, method in (
        (MATCHED, "matchedActions"),
        (NOT_MATCHED, "notMatchedActions"),
        (NOT_MATCHED_BY_SOURCE, "notMatchedBySourceActions"),
    ):
        clauses += [_clause(scope, kind, action, target) for action in items_of(call(node, method))]
    done = merge_frames(
        scope.spark,
        target.lake,
        target.table,
        frame_of_plan(scope.plan(given), scope.spark),
        scope.column(call(node, "mergeCondition")),
        clauses,
        source_alias=source[-1],
        source_qualifier=source[:-1],
        target_alias=target.name[-1],
        target_qualifier=target.name[:-1],
    )
    return answers.merged(scope.spark, done)


def _clause(scope: StatementScope, kind: ClauseKind, action: JavaObject, target: StatementTarget) -> MergeClause:
    what = kind_of(action)
    condition = option_of(call(action, "condition"))
    predicate = None if condition is None else scope.column(condition)
    if what == "DeleteAction":
        return MergeClause(kind=kind, action="delete", predicate=predicate)
    if what in ("UpdateStarAction", "InsertStarAction"):
        return MergeClause(
            kind=kind, action="update_all" if what.startswith("Update") else "insert_all", predicate=predicate
        )
    return MergeClause(
        kind=kind,
        action="update" if what == "UpdateAction" else "insert",
        predicate=predicate,
        assignments=_assignments(scope, call(action, "assignments"), target),
    )


def update(scope: StatementScope, node: JavaObject, target: StatementTarget) -> JavaObject:
    """Run UPDATE; a row with the count of rows."""
    condition = option_of(call(node, "condition"))
    done = update_where(
        scope.spark,
        target.lake,
        target.table,
        _assignments(scope, call(node, "assignments"), target),
        None if condition is None else scope.column(condition),
        target_name=target.name,
    )
    return answers.counts_of(scope.spark, {"num_affected_rows": done.rows_updated})


def delete(scope: StatementScope, node: JavaObject, target: StatementTarget) -> JavaObject:
    """Run DELETE; a row with the count of rows."""
    condition = call(node, "condition")
    where = None if call_text(condition, "toString") == "true" else scope.column(condition)
    done = delete_where(scope.spark, target.lake, target.table, where, target_name=target.name)
    return answers.counts_of(scope.spark, {"num_affected_rows": done.rows_deleted})


def truncate(scope: StatementScope, node: JavaObject, target: StatementTarget) -> JavaObject:
    """Run TRUNCATE; no rows, as Spark answers it."""
    delete_where(scope.spark, target.lake, target.table)
    return answers.nothing(scope.spark)


def _assignments(scope: StatementScope, found: JavaObject, target: StatementTarget) -> dict[str, Column]:
    """Values by column, without the alias, or parts of the table's name, before the columns' names."""
    values: dict[str, Column] = {}
    for one in items_of(found):
        key, value = call(one, "key"), call(one, "value")
        name = ".".join(map(quoted, target.column(name_parts(key))))
        if kind_of(value) == "UnresolvedAttribute" and [part.upper() for part in name_parts(value)] == ["DEFAULT"]:
            raise InvalidRequest(
                "DEFAULT is not available here", place=name, hint="Write the value; INSERT may leave a column out."
            )
        if name in values:
            raise InvalidRequest("a column gets two values", found=name)
        values[name] = scope.column(value)
    return values
