"""Makes a lake's tables available in a Spark session by name, read by Spark itself."""

from __future__ import annotations

import warnings
from functools import cache

from pyspark.sql import SparkSession

from underlay.api.lake import Lake
from underlay.errors import Unsupported
from underlay.spark.api.data_source import register_source
from underlay.spark.catalog.follow import follow_lake, names_of
from underlay.spark.catalog.session_catalog import check_names
from underlay.spark.files.one_version import why_not_replace
from underlay.spark.source.driver_channel import DriverListener
from underlay.spark.sql.parser import pass_statements
from underlay.spark.start.open_session import has_gateway, open_session
from underlay.spark.start.session_lakes import forget_lake, remember_lake

_CONNECTED = (
    'over Spark Connect a lake can be used only with spark.read.format("underlay") and df.write.format("underlay"), '
    "not by table name"
)


def session(lake: Lake, spark: SparkSession | None = None) -> SparkSession:
    """A session that knows the lake's tables by name: `spark`, the active one, or a new local one.

    Names show the newest versions, whoever committed them, within the lake's staleness. The data source `underlay`
    means this lake; a Spark Connect session gets nothing else, and warns. Raises Unsupported for Spark before 4.0 and
    for a persistent metastore; Unavailable without Java; InvalidRequest when the session was stopped, or has another
    table of the same name.
    """
    opened = open_session(spark)
    if has_gateway(opened):
        refresh(opened, lake)
        register_source(opened, lake, _listener().line)
    else:
        register_source(opened, lake)
        _warn_of_connect()
    remember_lake(opened, lake)
    return opened


def refresh(spark: SparkSession, lake: Lake) -> list[str]:
    """Move the session's names to the newest versions, add new tables and remove dropped ones: at once, also of tables
    that no statement mentions. Returns the names that the session has now. Existing DataFrames keep their versions.

    A table that Spark cannot read is left out, with a warning that says why.
    """
    if not has_gateway(spark):
        raise Unsupported(_CONNECTED, found=type(spark).__module__, hint='Read with spark.read.format("underlay").')
    check_names(spark, [])
    names = names_of(spark)
    found = follow_lake(names, lake)
    pass_statements(spark, names)
    for name, failure in found.left_out.items():
        warnings.warn(f"Spark has no name {name}: {failure}", stacklevel=2)
    return found.known


def forget(spark: SparkSession, lake: Lake) -> None:
    """Remove the names of the lake's tables from the session."""
    names = names_of(spark)
    with names.lock:
        known = names.lake_at(lake.url) or lake
        names.lakes.pop(known.url, None)
        for entry in names.entries_of(known.url):
            names.forget(entry)
    forget_lake(spark, lake)


@cache
def _warn_of_connect() -> None:
    warnings.warn(_CONNECTED, stacklevel=3)


@cache
def _listener() -> DriverListener:
    """Answers this process's workers."""
    return DriverListener(why_not_replace)
