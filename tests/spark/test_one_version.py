"""A query reads one version of a table, unless its user asked for others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import SparkSession

import underlay as ul
from underlay.api.lake import Lake
from underlay.errors import InvalidRequest
from underlay.spark.one_version import VersionsInUse
from underlay.spark.relation import read_table


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = ul.connect(tmp_path)
    found.create_table("one.rows", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2]}))
    return found


def test_two_versions_that_nobody_asked_for_are_refused(spark: SparkSession, lake: Lake):
    old = read_table(spark, lake, "one.rows")
    lake.table("one.rows").append(pa.table({"id": [3]}))
    new = read_table(spark, lake, "one.rows")
    with pytest.raises(
        SparkRuntimeException, match=r"two versions of one\.rows in one query: 1 and 2.*read_table"
    ) as raised:
        old.union(new).collect()
    assert len(str(raised.value)) < 300  # what Spark shows of an error in a callback has a trace of 100 lines
    with pytest.raises(Exception, match=r"two versions of one\.rows in one query: 1 and 2"):  # in a thread of Spark's
        old.join(new, "id").collect()
    assert old.count() == 2
    assert new.count() == 3


def test_versions_that_were_asked_for_stand_beside_others(spark: SparkSession, lake: Lake):
    lake.table("one.rows").append(pa.table({"id": [3]}))
    lake.table("one.rows").tag("old", version=1)
    new = read_table(spark, lake, "one.rows")
    for asked in ({"version": 1}, {"tag": "old"}):
        old = read_table(spark, lake, "one.rows", **asked)
        assert new.join(old, "id", "left_anti").collect() == [(3,)]


def test_one_version_may_occur_many_times(spark: SparkSession, lake: Lake):
    frame = read_table(spark, lake, "one.rows")
    again = read_table(spark, lake, "one.rows")
    query = """with t as (select id from {a} where id < 9)
               select count(*) from t join {b} using (id)
               where id in (select id from {a}) and id < (select 9 from {b} limit 1)"""
    assert spark.sql(query, a=frame, b=again).collect() == [(2,)]
    cached = frame.cache()
    try:
        assert cached.join(again, "id").count() == 2
    finally:
        cached.unpersist()


def test_executions_that_are_long_over_are_forgotten():
    versions = VersionsInUse()
    for execution in range(5000):
        versions.add(str(execution), "a.b", "here", 1)
    versions.add("0", "a.b", "here", 2)
    with pytest.raises(InvalidRequest, match=r"two versions of a\.b"):
        versions.add("4999", "a.b", "here", 2)
