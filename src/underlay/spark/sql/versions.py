"""Resolves older versions in statements: VERSION AS OF 7, TIMESTAMP AS OF '2026-01-01', and DESCRIBE HISTORY."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from underlay.api.table import Table
from underlay.errors import InvalidRequest
from underlay.schema.arrow_aliases import AnyField
from underlay.spark.catalog.session_catalog import Names
from underlay.spark.change.expressions import named, resolved_column
from underlay.spark.jvm.gateway import JavaObject, call, java_plan
from underlay.spark.relation.relation import frame_of
from underlay.spark.sql.nodes import named_relation, option_of
from underlay.spark.sql.replacing import NodeReplacer
from underlay.spark.sql.targets import SPARK_CATALOG, StatementTarget, find_target

_AS_OF = re.compile(r"\bas\s+of\b", re.IGNORECASE)
_HISTORY = re.compile(
    r"\s*(?:describe|desc)\s+history\s+(?P<name>[^\s;]+)(?:\s+limit\s+(?P<most>\d+))?\s*;?\s*", re.IGNORECASE
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT = pa.string()
_FIELDS: list[AnyField] = [
    pa.field("version", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", "UTC")),
    pa.field("operation", _TEXT),
    pa.field("operationMetrics", pa.map_(_TEXT, _TEXT)),
    pa.field("numRows", pa.int64()),
    pa.field("numFiles", pa.int64()),
    pa.field("writer", _TEXT),
    pa.field("commitId", _TEXT),
]
_HISTORY_COLUMNS = pa.schema(_FIELDS)


def names_versions(text: str) -> bool:
    """Whether a text may name an older version."""
    return _AS_OF.search(text) is not None


def with_versions(spark: SparkSession, names: Names, plan: JavaObject) -> JavaObject:
    """A statement's plan, with versions of a lake's tables resolved. Raises VersionNotFound, NotFound."""
    return VersionFinder(spark, names).in_plan(plan)


class VersionFinder(NodeReplacer):
    """Replaces nodes that name versions."""

    def __init__(self, spark: SparkSession, names: Names) -> None:
        super().__init__(spark)
        self._names = names

    def replaced(self, kind: str, node: JavaObject) -> JavaObject:
        """The replacement of a node."""
        return self._version(node) if kind == "RelationTimeTravel" else node

    def _version(self, node: JavaObject) -> JavaObject:
        target = find_target(self._spark, self._names, named_relation(call(node, "relation")))
        if target is None:
            return node
        frame = frame_of(self._spark, self._open(node, target), is_asked_for=True)
        plan = java_plan(named(frame, (SPARK_CATALOG, *target.table.lower().split(".", 1))))
        return call(plan, "analyzed")

    def _open(self, node: JavaObject, target: StatementTarget) -> Table:
        version = option_of(call(node, "version"))
        if version is not None:
            text = str(version)
            if re.fullmatch(r"v?\d+", text):
                return target.lake.table(target.table, version=int(text.lstrip("v")))
            return target.lake.table(target.table, tag=text)
        moment = resolved_column(self._gateway, call(call(node, "timestamp"), "get"))
        asked = self._spark.sql("SELECT 1").select(f.unix_micros(moment.cast("timestamp"))).first()
        if asked is None or asked[0] is None:
            raise InvalidRequest("the time of TIMESTAMP AS OF is null or not understood", place=target.table)
        return target.lake.table(target.table, as_of=_EPOCH + timedelta(microseconds=asked[0]))


def asks_for_history(text: str) -> tuple[str, int | None] | None:
    """The table of DESCRIBE HISTORY, and how many versions are requested; None for any other statement. Spark's own
    parser would read HISTORY as a table's name.
    """
    found = _HISTORY.fullmatch(text)
    return None if found is None else (found["name"], None if found["most"] is None else int(found["most"]))


def history(spark: SparkSession, target: StatementTarget, most: int | None) -> JavaObject:
    """The versions of a table, the newest first."""
    versions = [
        {
            "version": one.version,
            "timestamp": one.committed,
            "operation": one.operation,
            "operationMetrics": [(name, str(count)) for name, count in one.counts.items()],
            "numRows": one.row_count,
            "numFiles": one.file_count,
            "writer": one.writer,
            "commitId": one.commit_id,
        }
        for one in target.lake.table(target.table).history(most)
    ]
    rows = pa.Table.from_pylist(versions, _HISTORY_COLUMNS)
    return call(java_plan(spark.createDataFrame(rows)), "analyzed")
