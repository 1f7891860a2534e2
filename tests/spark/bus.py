"""What Spark's listeners know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession


def settle(spark: SparkSession) -> None:
    """Wait until Spark's trackers know of all that has happened: they are told of it later."""
    context: Any = spark.sparkContext._jsc
    context.sc().listenerBus().waitUntilEmpty(120_000)


@contextmanager
def job_group(spark: SparkSession, name: str) -> Iterator[None]:
    """Jobs that this thread starts in the block have this group. Those of the tests after it have none again."""
    spark.sparkContext.setJobGroup(name, "")
    try:
        yield
    finally:
        context: Any = spark.sparkContext._jsc
        context.clearJobGroup()


def jobs_of(spark: SparkSession, group: str | None = None) -> set[int]:
    """The jobs of a group, or those that have none."""
    settle(spark)
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
