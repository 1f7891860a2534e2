"""The tables of a statement: each name in its plan becomes the plan of one version, before Spark looks any name up.

The session has no names of tables at all, so that there are none to reach by another way.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from underlay.api.table import Table
from underlay.errors import InvalidRequest, UnderlayError
from underlay.spark.change.expressions import named
from underlay.spark.jvm.gateway import JavaObject, call, call_number, call_text, java_plan, scala_seq
from underlay.spark.jvm.plan_nodes import items_of
from underlay.spark.relation.relation import frame_of
from underlay.spark.sql.nodes import named_relation, option_of
from underlay.spark.sql.replacing import NodeReplacer
from underlay.spark.sql.targets import SPARK_CATALOG

_NULLS_LAST = "org.apache.spark.sql.catalyst.expressions.NullsLast$"
OpenTable = Callable[[str, int | None, str | None, datetime | None], Table]
"""A table that the caller may read, at one version for good, by name and perhaps version, tag or time. Raises
TableNotFound."""


class StatementTables(NodeReplacer):
    """Opens the tables that a plan names, each once. `versions` are those that were opened, by `dataset.table` or, of
    a version that the statement pins itself, `dataset.table@7`."""

    def __init__(self, spark: SparkSession, open_table: OpenTable) -> None:
        super().__init__(spark)
        self._open = open_table
        self._known: dict[tuple[str, int | None, str | None, datetime | None], Table] = {}
        self.versions: dict[str, int] = {}
        self.are_nulls_last = False
        """Whether all sorts have nulls last, also those that do not say so."""
        self.failure: UnderlayError | None = None
        """What kept a table from being opened: the JVM, which calls this, hands on its text only."""

    def replaced(self, kind: str, node: JavaObject) -> JavaObject:
        """What takes the place of a node."""
        if kind == "Sort" and self.are_nulls_last:
            return self._sorted(node)
        if kind == "RelationTimeTravel":
            return self._plan(_parts(call(node, "relation")), *_point_of(node))
        if kind != "UnresolvedRelation":
            return node
        parts = _parts(node)
        return node if len(parts) == 1 else self._plan(parts)

    def _plan(
        self, parts: list[str], version: int | None = None, tag: str | None = None, moment: datetime | None = None
    ) -> JavaObject:
        try:
            table = self._table(".".join(parts), version, tag, moment)
            frame = frame_of(self._spark, table, is_asked_for=True)  # two versions may stand in one statement
        except UnderlayError as error:
            self.failure = error
            raise
        name = (SPARK_CATALOG, *table.name.lower().split(".", 1))
        return call(java_plan(named(frame, name)), "analyzed")

    def _sorted(self, node: JavaObject) -> JavaObject:
        last = self._gateway.module(_NULLS_LAST)
        orders = []
        for one in items_of(call(node, "order")):
            parts = [call(one, "productElement", at) for at in range(4)]
            orders.append(call(one, "copy", parts[0], parts[1], last, parts[3]))
        rest = [call(node, "productElement", at) for at in range(1, call_number(node, "productArity"))]
        return call(node, "copy", scala_seq(self._gateway, orders), *rest)

    def _table(self, name: str, version: int | None, tag: str | None, moment: datetime | None) -> Table:
        key = (name.lower(), version, tag, moment)
        if key not in self._known:
            found = self._open(name, version, tag, moment)
            number = found.snapshot().version
            is_pinned = key[1:] != (None, None, None)
            self.versions[f"{found.name}@{number}" if is_pinned else found.name] = number
            self._known[key] = found
        return self._known[key]


def _parts(node: JavaObject) -> list[str]:
    return list(named_relation(node).parts or [])


def _point_of(node: JavaObject) -> tuple[int | None, str | None, datetime | None]:
    """Which version a node asks for. Raises InvalidRequest for a time that is none."""
    version = option_of(call(node, "version"))
    if version is not None:
        text = str(version)
        return (int(text), None, None) if text.isascii() and text.isdecimal() else (None, text, None)
    text = call_text(call(call(node, "timestamp"), "get"), "toString")
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRequest("TIMESTAMP AS OF is not a time", expected="2026-01-31 12:00:00", found=text[:80]) from None
    return None, None, found if found.tzinfo else found.replace(tzinfo=UTC)
