from __future__ import annotations

from threading import active_count

import pytest
from pyspark.sql import SparkSession

from underlay.api.lake import Lake
from underlay.spark import callbacks
from underlay.spark.relation import read_table

QUERIES = 12


def test_threads_do_not_grow_with_queries(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch):
    read_table(spark, lake, "shop.items").createOrReplaceTempView("called_back")
    before = active_count()
    monkeypatch.setattr(callbacks, "_MANY_THREADS", before + 6)
    monkeypatch.setattr(callbacks, "_KEPT", 2)
    for number in range(QUERIES):
        least = f"(select min(id) from called_back where id > {number})"
        assert spark.sql(f"select id from called_back where id = {least}").collect() == [(number + 1,)]
    assert active_count() < before + QUERIES
