from __future__ import annotations

from threading import active_count

import pytest
from pyspark.sql import SparkSession

from underlay.api.lake import Lake
from underlay.spark.jvm import gateway as callbacks
from underlay.spark.relation.relation import read_table

QUERIES = 12


def test_threads_do_not_grow_with_queries(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch):
    found = read_table(spark, lake, "shop.items")
    before = active_count()
    monkeypatch.setattr(callbacks, "_MANY_THREADS", before + 6)
    monkeypatch.setattr(callbacks, "_KEPT", 2)
    for number in range(QUERIES):
        least = "(select min(id) from {found} where id > " + f"{number})"
        asked = spark.sql("select id from {found} where id = " + least, found=found)
        assert asked.collect() == [(number + 1,)]
    assert active_count() < before + QUERIES
