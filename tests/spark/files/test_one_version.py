"""A query reads one version of a table, unless its user asked for others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, SparkRuntimeException
from pyspark.sql import SparkSession

import underlay as ul
from underlay.api.lake import Lake
from underlay.errors import CommitConflict, InvalidRequest
from underlay.spark.api.data_source import register_source
from underlay.spark.api.session import forget, refresh, session
from underlay.spark.api.write import overwrite
from underlay.spark.files.one_version import Queries, VersionGuard, why_not_replace
from underlay.spark.jvm.gateway import call, java_session
from underlay.spark.jvm.hadoop_path import revision_url
from underlay.spark.relation.relation import read_table
from underlay.spark.start.session_lakes import may_write_to
from underlay.spark.tasks import collect as small


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


def test_cached_frame_of_an_older_version_is_refused_beside_a_new_one(spark: SparkSession, lake: Lake):
    old = read_table(spark, lake, "one.rows").cache()
    try:
        assert old.count() == 2
        lake.table("one.rows").append(pa.table({"id": [3]}))
        new = read_table(spark, lake, "one.rows")
        with pytest.raises(SparkRuntimeException, match=r"two versions of one\.rows in one query: 1 and 2"):
            old.where("id > 0").union(new).collect()
        assert new.where("id > 1").count() == 2
        assert old.union(read_table(spark, lake, "one.rows", version=2)).count() == 5
        assert old.count() == 2
    finally:
        old.unpersist()


def test_executions_that_are_long_over_are_forgotten():
    queries = Queries()
    for execution in range(5000):
        queries.find(str(execution)).add("a.b", "here", 1)
    queries.find("0").add("a.b", "here", 2)
    with pytest.raises(InvalidRequest, match=r"two versions of a\.b"):
        queries.find("4999").add("a.b", "here", 2)


@pytest.mark.parametrize("is_large", [False, True])
def test_rows_that_came_after_a_frame_are_not_overwritten_by_it(
    spark: SparkSession, lake: Lake, is_large: bool, monkeypatch: pytest.MonkeyPatch
):
    if is_large:
        monkeypatch.setattr(small, "SMALL_BYTES", -1)
    session(lake, spark)
    try:
        frames = [
            spark.table("one.rows").where("id > 1"),
            spark.sql("select id from range(10) where id in (select 1 where 2 in (select id from one.rows))"),
        ]
        lake.table("one.rows").append(pa.table({"id": [3]}))
        for old in frames:
            with pytest.raises(CommitConflict):
                overwrite(old, "one.rows", lake=lake)
            with pytest.raises(Exception, match=r"one\.rows is at version 2, .* rows of version 1"):
                old.write.format("underlay").mode("overwrite").save("one.rows")
        assert lake.table("one.rows").count() == 3
        asked = read_table(spark, lake, "one.rows", version=1)
        assert overwrite(asked, "one.rows", lake=lake).row_count == 2
        refresh(spark, lake)
        assert overwrite(spark.table("one.rows").where("id > 1"), "one.rows", lake=lake).row_count == 1
        spark.table("one.rows").selectExpr("id + 7 as id").write.format("underlay").mode("overwrite").save("one.rows")
        assert spark.table("one.rows").collect() == [(9,)]
    finally:
        forget(spark, lake)


def test_commit_after_the_planning_of_an_overwrite_is_not_lost(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
):
    checked = VersionGuard.refuse_other_versions

    def check_and_commit(reader: VersionGuard) -> None:
        checked(reader)
        if lake.table("one.rows").version == 1:
            lake.table("one.rows").append(pa.table({"id": [3]}))

    session(lake, spark)
    monkeypatch.setattr(VersionGuard, "refuse_other_versions", check_and_commit)
    try:
        with pytest.raises(PySparkException, match="is at version 2, and would be overwritten by rows of version 1"):
            spark.table("one.rows").where("id < 3").write.format("underlay").mode("overwrite").save("one.rows")
        assert sorted(lake.table("one.rows").to_arrow()["id"].to_pylist()) == [1, 2, 3]
        spark.table("one.rows").where("id < 3").write.format("underlay").mode("overwrite").save("one.rows")
    finally:
        forget(spark, lake)
    assert sorted(lake.table("one.rows").to_arrow()["id"].to_pylist()) == [1, 2]


def test_only_queries_that_overwrite_a_table_are_in_the_way_of_others_that_do(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
):
    checked, answers = VersionGuard.refuse_other_versions, []

    def check_and_ask(reader: VersionGuard) -> None:
        checked(reader)
        answers.append(why_not_replace(revision_url(reader.table.read_head().revision), 99))

    lake.create_table("one.copy", "id bigint")
    session(lake, spark)
    monkeypatch.setattr(VersionGuard, "refuse_other_versions", check_and_ask)
    try:
        for target in ("one.copy", "one.rows"):
            spark.table("one.rows").write.format("underlay").mode("overwrite").save(target)
    finally:
        forget(spark, lake)
    first, *_, last = answers
    assert first is None
    assert "is at version 99, and would be overwritten by rows of version 1" in str(last)
    assert why_not_replace(revision_url(lake.table("one.rows").read_head().revision), 99) is None  # all is over


def test_rows_of_a_table_overwrite_one_of_its_name_in_another_lake(spark: SparkSession, lake: Lake, tmp_path: Path):
    other = ul.connect(tmp_path / "other")
    copy = other.create_table("one.rows", "id bigint")
    (tmp_path / "link").symlink_to(tmp_path)
    old = read_table(spark, lake, "one.rows")
    lake.table("one.rows").append(pa.table({"id": [3]}))

    def save(where: str | Path | None) -> None:
        writer = old.write.format("underlay").mode("overwrite")
        (writer if where is None else writer.option("Lake", str(where))).save("one.rows")

    try:
        register_source(spark, lake)
        save(tmp_path / "other")
        assert copy.count() == 2
        for same in (None, tmp_path / "link", lake.url):
            with pytest.raises(SparkRuntimeException, match=r"one\.rows is at version 2, .* rows of version 1"):
                save(same)
        register_source(spark, other)
        save(None)
        assert (copy.version, lake.table("one.rows").version) == (2, 2)
    finally:
        register_source(spark)


def test_object_stores_are_told_apart_by_their_urls(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("UNDERLAY_LAKE", raising=False)
    copied = call(java_session(spark), "cloneSession")  # nothing is known of it
    url = "s3://bucket/lake"
    named = (None, "s3://bucket/lake/", "s3a://bucket/lake", "s3://bucket/other", "file:///bucket/lake", "bucket/lake")
    assert [may_write_to(copied, one, url) for one in named] == [True, True, True, False, False, False]
