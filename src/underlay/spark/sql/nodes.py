"""Reads the nodes of a parsed statement, before Spark resolves anything in it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import DataType, StructType

from underlay.spark.change.expressions import resolved_column
from underlay.spark.jvm.gateway import Gateway, JavaObject, call, call_text, call_texts, gateway_of, scala_seq
from underlay.spark.jvm.plan_nodes import items_of

SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"
_ATTRIBUTE = "org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute"
_NO_NAME = "__underlay_source"


def kind_of(node: JavaObject) -> str:
    """The name of a node's class."""
    return call_text(call(node, "getClass"), "getSimpleName")


def option_of(found: JavaObject) -> JavaObject | None:
    """The value of a Scala Option."""
    return None if call(found, "isEmpty") else call(found, "get")


def texts_of(found: JavaObject) -> list[str]:
    """A Seq of strings."""
    return [str(text) for text in items_of(found)]


def name_parts(node: JavaObject) -> list[str]:
    """The parts of an attribute's or a relation's name, as written."""
    method = "nameParts" if kind_of(node) == "UnresolvedAttribute" else "multipartIdentifier"
    return texts_of(call(node, method))


def by_names(gateway: Gateway, expression: JavaObject) -> JavaObject:
    """A resolved expression that names columns as its text did, so that it may be resolved elsewhere."""
    if kind_of(expression) == "AttributeReference":
        return gateway.new(_ATTRIBUTE, scala_seq(gateway, [call_text(expression, "name")]))
    children = [by_names(gateway, child) for child in items_of(call(expression, "children"))]
    return call(expression, "withNewChildren", scala_seq(gateway, children)) if children else expression


def type_of(found: JavaObject) -> DataType:
    """A type of Spark."""
    field = {"name": "x", "type": json.loads(call_text(found, "json")), "nullable": True, "metadata": {}}
    return StructType.fromJson({"fields": [field]}).fields[0].dataType


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRelation:
    """A relation as a statement names it. `parts` is its own name, None for a query; `name` is the qualifier that
    columns may have: the alias, or the parts.
    """

    parts: list[str] | None
    name: tuple[str, ...]


def named_relation(plan: JavaObject) -> NamedRelation:
    """The names of a relation in a statement."""
    kind = kind_of(plan)
    if kind == "SubqueryAlias":
        inner = named_relation(call(plan, "child"))
        alias = call(plan, "identifier")
        qualifier = texts_of(call(alias, "qualifier"))
        return NamedRelation(parts=inner.parts, name=(*qualifier, call_text(alias, "name")))
    if kind == "ResolvedIdentifier":
        found = call(plan, "identifier")
        parts = [*call_texts(found, "namespace"), call_text(found, "name")]
        return NamedRelation(parts=parts, name=tuple(parts))
    if kind in (
        "UnresolvedRelation",
        "UnresolvedTable",
        "UnresolvedTableOrView",
        "UnresolvedView",
        "UnresolvedIdentifier",
    ):
        method = "nameParts" if kind == "UnresolvedIdentifier" else "multipartIdentifier"
        parts = texts_of(call(plan, method))
        return NamedRelation(parts=parts, name=tuple(parts))
    return NamedRelation(parts=None, name=(_NO_NAME,))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementScope:
    """A session, and the queries of a statement's WITH."""

    spark: SparkSession
    queries: JavaObject | None

    def plan(self, plan: JavaObject) -> JavaObject:
        """A plan that knows these queries."""
        if self.queries is None:
            return plan
        return call(self.queries, "withNewChildren", scala_seq(gateway_of(self.spark), [plan]))

    def column(self, expression: JavaObject) -> Column:
        """An expression as a Column, whose subqueries know these queries."""
        found = expression if self.queries is None else self._with_queries(expression)
        return resolved_column(gateway_of(self.spark), found)

    def _with_queries(self, expression: JavaObject) -> JavaObject:
        gateway = gateway_of(self.spark)
        children = list(items_of(call(expression, "children")))
        if children:
            changed = [self._with_queries(child) for child in children]
            expression = call(expression, "withNewChildren", scala_seq(gateway, changed))
        if call(gateway.java_class(SUBQUERY), "isInstance", expression):
            expression = call(expression, "withNewPlan", self.plan(call(expression, "plan")))
        return expression
