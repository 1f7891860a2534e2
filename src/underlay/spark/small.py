"""What is small enough to be done by this process: DataFrames whose rows are collected, and sources to ingest."""

from __future__ import annotations

import re

import pyarrow as pa
from pyspark.sql import DataFrame

from underlay.spark.gateway import call, call_text, java_plan

SMALL_BYTES = 8 << 20
"""What Spark thinks to be larger is not small."""
SMALL_ROWS = 50_000
"""Spark's guess may be far off: files are compressed, and values grow on their way. No more rows are kept."""
SMALL_SOURCE_BYTES = 16 << 20
"""Sources to ingest that have no more together are read in this process, sooner than tasks would have begun."""
_GROWING = re.compile(r"^[\s:+-]*(Generate|Expand|MapIn|MapPartitions|FlatMap)", re.MULTILINE)
"""Steps of a plan that make rows of rows: Spark takes what comes out of them to be no more than what goes in."""


def collect_small(frame: DataFrame) -> pa.Table | None:
    """All rows, if they are few. Runs nothing if Spark takes them for many."""
    if not is_small(frame):
        return None
    rows = frame.limit(SMALL_ROWS + 1).toArrow()
    return rows if rows.num_rows <= SMALL_ROWS else None


def is_small(frame: DataFrame) -> bool:
    """Whether Spark takes the rows to be few. Runs nothing; over Spark Connect nothing is known."""
    if not hasattr(frame, "_jdf"):
        return False
    plan = call(java_plan(frame), "optimizedPlan")
    if int(call_text(call(plan, "stats"), "sizeInBytes")) > SMALL_BYTES:
        return False
    return _GROWING.search(call_text(plan, "toString")) is None
