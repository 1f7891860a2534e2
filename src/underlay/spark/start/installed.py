"""Checks whether PySpark is installed, and makes the error when it is not."""

from __future__ import annotations

from importlib.util import find_spec

from underlay.errors import Unsupported

_NEEDED = ("pyspark", "py4j", "pyspark.sql.datasource")
"""The modules that are needed; the last one came with Spark 4.0."""


def has_pyspark() -> bool:
    """Whether PySpark is installed and new enough."""
    return all(map(_is_there, _NEEDED))


def needs_pyspark(name: str) -> Unsupported:
    """The error of a name that cannot be used without PySpark."""
    return Unsupported(
        f"underlay.spark.{name} needs PySpark",
        expected="pyspark 4.0 or later",
        found="an older one" if _is_there(_NEEDED[0]) else "none",
        hint="Run \"pip install 'underlay[spark]'\".",
    )


def _is_there(module: str) -> bool:
    return find_spec(module) is not None
