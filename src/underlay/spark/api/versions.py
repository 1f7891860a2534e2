"""Reads older versions of tables, as DataFrames and as names for SQL."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from underlay.api.lake import Lake
from underlay.errors import InvalidRequest
from underlay.spark.catalog.follow import names_of
from underlay.spark.catalog.session_catalog import check_names
from underlay.spark.catalog.version_name import has_version, open_named
from underlay.spark.relation.relation import frame_of
from underlay.spark.sql.parser import pass_statements
from underlay.spark.types.spark_types import quoted


def table(spark: SparkSession, lake: Lake, name: str) -> DataFrame:
    """A table as a DataFrame: `taxi.trips`, or an older version, `taxi.trips@v7`, `taxi.trips@tag`.

    Later commits do not change it. Raises TableNotFound, VersionNotFound, NotFound for a tag, Unsupported.
    """
    return frame_of(spark, open_named(lake, name), is_asked_for=has_version(name))


def register_version(spark: SparkSession, lake: Lake, name: str) -> str:
    """Give an older version a name in SQL: `taxi.trips@v7` becomes taxi.`trips@v7`. Returns the name, quoted.

    A tag is followed when it moves. Raises what `table` raises, and InvalidRequest for a name without a version.
    """
    if not has_version(name):
        raise InvalidRequest(
            "the name does not include a version", found=name, hint="Write taxi.trips@v7 or taxi.trips@tag."
        )
    opened = open_named(lake, name)
    check_names(spark, [name])
    names = names_of(spark)
    pass_statements(spark, names)
    with names.lock:
        names.check_free(lake.url, [name])
        names.lakes.setdefault(lake.url, lake)
        names.make_databases([name])
        names.put(lake.url, name, opened)
    return ".".join(map(quoted, name.split(".", 1)))
