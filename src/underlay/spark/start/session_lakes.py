"""Finds the table that a name means: in the lake that the caller gives, or in one that the session knows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import InvalidRequest
from underlay.index.catalog import split_name
from underlay.spark.jvm.gateway import JavaObject, call_text
from underlay.spark.start.open_session import has_gateway
from underlay.store.directory import is_same_directory, local_root

_lakes: dict[str, dict[str, Lake]] = {}
"""The lakes of each application, or of each session of Spark Connect, by URL."""
_source_lakes: dict[str, str | None] = {}
"""The URL of the lake that `format("underlay")` uses by default, for each session of this process."""


def remember_lake(spark: SparkSession, lake: Lake) -> None:
    """From now on, look up names without a lake in this lake too."""
    known = _lakes.setdefault(_application(spark), {})
    if lake.url in known or not any(is_same_directory(url, lake.url) for url in known):
        known[lake.url] = lake


def forget_lake(spark: SparkSession, lake: Lake) -> None:
    """No longer look up names in this lake."""
    known = _lakes.get(_application(spark), {})
    for url in [url for url in known if url == lake.url or is_same_directory(url, lake.url)]:
        del known[url]


def find_table(spark: SparkSession, table: Table | str, lake: Lake | None) -> Table:
    """The table to write to. Raises TableNotFound, and InvalidRequest for an invalid name or when no lake is known."""
    return table if isinstance(table, Table) else find_lake(spark, table, lake).table(table)


def find_lake(spark: SparkSession, name: str, lake: Lake | None) -> Lake:
    """The given lake, else the session's only one, else the only one that has a table of this name. Raises
    InvalidRequest.
    """
    split_name(name)
    if lake is not None:
        return lake
    known = list(_lakes.get(_application(spark), {}).values())
    if len(known) > 1:
        known = [one for one in known if any(table.name == name for table in one.tables())]
    if len(known) != 1:
        raise InvalidRequest(
            f"cannot tell which lake {name} is in",
            found=f"{len(known)} lakes of this session",
            hint="Give lake=…, or a table: lake.table(…); or call underlay.spark.session(lake, spark) first.",
        )
    return known[0]


def find_lake_of(spark: SparkSession | None, name: str, lake: Lake | None) -> Lake:
    """The same when there may be no session yet."""
    if lake is not None:
        return lake
    known = spark if spark is not None else SparkSession.getActiveSession()
    if known is None:
        raise InvalidRequest(f"cannot tell which lake {name} is in", hint="Give lake=…, or a table: lake.table(…).")
    return find_lake(known, name, None)


def remember_source_lake(session: JavaObject, url: str | None) -> None:
    """Make the lake at this URL the session's default for `format("underlay")`."""
    _source_lakes[call_text(session, "sessionUUID")] = url


def may_write_to(session: JavaObject, named: str | None, url: str) -> bool:
    """Whether `format("underlay")` may be writing to the lake at this URL in a session, if the option `lake` is
    `named`.

    Yes in case of doubt: a copied session has its original's lake, which is unknown here, and a bucket has several
    URLs.
    """
    chosen = named or _source_lakes.get(call_text(session, "sessionUUID")) or os.environ.get("UNDERLAY_LAKE")
    if not chosen:
        return True
    if "://" not in chosen:
        chosen = Path(chosen).absolute().as_uri()
    if local_root(chosen) is not None or local_root(url) is not None:
        return is_same_directory(chosen, url)
    return chosen.rstrip("/") == url or chosen.partition("://")[0] != url.partition("://")[0]


def _application(spark: SparkSession) -> str:
    connected: Any = spark  # only Spark Connect sessions have an id
    return str(spark.sparkContext.applicationId if has_gateway(spark) else connected.session_id)
