"""What Spark's listeners know."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def settle(spark: SparkSession) -> None:
    """Wait until Spark's trackers know of all that has happened: they are told of it later."""
    context: Any = spark.sparkContext._jsc
    context.sc().listenerBus().waitUntilEmpty(120_000)
