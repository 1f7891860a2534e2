"""Runs Spark jobs in parallel, in a classic session or over Spark Connect.

Results arrive as jobs end, long before the slowest does. Spark retries a task that fails or whose executor is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from typing import TypeVar
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id
from pyspark.util import inheritable_thread_target

from underlay.spark.start.open_session import has_gateway, is_local

T = TypeVar("T")
_MANY_ROWS = 1 << 20
_LOOK_SECONDS = 0.1
_LEAST_ON_CLUSTER = 8
"""At least this many tasks on a cluster: executors may still be starting when the jobs are created."""


def parallel_tasks(spark: SparkSession) -> int:
    """How many tasks Spark runs at once. Over Spark Connect, inferred from how a query's rows are partitioned."""
    if has_gateway(spark):
        context = spark.sparkContext
        return max(context.defaultParallelism, 1 if is_local(str(context.master)) else _LEAST_ON_CLUSTER)
    parts = spark.range(_MANY_ROWS).select(spark_partition_id().alias("part"))
    return max(parts.distinct().count(), 1)


def run_jobs(spark: SparkSession, jobs: Sequence[Callable[[], T]], most: int) -> Generator[T, None, None]:
    """Run each of these jobs, and yield the results as they end; at most `most` run at once.

    Ending the iteration, or an interrupt, stops the jobs. Raises a failed job's Spark error.
    """
    tag = f"underlay-{uuid4().hex}"

    def tagged(job: Callable[[], T]) -> T:
        spark.addTag(tag)
        return job()

    begun: list[Future[T]] = []
    with ThreadPoolExecutor(max_workers=max(min(most, len(jobs)), 1), thread_name_prefix="underlay-spark") as pool:
        try:
            # Each has its own copy of this thread's settings: Spark writes into it.
            begun.extend(pool.submit(inheritable_thread_target(spark)(tagged), job) for job in jobs)
            for done in as_completed(begun):
                yield done.result()
        except BaseException:
            _stop(spark, tag, begun)
            raise


def _stop(spark: SparkSession, tag: str, jobs: Sequence[Future[T]]) -> None:
    """Interrupt the jobs until all have ended: one may have been about to begin."""
    left = {job for job in jobs if not job.cancel()}
    while left := wait(left, timeout=_LOOK_SECONDS).not_done:
        spark.interruptTag(tag)
