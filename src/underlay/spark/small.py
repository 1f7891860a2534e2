"""Which DataFrames are small enough to be collected and written by this process."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame

from underlay.spark.gateway import call, call_text, java_plan

SMALL_BYTES = 8 << 20
"""What Spark thinks to be no larger is small."""
_GROWING = re.compile(r"^[\s:+-]*(Generate|Expand|MapIn|MapPartitions|FlatMap)", re.MULTILINE)
"""Steps of a plan that make rows of rows: Spark takes what comes out of them to be no more than what goes in."""


def is_small(frame: DataFrame) -> bool:
    """Whether Spark knows the rows to be few. Runs nothing; over Spark Connect nothing is known."""
    if not hasattr(frame, "_jdf"):
        return False
    plan = call(java_plan(frame), "optimizedPlan")
    if int(call_text(call(plan, "stats"), "sizeInBytes")) > SMALL_BYTES:
        return False
    return _GROWING.search(call_text(plan, "toString")) is None
