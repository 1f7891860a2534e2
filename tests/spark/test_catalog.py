from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import SparkSession

import underlay as ul
from underlay.api.lake import Lake
from underlay.errors import InvalidRequest, TableNotFound
from underlay.spark.catalog import check_names, register_table
from underlay.spark.session import refresh, session


@pytest.fixture
def towns(tmp_path: Path, spark: SparkSession) -> Iterator[Lake]:
    found = ul.connect(tmp_path / "lake")
    table = found.create_table("Geo.towns", pa.schema([("id", pa.int64()), ("na`me", pa.string())]))
    table.append(pa.table({"id": [1, 2, 3], "na`me": ["a", "b", None]}))
    yield found
    spark.sql("DROP DATABASE IF EXISTS geo CASCADE")


def data_files(lake: Lake) -> set[Path]:
    return {*Path(lake.url.removeprefix("file://")).rglob("*.parquet")}


def count(spark: SparkSession, query: str) -> int:
    return int(spark.sql(query).collect()[0][0])


def test_sql_reads_tables_by_their_own_names(spark: SparkSession, towns: Lake):
    assert session(towns, spark) is spark
    assert count(spark, "select sum(id) from geo.towns where `na``me` is not null") == 3
    assert count(spark, "select count(*) from Geo.Towns a join geo.towns b on a.id = b.id") == 3
    assert spark.table("geo.towns").columns == ["id", "na`me"]
    assert [row.tableName for row in spark.sql("show tables in geo").collect()] == ["towns"]
    assert [row.col_name for row in spark.sql("describe geo.towns").collect()] == ["id", "na`me"]


def test_named_table_is_scanned_natively(spark: SparkSession, towns: Lake):
    refresh(spark, towns)
    plan = spark.sql("explain select id from geo.towns where id = 2").collect()[0][0]
    assert "FileScan parquet" in plan
    assert "Batched: true" in plan
    assert "ReadSchema: struct<id:bigint>" in plan


def test_refresh_shows_what_was_committed_since(spark: SparkSession, towns: Lake):
    refresh(spark, towns)
    towns.table("Geo.towns").append(pa.table({"id": [4], "na`me": ["d"]}))
    assert count(spark, "select count(*) from geo.towns") == 3
    assert refresh(spark, towns) == ["Geo.towns"]
    assert count(spark, "select count(*) from geo.towns") == 4


@pytest.mark.parametrize(
    "statement",
    [
        "insert into geo.towns select * from geo.towns",
        "insert overwrite geo.towns select * from geo.towns",
        "truncate table geo.towns",
        "delete from geo.towns where id = 1",
        "update geo.towns set id = 1",
    ],
)
def test_statement_that_would_write_files_is_refused_and_the_name_still_works(
    spark: SparkSession, towns: Lake, statement: str
):
    refresh(spark, towns)
    before = data_files(towns)
    with pytest.raises(
        (AnalysisException, UnsupportedOperationException), match=r"not support|UNSUPPORTED_INSERT|on external tables"
    ):
        spark.sql(statement)
    assert data_files(towns) == before
    assert count(spark, "select count(*) from geo.towns") == 3


@pytest.mark.parametrize("statement", ["refresh table geo.towns", "drop table geo.towns"])
def test_evicted_entry_is_an_error_and_never_an_empty_answer(spark: SparkSession, towns: Lake, statement: str):
    refresh(spark, towns)
    before = data_files(towns)
    spark.sql(statement)
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(Exception, match=r"RUN_underlay\.spark\.refresh|TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql("select * from geo.towns").collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert data_files(towns) == before
    refresh(spark, towns)
    assert count(spark, "select count(*) from geo.towns") == 3


def test_table_of_the_session_is_not_taken_over(spark: SparkSession, towns: Lake, tmp_path: Path):
    spark.sql("CREATE DATABASE geo")
    spark.sql(f"CREATE TABLE geo.towns (x int) USING parquet LOCATION '{tmp_path / 'mine'}'")
    with pytest.raises(InvalidRequest, match=r"another table Geo\.towns"):
        refresh(spark, towns)
    assert spark.table("geo.towns").columns == ["x"]


def test_names_that_differ_by_case_only_are_refused(spark: SparkSession):
    with pytest.raises(InvalidRequest, match=r"a\.b"):
        check_names(spark, ["a.b", "A.b"])


def test_table_that_spark_cannot_read_is_left_out_with_a_warning(spark: SparkSession, towns: Lake):
    towns.create_table("geo.moments", pa.schema([("at", pa.timestamp("ns"))]))
    with pytest.warns(UserWarning, match=r"geo\.moments.*timestamp\(ns\)"):
        assert refresh(spark, towns) == ["Geo.towns"]


def test_table_that_is_not_there_is_not_registered(spark: SparkSession, towns: Lake, tmp_path: Path):
    with pytest.raises(TableNotFound):
        register_table(spark, towns, tmp_path / "guards", "geo.nothing")
    assert not spark.catalog.tableExists("geo.nothing")
