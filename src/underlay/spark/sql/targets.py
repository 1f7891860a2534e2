"""Finds the table of a lake that a statement changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from underlay.api.lake import Lake
from underlay.errors import InvalidRequest
from underlay.spark.catalog.session_catalog import Names
from underlay.spark.catalog.version_name import has_version
from underlay.spark.jvm.gateway import call, call_text, gateway_of, java_session, scala_seq
from underlay.spark.sql.nodes import NamedRelation

SPARK_CATALOG = "spark_catalog"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementTarget:
    """A table, and its name in a statement: all of `name`, or its last parts, may qualify columns."""

    lake: Lake
    table: str
    name: tuple[str, ...]

    def column(self, parts: Sequence[str]) -> Sequence[str]:
        """The parts of a column's name without the table's."""
        lower, name = [part.lower() for part in parts], [part.lower() for part in self.name]
        for count in range(min(len(name), len(parts) - 1), 0, -1):
            if lower[:count] == name[-count:]:
                return parts[count:]
        return parts


def find_target(spark: SparkSession, names: Names, found: NamedRelation) -> StatementTarget | None:
    """The lake's table that a relation means; None when it is not ours. Raises InvalidRequest for an older version,
    which never changes.
    """
    parts = found.parts or []
    key = key_of_parts(spark, parts)
    entry = None if key is None else names.find(".".join(key))
    if key is None or entry is None or (len(parts) == 1 and is_view(spark, parts[0])):
        return None
    if has_version(entry.name):
        raise InvalidRequest("an older version of a table never changes", found=entry.name)
    name = found.name if list(found.name) != parts else (SPARK_CATALOG, *key)
    return StatementTarget(lake=names.lakes[entry.lake_url], table=entry.name, name=name)


def key_of_parts(spark: SparkSession, parts: Sequence[str]) -> tuple[str, str] | None:
    """The database and the table that a name of one to three parts means; None for other catalogs."""
    if len(parts) == 3 and parts[0].lower() == SPARK_CATALOG:
        parts = parts[1:]
    if len(parts) == 1:
        catalog = call(call(java_session(spark), "sessionState"), "catalog")
        return call_text(catalog, "getCurrentDatabase").lower(), parts[0].lower()
    return (parts[0].lower(), parts[1].lower()) if len(parts) == 2 else None


def is_view(spark: SparkSession, name: str) -> bool:
    """Whether a name of one part is a temporary view."""
    catalog = call(call(java_session(spark), "sessionState"), "catalog")
    return bool(call(catalog, "isTempView", scala_seq(gateway_of(spark), [name])))
