"""The answers of statements: rows, as a plan that needs no job."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from underlay.change.update.result import Changed
from underlay.spark.jvm.gateway import JavaObject, call, java_plan


def counts_of(spark: SparkSession, counts: Mapping[str, int]) -> JavaObject:
    """One row of counts."""
    columns = ", ".join(f"{number}L AS {name}" for name, number in counts.items())
    return call(java_plan(spark.sql(f"SELECT {columns}")), "analyzed")


def nothing(spark: SparkSession) -> JavaObject:
    """No rows and no columns, like Spark's answer to definitions."""
    return call(java_plan(spark.createDataFrame([], "nothing int").select()), "analyzed")


def merged(spark: SparkSession, done: Changed) -> JavaObject:
    """Delta Lake's answer to MERGE."""
    return counts_of(
        spark,
        {
            "num_affected_rows": done.rows_updated + done.rows_deleted + done.rows_inserted,
            "num_updated_rows": done.rows_updated,
            "num_deleted_rows": done.rows_deleted,
            "num_inserted_rows": done.rows_inserted,
        },
    )


def inserted(spark: SparkSession, count: int) -> JavaObject:
    """Delta Lake's answer to INSERT."""
    return counts_of(spark, {"num_affected_rows": count, "num_inserted_rows": count})
