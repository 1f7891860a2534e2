"""Dates and times that Spark takes for others when it skips row groups: no row is missing in any session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import reduce
from operator import or_
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import underlay as ul
from underlay.api.table import Table
from underlay.schema.convert.arrow import from_arrow
from underlay.spark.files.file_groups import FileGroups, Group
from underlay.spark.files.read_schema import BY_NAME
from underlay.spark.files.row_group_skipping import may_skip_row_groups, old_dates
from underlay.spark.files.version_files import VersionFiles
from underlay.spark.jvm.gateway import gateway_of
from underlay.spark.relation.relation import read_table

SETTING = "spark.sql.datetime.java8API.enabled"
SCHEMA = pa.schema([("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us"))])
DAYS = [date(1582, 10, 1) + timedelta(days=number) for number in range(27)]
ANSWERS = {
    "day > date '1582-10-10'": 17,
    "day = date '1582-10-12'": 1,
    "day in (date '1582-10-12', date '1582-10-01')": 2,
    "day <=> date '1582-10-12'": 1,
    "not (day < date '1582-10-06' or day > date '1582-10-08')": 3,
    "at >= timestamp '1582-10-10 12:00:00'": 18,
    "at = timestamp '1582-10-10 12:00:00'": 1,
    "day > date '1582-10-15'": 12,
    "day <= date '1582-10-04'": 4,
    "at > timestamp '1582-10-15 12:00:00'": 12,
    "local >= timestamp_ntz '1582-10-10 12:00:00'": 18,
    "day is not null": 27,
}
"""A condition, and how many of the days meet it."""


def rows_on(days: list[date]) -> pa.Table:
    noons = [datetime(day.year, day.month, day.day, 12) for day in days]
    return pa.table({"day": days, "at": noons, "local": noons}, SCHEMA)


def table_with(folder: Path, days: list[date]) -> Table:
    """A row group for each day."""
    table = ul.connect(folder).create_table("old.days", SCHEMA, properties={"block_rows": "1"})
    table.append(rows_on(days))
    return table


def may_skip(spark: SparkSession, table: Table) -> bool:
    version = VersionFiles(table, FileGroups(table.snapshot(), lambda store: True))
    return may_skip_row_groups(gateway_of(spark), version, Group(reading=BY_NAME))


def counted(frame: DataFrame, conditions: list[str]) -> dict[str, int]:
    """The rows of each condition, by one scan each in one query."""
    parts = [frame.where(condition).select(f.lit(condition).alias("by")) for condition in conditions]
    found = reduce(DataFrame.unionAll, parts).groupBy("by").count().collect()
    return dict.fromkeys(conditions, 0) | {row["by"]: row["count"] for row in found}


@pytest.fixture(scope="module")
def frame(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = tmp_path_factory.mktemp("dates")
    table_with(folder, DAYS)
    return read_table(spark, ul.connect(folder), "old.days")


@pytest.fixture
def java_sql(spark: SparkSession) -> Iterator[None]:
    """As Spark is by itself."""
    before = spark.conf.get(SETTING)
    spark.conf.set(SETTING, "false")
    yield
    spark.conf.set(SETTING, str(before))


def test_no_row_is_missing_where_dates_are_those_of_java_time(frame: DataFrame):
    assert counted(frame, list(ANSWERS)) == ANSWERS


@pytest.mark.usefixtures("java_sql")
def test_no_row_is_missing_where_dates_are_those_of_java_sql(frame: DataFrame):
    assert counted(frame, list(ANSWERS)) == ANSWERS


@pytest.mark.usefixtures("java_sql")
def test_no_row_is_missing_by_what_only_spark_knows(spark: SparkSession, frame: DataFrame):
    frame.createOrReplaceTempView("old_days")
    later = "select date_sub(max(day), 15) from old_days"  # October 12
    days = [DAYS[0] + timedelta(days=number) for number in range(150)]
    deep = reduce(or_, (f.expr(f"day = date '{day}'") for day in days))
    assert spark.sql(f"select * from old_days where day = ({later})").count() == 1
    assert spark.sql(f"select * from old_days where day <=> ({later})").count() == 1
    assert spark.sql(f"select * from old_days where day = ({later}) or hour(local) = 3").count() == 1
    assert frame.where(deep).count() == frame.rdd.count() == 27


def test_no_row_is_missing_in_another_session_with_another_setting(spark: SparkSession, frame: DataFrame):
    frame.createOrReplaceGlobalTempView("old_days_of_all")
    other = spark.newSession()
    other.conf.set(SETTING, "false")
    try:
        assert counted(other.table("global_temp.old_days_of_all"), list(ANSWERS)) == ANSWERS
    finally:
        spark.catalog.dropGlobalTempView("old_days_of_all")


@pytest.mark.local_only
@pytest.mark.usefixtures("java_sql")
def test_no_row_is_missing_on_a_day_that_the_zone_of_the_jvm_left_out(spark: SparkSession, tmp_path: Path):
    zones = gateway_of(spark)
    before = zones.static("java.util.TimeZone", "getDefault")
    days = [date(2011, 12, 29) + timedelta(days=number) for number in range(4)]
    table = table_with(tmp_path, days)
    assert may_skip(spark, table)
    apia = zones.static("java.util.TimeZone", "getTimeZone", "Pacific/Apia")
    zones.static("java.util.TimeZone", "setDefault", apia)
    try:
        assert not may_skip(spark, table)
        conditions = ["day = date '2011-12-30'", "day <= date '2011-12-30'", "day > date '2011-12-30'"]
        found = counted(read_table(spark, ul.connect(tmp_path), "old.days"), conditions)
        assert list(found.values()) == [1, 2, 2]
    finally:
        zones.static("java.util.TimeZone", "setDefault", before)


def test_row_groups_are_skipped_unless_a_date_is_old(spark: SparkSession, tmp_path: Path):
    table = table_with(tmp_path, [date(1900, 1, 4), date(2024, 1, 1)])
    assert may_skip(spark, table)
    assert may_skip(spark, table.at(version=0))
    table.append(rows_on([date(1899, 12, 31)]))
    assert not may_skip(spark, table)


def test_old_dates_are_looked_for_in_fields_of_structs_and_not_in_lists():
    old = pa.schema([("a", pa.struct([("day", pa.date32()), ("n", pa.int64())])), ("b", pa.list_(pa.date32()))])
    leaves = [leaf for leaf in from_arrow(old).leaves if not leaf.is_repeated]
    assert str(old_dates(leaves)) == "a.day < DATE '1900-01-04'"
    assert old_dates([leaf for leaf in leaves if leaf.path != ("a", "day")]) is None
