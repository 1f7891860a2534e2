"""Hot partitions in spark.sql, on the host that has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.hot.trips import SCHEMA, trips
from underlay.api.lake import Lake
from underlay.spark import forget, read_table, session

pytestmark = pytest.mark.local_only


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Iterator[Lake]:
    found = ul.connect(tmp_path / "lake", hot=tmp_path / "hot")
    found.create_table("hot.trips", SCHEMA).append(trips([1, 2], 100))
    yield session(found, spark) and found
    forget(spark, found)


def ids(spark: SparkSession, where: str = "true") -> list[int]:
    return [row.id for row in spark.sql(f"select id from hot.trips where {where} order by id").collect()]


def test_spark_sees_each_append_and_each_seal_once(spark: SparkSession, lake: Lake):
    with lake.table("hot.trips").hot() as hot:
        hot.append(trips([5, 90_000], 0))
        assert ids(spark) == [0, 1, 100, 101]
        frame = read_table(spark, lake, "hot.trips")
        hot.append(trips([6], 2))
        assert ids(spark, "zone = 'LGA' and id < 100") == [1]
        hot.seal(before="2024-01-02")
        assert ids(spark) == [0, 1, 2, 100, 101]
        assert frame.count() == 4
