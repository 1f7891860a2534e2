"""Dispatches parsed statements on a lake's tables to the functions that run them."""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.sql import SparkSession

from underlay.errors import Unsupported
from underlay.spark.catalog.session_catalog import Names
from underlay.spark.jvm.gateway import JavaObject, call, call_text
from underlay.spark.sql.alter import ALTERS, alter, rename
from underlay.spark.sql.change_rows import delete, merge, truncate, update
from underlay.spark.sql.create import CREATES, create, drop
from underlay.spark.sql.insert import insert
from underlay.spark.sql.nodes import StatementScope, kind_of, named_relation
from underlay.spark.sql.targets import StatementTarget, find_target

_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_WORDS = "merge|insert|update|delete|truncate|with|explain|create|replace|alter|drop|comment"
_FIRST = re.compile(rf"{_BLANK}(?:{_WORDS})\b", re.IGNORECASE | re.DOTALL)
_CHANGES: dict[str, tuple[str, Callable[[StatementScope, JavaObject, StatementTarget], JavaObject]]] = {
    "MergeIntoTable": ("targetTable", merge),
    "UpdateTable": ("table", update),
    "DeleteFromTable": ("table", delete),
    "InsertIntoStatement": ("table", insert),
    "TruncateTable": ("table", truncate),
    "DropTable": ("child", drop),
    "RenameTable": ("child", rename),
    **dict.fromkeys(ALTERS, ("table", alter)),
}
_PARAMETERS = re.compile(r"\b(?:named|pos)parameter\(", re.IGNORECASE)


def may_change(text: str) -> bool:
    """Whether a text begins like a statement that changes tables, or with WITH."""
    return _FIRST.match(text) is not None


def run_change(spark: SparkSession, names: Names, plan: JavaObject) -> JavaObject:
    """If a statement changes a lake's table, run it and return its answer; else return its plan unchanged."""
    kind, node = kind_of(plan), plan
    queries = None
    if kind == "ExplainCommand":
        _refuse_explain(spark, names, call(plan, "logicalPlan"))
        return plan
    if kind == "UnresolvedWith":
        queries, node = plan, call(plan, "child")
        kind = kind_of(node)
    scope = StatementScope(spark=spark, queries=queries)
    if kind in CREATES:
        return create(scope, names, node) or plan
    if kind not in _CHANGES:
        return plan
    table, run = _CHANGES[kind]
    target = find_target(spark, names, named_relation(call(node, table)))
    if target is None or (kind == "RenameTable" and call(node, "isView")):
        return plan
    if _PARAMETERS.search(call_text(plan, "toString")):
        raise Unsupported(
            "this Spark hands over parameters too late to change a table by them",
            found=spark.version,
            expected="Spark 4.3 or later",
            hint="Write the values, or call underlay.spark.merge, update or delete.",
        )
    return run(scope, node, target)


def _refuse_explain(spark: SparkSession, names: Names, plan: JavaObject) -> None:
    """Raise Unsupported for EXPLAIN of a change: Spark has no plan for it before it is done."""
    node = call(plan, "child") if kind_of(plan) == "UnresolvedWith" else plan
    if kind_of(node) not in _CHANGES:
        return
    table, _ = _CHANGES[kind_of(node)]
    if find_target(spark, names, named_relation(call(node, table))) is not None:
        raise Unsupported(
            "a change of a table has no plan of Spark", found="EXPLAIN", hint="lake.sql explains what it would change."
        )
