"""A lake in a Spark session: every table under its own name, read by Spark itself."""

from __future__ import annotations

import atexit
import shutil
import warnings
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from pyspark.sql import SparkSession

from underlay.api.lake import Lake
from underlay.errors import Unsupported
from underlay.spark.catalog import check_names, register_table
from underlay.spark.start import open_session


def session(lake: Lake, spark: SparkSession | None = None) -> SparkSession:
    """A session that knows the lake's tables by name: `spark`, the active one, or a new local one.

    Raises Unsupported for Spark before 4.0, Spark Connect and a persistent metastore; Unavailable without a Java.
    """
    opened = open_session(spark)
    refresh(opened, lake)
    return opened


def refresh(spark: SparkSession, lake: Lake) -> list[str]:
    """Make the session see the newest versions, and tables that are new. Returns the names that it knows now.

    A table that Spark cannot read by itself is left out, with a warning that says why.
    """
    names = [table.name for table in lake.tables()]
    check_names(spark, names)
    known = []
    for name in names:
        try:
            register_table(spark, lake, _guards(), name)
            known.append(name)
        except Unsupported as error:
            warnings.warn(f"Spark does not know {name}: {error}", stacklevel=2)
    return known


@cache
def _guards() -> Path:
    """The folder of this process that catalog entries point to."""
    found = mkdtemp(prefix="underlay-spark-")
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return Path(found)
