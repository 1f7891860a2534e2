"""What is small enough to be done by this process: DataFrames whose rows are collected, and sources to ingest.

The rows of micro-batches that are few enough to be written by the driver.

A micro-batch is a scan of rows that are made when they are asked for, and Spark mostly does not know their size. What
the batch before was like says whether to try: a bounded number of rows is collected, and when there are more they are
made again for tasks to write.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, MapType, StructType

from underlay.change.rows.staged import Staged
from underlay.index.state import count_rows
from underlay.spark.jvm.gateway import (
    GATEWAY_ERRORS,
    JavaObject,
    call,
    call_number,
    call_text,
    data_frame,
    frame_of_plan,
    gateway_of,
    java_frame,
    java_plan,
)

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


FEW_ROWS = 20_000
_FEW_BYTES = 16 << 20
"""In memory."""
_FEW_TASKS = 16
_UNKNOWN_BYTES = (1 << 63) - 1
"""What Spark takes a scan to have whose size it does not know."""
_PACKED = 10
"""How many times fewer bytes rows have in files than in memory, at most about."""
_LOCAL_LIMIT = "org.apache.spark.sql.catalyst.plans.logical.LocalLimit"
_LITERALS = "org.apache.spark.sql.catalyst.expressions.Literal$"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRows:
    """The rows of a batch that was written, and their bytes in memory, about."""

    count: int
    size_bytes: int

    @property
    def most(self) -> int:
        """How many rows like these are few."""
        return min(FEW_ROWS, _FEW_BYTES * self.count // max(self.size_bytes, 1))


def seen_in(written: pa.Table | Sequence[Staged]) -> SeenRows | None:
    """What is known of rows after they were written; None when there were none."""
    if isinstance(written, pa.Table):
        seen = SeenRows(count=written.num_rows, size_bytes=written.nbytes)
    else:
        files = [file for staged in written for file in staged.entries]
        size_bytes = _PACKED * sum(file.size_bytes for file in files)
        seen = SeenRows(count=sum(map(count_rows, files)), size_bytes=size_bytes)
    return seen if seen.count else None


def collect_few(frame: DataFrame, before: SeenRows | None) -> pa.Table | None:
    """All rows of a micro-batch, if they are few. `before` is what the last batch was like. Runs nothing when there are
    many, as far as is known."""
    size_bytes = int(call_text(call(call(java_plan(frame), "optimizedPlan"), "stats"), "sizeInBytes"))
    if size_bytes < _UNKNOWN_BYTES:
        most = FEW_ROWS if size_bytes <= SMALL_BYTES else 0
    else:
        most = before.most if before is not None and before.count <= before.most else 0
    if not most:
        return None
    rows = collect_rows(_limited(frame, most + 1))
    return rows if rows.num_rows <= most else None


def _limited(frame: DataFrame, most: int) -> DataFrame:
    """At least so many rows, if there are so many. A limit for all tasks costs a shuffle; one for each task does not,
    and few tasks collect few rows."""
    logical = call(java_plan(frame), "logical")
    if _task_count(logical) > _FEW_TASKS:
        return frame.limit(most)
    gateway = gateway_of(frame.sparkSession)
    number = call(gateway.module(_LITERALS), "apply", most)
    return frame_of_plan(gateway.new(_LOCAL_LIMIT, number, logical), frame.sparkSession)


def _task_count(logical: JavaObject) -> int:
    """The tasks of a plan that only scans rows; for any other more than few."""
    if call_text(logical, "nodeName") != "LogicalRDD":
        return _FEW_TASKS + 1
    return call_number(call(logical, "rdd"), "getNumPartitions")
