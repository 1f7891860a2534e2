from __future__ import annotations

import os
import re
import warnings
from datetime import UTC, datetime, time
from pathlib import Path
from threading import Thread
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession

import underlay as ul
from tests.contract.worlds import delete_positions
from tests.spark.conftest import SCHEMA, rows_of
from tests.store.servers import S3Server
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import Unsupported
from underlay.plan.part import BoolArray, Part
from underlay.schema.table_schema import leaves_in
from underlay.spark.api.explain import explain
from underlay.spark.api.scans import scans_of
from underlay.spark.api.session import forget, session
from underlay.spark.jvm.gateway import call, call_text, java_plan
from underlay.spark.ranged.frame import RangedReadWarning, ranged_frame
from underlay.spark.relation.relation import pin, read_table


def ids(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.select("id").collect())


def make_table(lake: Lake, name: str = "shop.items", files: int = 3) -> Table:
    table = lake.create_table(name, SCHEMA)
    for file in range(files):
        table.append(rows_of(file))
    return table


@pytest.mark.local_only  # tests on a cluster have the jar
def test_lake_on_s3_without_the_jar_is_read_by_name_and_says_so_once(spark: SparkSession, seaweedfs: S3Server):
    options = {name: str(value) for name, value in seaweedfs.options.items()}
    lake = ul.connect(f"s3://lake/{os.urandom(6).hex()}", options=options)
    make_table(lake, "far_shop.items", files=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = read_table(spark, lake, "far_shop.items")
        session(lake, spark)
    try:
        (warned,) = [one for one in caught if one.category is RangedReadWarning]
        assert "far_shop.items" in str(warned.message)
        assert "hadoop-aws" in str(warned.message)
        by_name = spark.sql("select count(*), max(name) from far_shop.items where small < -5")
        assert by_name.collect()[0] == (80, "é1-1049")
        assert ids(frame) == [*range(50), *range(1000, 1050)]
        assert "hadoop-aws" in explain(by_name)
        assert "read: 1 file, 1 block" in explain(frame.where("id = 1003").select("name"))
        assert options["secret_access_key"] not in explain(by_name)
    finally:
        forget(spark, lake)


def test_types_that_spark_does_not_have_are_given_as_the_nearest(spark: SparkSession, tmp_path: Path):
    columns = pa.schema(
        [
            ("id", pa.uuid()),
            ("at", pa.timestamp("ns", "UTC")),
            ("half", pa.float16()),
            ("clock", pa.time64("us")),
        ]
    )
    table = ul.connect(tmp_path).create_table("odd.types", columns)
    one = UUID(int=7)
    values = [[one.bytes, None], [1_000, None], np.array([0.5, 2], np.float16), [time(1, 2, 3, 4), None]]
    table.append(pa.table([pa.array(given, field.type) for given, field in zip(values, columns, strict=True)], columns))
    with pytest.warns(RangedReadWarning, match=r"odd\.types.*Spark's Parquet reader does not support this type"):
        frame = read_table(spark, ul.connect(tmp_path), "odd.types")
    assert frame.dtypes == [("id", "string"), ("at", "timestamp"), ("half", "float"), ("clock", "string")]
    rows = {row["half"]: row for row in frame.collect()}
    moment = datetime.fromtimestamp(1e-6, UTC)
    assert (rows[0.5]["id"], rows[0.5]["clock"]) == (str(one), "01:02:03.000004")
    assert frame.where("at is not null").selectExpr("unix_micros(at)").collect()[0][0] == moment.microsecond
    assert (rows[2.0]["id"], rows[2.0]["at"], rows[2.0]["clock"]) == (None, None, None)


def test_files_are_chosen_among_those_that_are_left_without_deleted_rows(spark: SparkSession, lake: Lake):
    table = make_table(ul.connect(f"{lake.url}-chosen"), files=4)
    delete_positions(table, {1: range(49), 2: range(10)})

    def is_second_or_third(part: Part) -> BoolArray:
        return np.array([row in (1, 2) for row in range(part.segment.file_count)], np.bool_)

    assert ids(ranged_frame(spark, pin(table), is_second_or_third)) == [1049, *range(2010, 2050)]
    nothing = ranged_frame(spark, pin(table), lambda part: np.zeros(part.segment.file_count, np.bool_))
    assert ids(nothing) == []


def test_frame_keeps_its_version_and_can_be_made_in_any_thread(spark: SparkSession, tmp_path: Path):
    table = make_table(ul.connect(tmp_path), files=1)
    frames: list[DataFrame] = []
    thread = Thread(target=lambda: frames.append(ranged_frame(spark, pin(table))))
    thread.start()
    thread.join()
    table.append(rows_of(1))
    (frame,) = frames
    assert ids(frame) == list(range(50))
    asked = ranged_frame(spark, pin(table), is_asked_for=True)
    assert frame.alias("a").join(asked.alias("b"), "id", "right").count() == 100
    with pytest.raises(SparkRuntimeException, match=r"two versions of shop\.items in one query: 1 and 2"):
        frame.union(ranged_frame(spark, pin(table))).count()


@pytest.fixture(scope="module")
def ranged(spark: SparkSession, lake: Lake) -> DataFrame:
    return ranged_frame(spark, pin(lake.table("shop.items")))


def plan_of(frame: DataFrame, lake: Lake) -> tuple[set[str], int]:
    """The columns and blocks that the reader is told to read."""
    (scan,) = scans_of(frame)
    assert scan.plan is not None
    columns = lake.table("shop.items").snapshot().schema.fields
    read = set(scan.plan.columns)
    return {column.name for column in columns if read & {leaf.id for leaf in leaves_in(column)}}, scan.plan.kept.blocks


@pytest.mark.parametrize(
    ("condition", "columns", "blocks"),
    [
        ("id = 2007", {"id", "name"}, 1),
        ("id < 1010 and name > 'é1'", {"id", "name"}, 1),
        ("not flag and small < -3000", {"flag", "small", "name"}, 2),
        ("price = 20.07", {"price", "name"}, 1),
        ("at < timestamp '2020-01-02 00:00:00'", {"at", "name"}, 1),
        ("inner.A = 3001 or inner.deep.text = 't3001'", {"inner", "name"}, 2),  # t0 < t3001 < t9
        ("id = 2007 and rand() >= 0", {"id", "name"}, 1),  # the second cannot be translated
        ("(id = 7 and length(name) > 0) or id = 2007", {"id", "name"}, 2),
        ("unsigned = 2147484648", {"unsigned", "name"}, 1),
        ("size > 1e9", {"size", "name"}, 1),  # NaN, in the fourth file
    ],
)
def test_only_what_a_query_needs_is_read(
    spark: SparkSession, lake: Lake, ranged: DataFrame, plain: str, condition: str, columns: set[str], blocks: int
):
    query = ranged.where(condition).select("name")
    assert plan_of(query, lake) == (columns, blocks)
    expected = spark.table(plain).where(condition).select("name").collect()
    assert expected
    assert sorted(query.collect(), key=str) == sorted(expected, key=str)


def test_conditions_of_one_query_are_not_those_of_another(ranged: DataFrame):
    few = ranged.where("id < 5")
    assert few.count() == 5
    assert ranged.count() == 300
    assert few.alias("a").join(ranged.where("id < 50").alias("b"), "id", "right").count() == 50
    cached = few.select("id").cache()
    try:
        assert cached.count() == 5
        assert ranged.where("id >= 5").count() == 295
    finally:
        cached.unpersist()


def test_rows_are_counted_by_reading_the_narrowest_column(lake: Lake, ranged: DataFrame):
    query = ranged.groupBy().count()
    assert plan_of(query, lake) == ({"flag"}, 6)
    assert query.collect() == [(300,)]


def test_optimiser_knows_rows_and_bytes(ranged: DataFrame):
    stats = call(call(java_plan(ranged.where("id < 50").select("id")), "optimizedPlan"), "stats")
    assert 0 < int(call_text(stats, "sizeInBytes")) < 10_000
    assert "BroadcastHashJoin" in joined_plan(ranged)


def joined_plan(ranged: DataFrame) -> str:
    query = ranged.alias("a").join(ranged.where("id < 9").alias("b"), "id")
    return call_text(call(java_plan(query), "executedPlan"), "toString")


def test_conditions_on_types_that_spark_does_not_have_are_left_to_spark(spark: SparkSession, tmp_path: Path):
    lake = ul.connect(tmp_path)
    table = lake.create_table("odd.moments", pa.schema([("at", pa.timestamp("ns")), ("id", pa.uuid())]))
    ids = pa.array([UUID(int=number).bytes for number in range(3)], pa.uuid())
    table.append(pa.table({"at": pa.array([1_000, 2_000, None], pa.timestamp("ns")), "id": ids}))
    frame = ranged_frame(spark, pin(table))
    query = frame.where("at = timestamp_ntz '1970-01-01 00:00:00.000002'").where(f"id = '{UUID(int=1)}'")
    assert query.count() == 1
    assert re.search(r"left to Spark, dropping nothing:.*at.*id", explain(query))


@pytest.mark.local_only
def test_lake_in_memory_is_refused(spark: SparkSession):
    table = make_table(ul.connect(f"memory://{os.urandom(6).hex()}"), files=1)
    with pytest.raises(Unsupported, match="memory"):
        ranged_frame(spark, pin(table))
