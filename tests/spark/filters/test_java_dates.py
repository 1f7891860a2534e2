"""Dates and times that Spark takes for others when it skips row groups: no row is missing, or the query is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import reduce
from operator import or_
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import underlay as ul
from underlay.spark.filters.java_dates import SETTING, _is_left_out, _left_out_days
from underlay.spark.relation.relation import read_table

SCHEMA = pa.schema([("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us"))])
DAYS = [date(1582, 10, 1) + timedelta(days=number) for number in range(27)]
MISTAKEN = {
    "day > date '1582-10-10'": 17,
    "day = date '1582-10-12'": 1,
    "day in (date '1582-10-12', date '1582-10-01')": 2,
    "day <=> date '1582-10-12'": 1,
    "not (day < date '1582-10-06' or day > date '1582-10-08')": 3,
    "at >= timestamp '1582-10-10 12:00:00'": 18,
    "at = timestamp '1582-10-10 12:00:00'": 1,
}
TAKEN = {
    "day > date '1582-10-15'": 12,
    "day <= date '1582-10-04'": 4,
    "at > timestamp '1582-10-15 12:00:00'": 12,
    "local >= timestamp_ntz '1582-10-10 12:00:00'": 18,
    "day is not null": 27,
}


@pytest.fixture(scope="module")
def frame(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    lake = ul.connect(tmp_path_factory.mktemp("dates"))
    table = lake.create_table("old.days", SCHEMA, properties={"block_rows": "1"})
    noons = [datetime(day.year, day.month, day.day, 12) for day in DAYS]
    table.append(pa.table({"day": DAYS, "at": noons, "local": noons}, SCHEMA))
    return read_table(spark, lake, "old.days")


@pytest.fixture
def java_sql(spark: SparkSession) -> Iterator[None]:
    """As Spark is by itself."""
    before = spark.conf.get(SETTING)
    spark.conf.set(SETTING, "false")
    yield
    spark.conf.set(SETTING, str(before))


@pytest.mark.parametrize("condition", [*MISTAKEN, *TAKEN])
def test_no_row_is_missing_where_dates_are_those_of_java_time(frame: DataFrame, condition: str):
    assert frame.where(condition).count() == (MISTAKEN | TAKEN)[condition]


@pytest.mark.usefixtures("java_sql")
@pytest.mark.parametrize("condition", MISTAKEN)
def test_date_that_java_sql_does_not_have_is_refused_with_what_to_set(frame: DataFrame, condition: str):
    with pytest.raises(SparkRuntimeException, match=r"Spark would miss rows.*1582-10-.*java8API"):
        frame.where(condition).collect()


@pytest.mark.usefixtures("java_sql")
@pytest.mark.parametrize("condition", TAKEN)
def test_dates_that_java_sql_has_are_taken(frame: DataFrame, condition: str):
    assert frame.where(condition).count() == TAKEN[condition]


@pytest.mark.usefixtures("java_sql")
def test_what_only_spark_knows_is_refused_where_it_could_miss_rows(spark: SparkSession, frame: DataFrame):
    frame.createOrReplaceTempView("old_days")
    later = "select date_sub(max(day), 15) from old_days"
    days = [DAYS[0] + timedelta(days=number) for number in range(150)]
    deep = reduce(or_, (f.expr(f"day = date '{day}'") for day in days))
    for asked in (
        spark.sql(f"select * from old_days where day = ({later})"),
        spark.sql(f"select * from old_days where day <=> ({later})"),  # of which the index is told nothing at all
        spark.sql(f"select * from old_days where day = ({later}) or hour(local) = 3"),
        frame.where(deep),
    ):
        with pytest.raises((SparkRuntimeException, Py4JJavaError), match=r"what (at|day) is compared with.*java8API"):
            asked.collect()
    same = "select day from (select date '1582-10-12' as day union select date '1582-10-16') where day = ({})"
    assert spark.sql(same.format(later)).count() == 1
    assert spark.sql("select * from old_days where hour(local) = (select max(hour(local)) from old_days)").count() == 27
    assert frame.where("hour(local) = 12").count() == frame.count() == frame.rdd.count() == 27


@pytest.mark.usefixtures("java_sql")
def test_any_date_is_compared_with_tables_that_have_none_of_these(spark: SparkSession, tmp_path: Path):
    lake = ul.connect(tmp_path)
    noon = datetime(2024, 1, 1, 12)
    lake.create_table("new.days", SCHEMA).append(
        pa.table({"day": [noon.date()], "at": [noon], "local": [noon]}, SCHEMA)
    )
    frame = read_table(spark, lake, "new.days")
    frame.createOrReplaceTempView("new_days")
    assert frame.where("day > date '1582-10-10' and at > timestamp '1582-10-10 12:00:00'").count() == 1
    assert spark.sql("select * from new_days where day = (select max(day) from new_days)").count() == 1


def test_the_setting_is_that_of_the_session_that_asks(spark: SparkSession, frame: DataFrame):
    frame.createOrReplaceGlobalTempView("old_days_of_all")
    other = spark.newSession()
    other.conf.set(SETTING, "false")
    try:
        for condition in ("day = date '1582-10-12'", "day = date '1582-10-16'"):
            asked = other.sql(f"select * from global_temp.old_days_of_all where {condition}")
            if "16" in condition:
                assert asked.count() == 1
            else:
                with pytest.raises(SparkRuntimeException, match="Spark would miss rows"):
                    asked.collect()
    finally:
        spark.catalog.dropGlobalTempView("old_days_of_all")


@pytest.mark.parametrize(
    ("zone", "day", "expected"),
    [
        ("Pacific/Apia", date(2011, 12, 30), True),
        ("Pacific/Apia", date(2011, 12, 31), False),
        ("Pacific/Kwajalein", date(1993, 8, 21), True),
        ("Europe/Berlin", date(2024, 3, 31), False),
    ],
)
def test_days_that_a_zone_left_out_are_known(zone: str, day: date, expected: bool):
    assert _is_left_out(day, ZoneInfo(zone)) is expected
    assert (day in _left_out_days(ZoneInfo(zone))) is expected
    assert not _is_left_out(day, None)
