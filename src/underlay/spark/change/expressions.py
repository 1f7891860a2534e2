"""Has Spark resolve a statement's conditions and values in the scope that they are written for.

A resolved expression names columns by Catalyst's ids, so it can be evaluated in a join of its scope with others.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DataType

from underlay.errors import InvalidRequest
from underlay.spark.jvm.gateway import (
    Gateway,
    JavaObject,
    call,
    call_text,
    frame_of_plan,
    gateway_of,
    java_plan,
    scala_seq,
)
from underlay.spark.jvm.plan_nodes import items_of

Expression = str | Column
"""SQL text, or a Column whose names Spark resolves."""

_COLUMNS = "org.apache.spark.sql.classic.ExpressionUtils"
_ALIAS = "org.apache.spark.sql.catalyst.AliasIdentifier"
_NAMED = "org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias"
_CAST = "org.apache.spark.sql.catalyst.expressions.Cast"


def named(frame: DataFrame, name: Sequence[str]) -> DataFrame:
    """The frame under a name whose first parts expressions may omit: `taxi.trips.fare`, `trips.fare`."""
    gateway = gateway_of(frame.sparkSession)
    alias = gateway.new(_ALIAS, name[-1], scala_seq(gateway, name[:-1]))
    plan = gateway.new(_NAMED, alias, call(java_plan(frame), "analyzed"))
    return frame_of_plan(plan, frame.sparkSession)


def as_column(given: Expression) -> Column:
    """A user's expression as a Column. Raises InvalidRequest."""
    if isinstance(given, str):
        return f.expr(given)
    if isinstance(given, Column):
        return given
    raise InvalidRequest(
        "a condition or value is SQL text or a Column", found=repr(given), hint="Write lit(value) for a Python value."
    )


def resolve(frame: DataFrame, given: Sequence[Expression]) -> list[JavaObject]:
    """The expressions over the columns of a frame, in one analysis. Raises Spark's AnalysisException, and
    InvalidRequest for an expression that is not evaluated row by row.
    """
    if not given:
        return []
    asked = frame.select(*(as_column(one).alias(f"value{at}") for at, one in enumerate(given)))
    plan = call(java_plan(asked), "analyzed")
    is_plain = call_text(plan, "nodeName") == "Project" and call_text(call(plan, "child"), "nodeName") not in (
        "Window",
        "Generate",
        "Aggregate",
    )
    if not is_plain:
        raise InvalidRequest(
            "a condition or value must be computed from one row", hint="Aggregates and windows belong in a subquery."
        )
    return [call(one, "child") for one in items_of(call(plan, "projectList"))]


def resolved_column(gateway: Gateway, expression: JavaObject) -> Column:
    """A resolved expression as a Column."""
    from pyspark.sql.classic.column import Column as ClassicColumn

    return ClassicColumn(gateway.static(_COLUMNS, "column", expression))


def check_condition(expression: JavaObject, place: str) -> None:
    """Raise InvalidRequest unless an expression is true, false or null."""
    kind = call_text(call(expression, "dataType"), "typeName")
    if kind not in ("boolean", "void"):
        raise InvalidRequest(
            "a condition must be true or false", place=place, found=f"{call_text(expression, 'sql')}, which is {kind}"
        )


def assigned(frame: DataFrame, expression: JavaObject, wanted: DataType) -> JavaObject:
    """The value for a column of this type: an ANSI cast, which fails if a value does not fit."""
    gateway = gateway_of(frame.sparkSession)
    target = gateway.static("org.apache.spark.sql.types.DataType", "fromJson", wanted.json())
    if call(call(expression, "dataType"), "sameType", target):
        return expression
    conf = call(call(gateway_session(frame), "sessionState"), "conf")
    zone = gateway.new("scala.Some", call(conf, "sessionLocalTimeZone"))
    ansi = call(gateway.module("org.apache.spark.sql.catalyst.expressions.EvalMode$"), "ANSI")
    return gateway.new(_CAST, expression, target, zone, ansi)


def gateway_session(frame: DataFrame) -> JavaObject:
    """The session of a frame in the JVM."""
    return call(java_plan(frame), "sparkSession")


def references(expressions: Sequence[JavaObject]) -> set[int]:
    """Catalyst's ids of the columns that expressions name."""
    found: set[int] = set()
    for expression in expressions:
        for one in items_of(call(call(expression, "references"), "toSeq")):
            found.add(attribute_id(one))
    return found


def attribute_id(attribute: JavaObject) -> int:
    """Catalyst's id of a column."""
    found = call(call(attribute, "exprId"), "id")
    if not isinstance(found, int):
        raise TypeError("an id of Catalyst is a number")
    return found


def attributes_of(frame: DataFrame) -> dict[int, str]:
    """The names of a frame's columns by Catalyst's ids."""
    output = call(call(java_plan(frame), "analyzed"), "output")
    return {attribute_id(one): call_text(one, "name") for one in items_of(output)}
