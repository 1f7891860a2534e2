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
from underlay.errors import InvalidRequest, Unsupported
from underlay.spark import append, forget, refresh, session
from underlay.spark.catalog.session_catalog import check_names

SCHEMA = pa.schema([("id", pa.int64()), ("na`me", pa.string())])


@pytest.fixture
def towns(tmp_path: Path, spark: SparkSession) -> Iterator[Lake]:
    found = ul.connect(tmp_path / "lake")
    table = found.create_table("Geo.towns", SCHEMA, comment="Where people live")
    table.append(pa.table({"id": [1, 2, 3], "na`me": ["a", "b", None]}))
    yield found
    forget(spark, found)


def count(spark: SparkSession, query: str) -> int:
    return int(spark.sql(query).collect()[0][0])


def test_sql_reads_tables_by_their_own_names(spark: SparkSession, towns: Lake):
    towns.table("Geo.towns").comment("the number", "id")
    assert session(towns, spark) is spark
    assert session(towns, spark) is spark
    assert count(spark, "select sum(id) from geo.towns where `na``me` is not null") == 3
    assert count(spark, "select count(*) from Geo.Towns a join geo.towns b on a.id = b.id") == 3
    assert spark.table("geo.towns").columns == ["id", "na`me"]
    shown = spark.sql("show tables in geo").collect()  # and temporary views of other tests, in every database
    assert [row.tableName for row in shown if not row.isTemporary] == ["towns"]
    described = [(row.col_name, row.comment) for row in spark.sql("describe geo.towns").collect()]
    assert described == [("id", "the number"), ("na`me", None)]
    assert [column.name for column in spark.catalog.listColumns("geo.towns")] == ["id", "na`me"]
    assert spark.catalog.getTable("geo.towns").description == "Where people live"
    assert count(spark.newSession(), "select count(*) from geo.towns") == 3


def test_named_table_is_scanned_natively(spark: SparkSession, towns: Lake):
    refresh(spark, towns)
    plan = spark.sql("explain select id from geo.towns where id = 2").collect()[0][0]
    assert "FileScan parquet geo.towns[id#" in plan
    assert "Batched: true" in plan
    assert "ReadSchema: struct<id:bigint>" in plan


def test_refresh_follows_tables_that_others_made_dropped_and_renamed(spark: SparkSession, towns: Lake):
    refresh(spark, towns)
    other = ul.connect(towns.url)
    other.create_table("geo.rivers", "id bigint")
    other.create_table("more.rocks", "id bigint")
    other.rename_table("Geo.towns", "geo.places")
    forget(spark, towns)
    assert refresh(spark, towns) == ["geo.places", "geo.rivers", "more.rocks"]
    assert count(spark, "select count(*) from geo.places") == 3
    other.drop_table("more.rocks")
    assert refresh(spark, towns) == ["geo.places", "geo.rivers"]
    assert not spark.catalog.databaseExists("more")


def test_database_that_the_user_made_stays(spark: SparkSession, towns: Lake):
    spark.sql("CREATE DATABASE geo")
    try:
        refresh(spark, towns)
        forget(spark, towns)
        assert spark.catalog.databaseExists("geo")
    finally:
        spark.sql("DROP DATABASE geo")


def test_table_of_the_session_is_not_taken_over(spark: SparkSession, towns: Lake, tmp_path: Path):
    spark.sql("CREATE DATABASE geo")
    try:
        spark.sql(f"CREATE TABLE geo.towns (x int) USING parquet LOCATION '{tmp_path / 'mine'}'")
        with pytest.raises(InvalidRequest, match=r"another table Geo\.towns"):
            refresh(spark, towns)
        assert spark.table("geo.towns").columns == ["x"]
    finally:
        spark.sql("DROP DATABASE geo CASCADE")


def test_table_of_another_lake_is_not_taken_over(spark: SparkSession, towns: Lake, tmp_path: Path):
    refresh(spark, towns)
    other = ul.connect(tmp_path / "other")
    other.create_table("geo.Towns", "x int")
    with pytest.raises(InvalidRequest, match=r"another table geo\.Towns"):
        refresh(spark, other)
    assert count(spark, "select count(*) from geo.towns") == 3
    forget(spark, other)
    assert count(spark, "select count(*) from geo.towns") == 3


def test_lake_by_another_path_is_the_same_and_a_refused_one_changes_nothing(
    spark: SparkSession, towns: Lake, tmp_path: Path
):
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    session(towns, spark)
    session(ul.connect(tmp_path / "link"), spark)
    other = ul.connect(tmp_path / "other")
    other.create_table("Geo.towns", "id bigint")
    with pytest.raises(InvalidRequest, match=r"another table Geo\.towns"):
        session(other, spark)
    append(spark.table("Geo.towns").limit(1), "Geo.towns")
    assert spark.table("Geo.towns").count() == 4
    towns.drop_table("Geo.towns")
    other.create_table("geo.others", "id bigint")
    assert not spark.catalog.tableExists("geo.others")
    forget(spark, ul.connect(tmp_path / "link"))
    assert not spark.catalog.tableExists("geo.towns")


def test_names_that_differ_by_case_only_are_refused(spark: SparkSession):
    with pytest.raises(InvalidRequest, match=r"a\.b"):
        check_names(spark, ["a.b", "A.b"])


def test_many_threads_refresh_at_once(spark: SparkSession, towns: Lake):
    other = ul.connect(towns.url)
    other.create_table("geo.rivers", "id bigint")

    def work(_: int) -> list[str]:
        other.table("geo.rivers").append(pa.table({"id": [1]}))
        return refresh(spark, towns)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(12))) == [["Geo.towns", "geo.rivers"]] * 12
    assert count(spark, "select count(*) from geo.rivers") == 12


def test_session_without_a_gateway_knows_no_names(towns: Lake):
    class Connected:
        version = "4.0.0"

    with pytest.raises(Unsupported, match=r'format\("underlay"\)'):
        refresh(Connected(), towns)


def test_forgotten_tables_are_unknown_until_refreshed(spark: SparkSession, towns: Lake):
    refresh(spark, towns)
    forget(spark, towns)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("geo.towns")
    assert not spark.catalog.databaseExists("geo")
    refresh(spark, towns)
    assert count(spark, "select count(*) from geo.towns") == 3
