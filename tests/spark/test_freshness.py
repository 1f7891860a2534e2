from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import underlay as ul
from underlay.api.lake import Lake
from underlay.spark import append, forget, overwrite, refresh, register_version, session, write


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Iterator[Lake]:
    found = ul.connect(tmp_path / "lake")
    found.create_table("fresh.numbers", "id bigint").append(pa.table({"id": [1]}))
    yield session(found, spark) and found
    forget(spark, found)


def numbers(spark: SparkSession, name: str = "fresh.numbers") -> list[int]:
    return [row.id for row in spark.sql(f"select id from {name} order by id").collect()]


def test_what_this_process_writes_is_seen_at_once(spark: SparkSession, lake: Lake):
    before = spark.table("fresh.numbers")
    lake.table("fresh.numbers").append(pa.table({"id": [2]}))
    assert numbers(spark) == [1, 2]
    append(spark.range(3, 4), "fresh.numbers")
    assert numbers(spark) == [1, 2, 3]
    ul.connect(lake.url).table("fresh.numbers").append(pa.table({"id": [4]}))
    assert numbers(spark) == [1, 2, 3, 4]
    lake.table("fresh.numbers").rollback(version=2)
    assert numbers(spark) == [1, 2]
    overwrite(spark.range(7, 9), lake.table("fresh.numbers"))
    assert numbers(spark) == [7, 8]
    assert [row.id for row in before.collect()] == [1]


def test_a_lake_that_is_opened_by_another_path_is_the_same(spark: SparkSession, lake: Lake, tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    for number, path in enumerate((tmp_path / "link", tmp_path / "lake" / ".." / "lake"), 2):
        ul.connect(path).table("fresh.numbers").append(pa.table({"id": [number]}))
        assert numbers(spark) == list(range(1, number + 1))


def test_what_the_data_source_commits_in_a_worker_is_seen_at_once(spark: SparkSession, lake: Lake):
    spark.range(2, 4).write.format("underlay").mode("append").save("fresh.numbers")
    assert numbers(spark) == [1, 2, 3]


def test_what_a_stream_commits_is_seen_at_once(spark: SparkSession, lake: Lake, tmp_path: Path):
    source = tmp_path / "source"
    spark.range(2, 4).write.parquet(str(source))
    stream = spark.readStream.schema("id bigint").parquet(str(source)).writeStream.format("underlay")
    options = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    options.start("fresh.numbers").awaitTermination()
    assert numbers(spark) == [1, 2, 3]


def test_tag_that_moves_is_followed(spark: SparkSession, lake: Lake):
    lake.table("fresh.numbers").tag("audit")
    register_version(spark, lake, "fresh.numbers@audit")
    lake.table("fresh.numbers").append(pa.table({"id": [2]}))
    assert numbers(spark, "fresh.`numbers@audit`") == [1]
    ul.connect(lake.url).table("fresh.numbers").tag("audit")
    assert numbers(spark, "fresh.`numbers@audit`") == [1, 2]


def test_tables_that_this_process_makes_drops_and_renames_are_followed(spark: SparkSession, lake: Lake):
    write(spark.range(2), "fresh.more", lake=lake)
    assert numbers(spark, "fresh.more") == [0, 1]
    lake.rename_table("fresh.more", "fresh.other")
    assert numbers(spark, "fresh.other") == [0, 1]
    lake.drop_table("fresh.other")
    for gone in ("fresh.more", "fresh.other"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.table(gone)


def test_columns_that_changed_are_shown(spark: SparkSession, lake: Lake):
    lake.drop_table("fresh.numbers")
    lake.create_table("fresh.numbers", "name string, id bigint")
    assert spark.table("fresh.numbers").columns == ["name", "id"]
    assert numbers(spark) == []


def test_cached_table_shows_what_was_written(spark: SparkSession, lake: Lake):
    spark.sql("cache table fresh.numbers")
    try:
        lake.table("fresh.numbers").append(pa.table({"id": [2]}))
        assert numbers(spark) == [1, 2]
    finally:
        spark.sql("clear cache")


def test_query_never_mixes_versions_while_others_commit(spark: SparkSession, lake: Lake):
    query = "select (select count(*) from fresh.numbers) - (select count(*) from fresh.numbers where id > -1)"

    def commit(number: int) -> None:
        lake.table("fresh.numbers").append(pa.table({"id": [number]}))

    with ThreadPoolExecutor(2) as pool:
        writing = [pool.submit(commit, number) for number in range(12)]
        differences = {spark.sql(query).collect()[0][0] for _ in range(8)}
        for one in writing:
            one.result()
    assert differences == {0}
    assert len(numbers(spark)) == 13


def test_what_cannot_be_followed_is_unknown_and_not_old(
    spark: SparkSession, lake: Lake, caplog: pytest.LogCaptureFixture
):
    newest = next(Path(lake.url.removeprefix("file://")).rglob(f"{1:020}.root"))
    newest.with_name(f"{2:020}.root").write_bytes(b"no root")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("fresh.numbers")
    assert "Spark no longer has the name fresh.numbers" in caplog.text
    with pytest.warns(UserWarning, match=r"Spark has no name fresh\.numbers"):
        assert refresh(spark, lake) == []


def test_new_table_whose_name_the_session_has_leaves_the_others_alone(
    spark: SparkSession, lake: Lake, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    spark.sql(f"create table fresh.mine (x int) using parquet location '{tmp_path / 'mine'}'")
    try:
        lake.create_table("fresh.mine", "id bigint")
        assert spark.table("fresh.mine").columns == ["x"]
        assert "another table fresh.mine" in caplog.text
        assert numbers(spark) == [1]
    finally:
        spark.sql("drop table fresh.mine")
