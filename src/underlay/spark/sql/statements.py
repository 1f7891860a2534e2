"""Dispatches parsed statements on a lake's tables to the functions that run them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pyspark.sql import SparkSession

from underlay.errors import InvalidRequest, Unsupported
from underlay.spark.catalog.session_catalog import Names
from underlay.spark.jvm.gateway import JavaObject, call, call_text
from underlay.spark.jvm.plan_nodes import items_of
from underlay.spark.sql.alter import ALTERS, alter, rename
from underlay.spark.sql.change_rows import delete, merge, truncate, update
from underlay.spark.sql.create import CREATES, create, drop
from underlay.spark.sql.insert import insert
from underlay.spark.sql.nodes import StatementScope, kind_of, named_relation, texts_of
from underlay.spark.sql.targets import StatementTarget, find_target

_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_WORDS = "merge|insert|update|delete|truncate|with|explain|create|replace|alter|drop|comment|begin"
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
_VIEWS = frozenset(
    {"DropView", "AlterViewAs", "SetViewProperties", "UnsetViewProperties", "AlterViewSchemaBinding", "CreateView"}
)
"""Statements on views. Names of a lake's tables are views to Spark."""
_PARAMETERS = re.compile(r"\b(?:named|pos)parameter\(", re.IGNORECASE)


def may_change(text: str) -> bool:
    """Whether a text begins like a statement that changes tables, or with WITH."""
    return _FIRST.match(text) is not None


def run_change(spark: SparkSession, names: Names, plan: JavaObject) -> JavaObject:
    """If a statement changes a lake's table, run it and return its answer; else return its plan unchanged."""
    kind, node = kind_of(plan), plan
    queries = None
    if kind in ("ExplainCommand", "CompoundBody"):
        _refuse_within(spark, names, plan)
        return plan
    if kind == "UnresolvedWith":
        queries, node = plan, call(plan, "child")
        kind = kind_of(node)
    scope = StatementScope(spark=spark, queries=queries)
    if kind in CREATES:
        return create(scope, names, node) or plan
    target = _changed(spark, names, node)
    if target is None:
        return plan
    if kind in _VIEWS or (kind == "RenameTable" and call(node, "isView")):
        raise InvalidRequest(
            "the name is a table of a lake, not a view",
            place=target.table,
            hint="Write DROP TABLE, ALTER TABLE or INSERT OVERWRITE.",
        )
    run = _CHANGES[kind][1]
    if _PARAMETERS.search(call_text(plan, "toString")):
        raise Unsupported(
            "this version of Spark passes parameters too late for a change of a table",
            found=spark.version,
            expected="Spark 4.3 or later",
            hint="Write the values, or call underlay.spark.merge, update or delete.",
        )
    return run(scope, node, target)


def _changed(spark: SparkSession, names: Names, node: JavaObject) -> StatementTarget | None:
    """The lake's table that a statement would change, or whose name it would take. Raises InvalidRequest for a database
    with such tables.
    """
    kind = kind_of(node)
    if kind == "UnresolvedWith":
        return _changed(spark, names, call(node, "child"))
    if kind == "DropNamespace" and call(node, "cascade"):
        _refuse_drop(names, texts_of(call(call(node, "namespace"), "multipartIdentifier"))[-1])
    if kind not in _CHANGES and kind not in _VIEWS:
        return None
    if kind == "CreateView" and not call(node, "replace"):
        return None  # leaves a name alone that is taken
    field = _CHANGES[kind][0] if kind in _CHANGES else "child"
    return find_target(spark, names, named_relation(call(node, field)))


def _refuse_drop(names: Names, database: str) -> None:
    known = [entry.name for entry in names.entries() if entry.key[0] == database.lower()]
    if known:
        raise InvalidRequest(
            "the database has tables of a lake",
            place=database,
            found=", ".join(sorted(known)[:5]),
            hint="Drop them with DROP TABLE, or call underlay.spark.forget(spark, lake).",
        )


def _refuse_within(spark: SparkSession, names: Names, plan: JavaObject) -> None:
    """Raise Unsupported for EXPLAIN of a change, or a change in a script: Spark would need a plan of it beforehand."""
    for node in _statements(plan):
        if _changed(spark, names, node) is not None:
            raise Unsupported(
                "Spark has no plan for a change of a lake's table",
                found="EXPLAIN" if kind_of(plan) == "ExplainCommand" else "BEGIN … END",
                hint="Run the statement alone; lake.sql explains what it would change.",
            )


def _statements(plan: JavaObject) -> Iterator[JavaObject]:
    """The statements of EXPLAIN, or of a script."""
    kind = kind_of(plan)
    if kind == "ExplainCommand":
        yield call(plan, "logicalPlan")
    elif kind == "SingleStatement":
        yield call(plan, "parsedPlan")
    else:
        for below in items_of(call(plan, "children")):
            yield from _statements(below)
