"""Puts other nodes in place of those of a statement's plan, wherever they stand."""

from __future__ import annotations

from pyspark.sql import SparkSession

from underlay.spark.jvm.gateway import JavaObject, call, gateway_of, scala_seq
from underlay.spark.jvm.plan_nodes import items_of
from underlay.spark.sql.nodes import kind_of


class NodeReplacer:
    """A partial function, which Spark calls for each node: a subclass says what takes the place of it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._gateway = gateway_of(spark)

    def in_plan(self, plan: JavaObject) -> JavaObject:
        """The plan with other nodes."""
        return call(plan, "transformDownWithSubqueries", self)

    def replaced(self, kind: str, node: JavaObject) -> JavaObject:
        """What takes the place of a node of this class: by default itself."""
        return node

    def isDefinedAt(self, node: JavaObject) -> bool:  # noqa: N802  # Scala's name
        """Whether the function is defined: always, if only as the node itself."""
        return node is not None

    def apply(self, node: JavaObject) -> JavaObject:
        """The replacement of a node."""
        with self._gateway.raising_errors():
            kind = kind_of(node)
            return self._with_queries(node) if kind == "UnresolvedWith" else self.replaced(kind, node)

    def applyOrElse(self, node: JavaObject, _: JavaObject) -> JavaObject:  # noqa: N802  # Scala's name
        """The same."""
        return self.apply(node)

    def _with_queries(self, node: JavaObject) -> JavaObject:
        """The queries of WITH, which Spark does not list as children of the plan."""
        parts = [call(node, "productElement", at) for at in range(int(str(call(node, "productArity"))))]
        queries = []
        for one in items_of(call(node, "cteRelations")):
            changed = self.in_plan(call(one, "_2"))
            queries.append(self._gateway.new("scala.Tuple3", call(one, "_1"), changed, call(one, "_3")))
        return call(node, "copy", parts[0], scala_seq(self._gateway, queries), *parts[2:])

    def toString(self) -> str:  # noqa: N802  # Java's name
        """What Java prints."""
        return "tables of a lake"

    class Java:
        """What py4j makes a proxy for."""

        implements = ("scala.PartialFunction",)
