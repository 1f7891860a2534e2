"""What is small enough to be done by this process: DataFrames whose rows are collected, and sources to ingest."""

from __future__ import annotations

import re

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, MapType, StructType

from underlay.spark.gateway import GATEWAY_ERRORS, call, call_text, data_frame, java_frame, java_plan

SMALL_BYTES = 8 << 20
"""What Spark thinks to be larger is not small."""
SMALL_ROWS = 50_000
"""Spark's guess may be far off: files are compressed, and values grow on their way. No more rows are kept."""
SMALL_SOURCE_BYTES = 16 << 20
"""Sources to ingest that have no more together are read in this process, sooner than tasks would have begun."""
_TOO_LARGE = "spark.driver.maxResultSize"
"""What Spark's error names when tasks hand back more bytes than the driver takes."""
_NOT_TRIED = re.compile(r"^[\s:+-]*(Generate|Expand|MapIn|MapPartitions|FlatMap|CollectMetrics)", re.MULTILINE)
"""Steps of a plan that make rows of rows: Spark takes what comes out of them to be no more than what goes in. And what
a frame observes, which must not be told of rows that were collected in vain."""


def collect_small(frame: DataFrame) -> pa.Table | None:
    """All rows, if they are few. Runs nothing if Spark takes them for many."""
    if not is_small(frame):
        return None
    try:
        rows = collect_rows(frame.limit(SMALL_ROWS + 1))
    except GATEWAY_ERRORS as error:
        if _TOO_LARGE in str(error):
            return None  # few rows, and huge ones
        raise
    return rows if rows.num_rows <= SMALL_ROWS else None


def collect_rows(frame: DataFrame) -> pa.Table:
    """All rows. PySpark cannot collect a struct that is null and has a field that never is, unless the field may be."""
    if not any(isinstance(field.dataType, StructType | ArrayType | MapType) for field in frame.schema.fields):
        return frame.toArrow()
    java = java_frame(frame)
    loosened = call(java, "to", call(call(java, "schema"), "asNullable"))
    return data_frame(loosened, frame.sparkSession).toArrow()


def is_small(frame: DataFrame) -> bool:
    """Whether Spark takes the rows to be few. Runs nothing; over Spark Connect nothing is known."""
    if not hasattr(frame, "_jdf"):
        return False
    plan = call(java_plan(frame), "optimizedPlan")
    if int(call_text(call(plan, "stats"), "sizeInBytes")) > SMALL_BYTES:
        return False
    return _NOT_TRIED.search(call_text(plan, "toString")) is None
