"""Decides what is small enough for the driver: DataFrames whose rows it collects, and sources that it ingests.

The limit on rows is the same for a write and for a stream's micro-batch. They differ in how much is known beforehand:
Spark estimates the size of a DataFrame, but usually not of a micro-batch, whose rows are computed on demand. For these
the previous batch decides whether to try.
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

SMALL_ROWS = 50_000
"""The driver collects at most this many rows. Spark's estimate of bytes may be far off: files are compressed."""
SMALL_BYTES = 8 << 20
"""The driver collects at most this many bytes, by Spark's estimate or by the size in memory of the batch before."""
SMALL_SOURCE_BYTES = 16 << 20
"""Sources of at most this size together are ingested in this process, before tasks would have started."""
_FEW_TASKS = 16
_UNKNOWN_BYTES = (1 << 63) - 1
"""Spark's estimate for a scan whose size it does not know."""
_PACKED = 10
"""About the largest ratio between rows' size in memory and in files."""
_TOO_LARGE = "spark.driver.maxResultSize"
"""The setting that Spark's error names when tasks return more bytes than the driver accepts."""
_NOT_TRIED = re.compile(r"^[\s:+-]*(Generate|Expand|MapIn|MapPartitions|FlatMap|CollectMetrics)", re.MULTILINE)
"""Plan nodes that may multiply rows, which Spark's estimate ignores. And CollectMetrics: a discarded attempt must not
reach the user's Observation."""
_LOCAL_LIMIT = "org.apache.spark.sql.catalyst.plans.logical.LocalLimit"
_LITERALS = "org.apache.spark.sql.catalyst.expressions.Literal$"


def collect_small(frame: DataFrame) -> pa.Table | None:
    """All rows, if they are small. Runs nothing if Spark's estimate exceeds the limit."""
    return _collect(frame.limit(SMALL_ROWS + 1), SMALL_ROWS) if is_small(frame) else None


def is_small(frame: DataFrame) -> bool:
    """Whether Spark's estimate is small. Runs nothing. Spark Connect has no estimates."""
    if not hasattr(frame, "_jdf"):
        return False
    plan = call(java_plan(frame), "optimizedPlan")
    return _estimated_bytes(plan) <= SMALL_BYTES and _NOT_TRIED.search(call_text(plan, "toString")) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRows:
    """How many rows a written batch had, and about how much memory they took."""

    count: int
    size_bytes: int

    @property
    def most(self) -> int:
        """How many rows of this size are within the limit."""
        return min(SMALL_ROWS, SMALL_BYTES * self.count // max(self.size_bytes, 1))


def seen_in(written: pa.Table | Sequence[Staged]) -> SeenRows | None:
    """What is known about rows after they were written; None when there were none."""
    if isinstance(written, pa.Table):
        seen = SeenRows(count=written.num_rows, size_bytes=written.nbytes)
    else:
        files = [file for staged in written for file in staged.entries]
        size_bytes = _PACKED * sum(file.size_bytes for file in files)
        seen = SeenRows(count=sum(map(count_rows, files)), size_bytes=size_bytes)
    return seen if seen.count else None


def collect_batch(frame: DataFrame, before: SeenRows | None) -> pa.Table | None:
    """All rows of a micro-batch, if they are small. `before` describes the previous batch. Runs nothing if the batch is
    known to exceed the limit.
    """
    size_bytes = _estimated_bytes(call(java_plan(frame), "optimizedPlan"))
    if size_bytes < _UNKNOWN_BYTES:
        most = SMALL_ROWS if size_bytes <= SMALL_BYTES else 0
    else:
        most = before.most if before is not None and before.count <= before.most else 0
    return _collect(_limited(frame, most + 1), most) if most else None


def collect_rows(frame: DataFrame) -> pa.Table:
    """All rows. Makes fields of structs nullable: PySpark cannot collect a null struct with a field that is never
    null.
    """
    if not any(isinstance(field.dataType, StructType | ArrayType | MapType) for field in frame.schema.fields):
        return frame.toArrow()
    java = java_frame(frame)
    loosened = call(java, "to", call(call(java, "schema"), "asNullable"))
    return data_frame(loosened, frame.sparkSession).toArrow()


def _collect(limited: DataFrame, most: int) -> pa.Table | None:
    """The rows of a frame, if there are at most `most`. If there are more, they are discarded, and tasks compute them
    again.
    """
    try:
        rows = collect_rows(limited)
    except GATEWAY_ERRORS as error:
        if _TOO_LARGE in str(error):
            return None  # few rows, and huge ones
        raise
    return rows if rows.num_rows <= most else None


def _estimated_bytes(plan: JavaObject) -> int:
    return int(call_text(call(plan, "stats"), "sizeInBytes"))


def _limited(frame: DataFrame, most: int) -> DataFrame:
    """At least `most` rows, if there are that many. A limit over all tasks costs a shuffle; a limit for each task does
    not, and a few tasks collect only a few rows too many.
    """
    logical = call(java_plan(frame), "logical")
    return frame.limit(most) if _task_count(logical) > _FEW_TASKS else limited_by_task(frame, most)


def limited_by_task(frame: DataFrame, most: int) -> DataFrame:
    """At most `most` rows of each task."""
    logical = call(java_plan(frame), "logical")
    gateway = gateway_of(frame.sparkSession)
    number = call(gateway.module(_LITERALS), "apply", most)
    return frame_of_plan(gateway.new(_LOCAL_LIMIT, number, logical), frame.sparkSession)


def _task_count(logical: JavaObject) -> int:
    """The number of tasks of a plan that only scans rows; for any other plan, more than a few."""
    if call_text(logical, "nodeName") != "LogicalRDD":
        return _FEW_TASKS + 1
    return call_number(call(logical, "rdd"), "getNumPartitions")
