from __future__ import annotations

import os
import warnings
from datetime import UTC, datetime, time
from pathlib import Path
from threading import Thread
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import underlay as ul
from tests.spark.conftest import SCHEMA, rows_of
from tests.store.servers import S3Server
from tests.tables.worlds import delete_positions
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import Unsupported
from underlay.plan.part import BoolArray, Part
from underlay.spark.explain import explain
from underlay.spark.ranged import RangedReadWarning, ranged_frame
from underlay.spark.relation import pin, read_table
from underlay.spark.session import forget, session


def ids(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.select("id").collect())


def make_table(lake: Lake, name: str = "shop.items", files: int = 3) -> Table:
    table = lake.create_table(name, SCHEMA)
    for file in range(files):
        table.append(rows_of(file))
    return table


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
    with pytest.warns(RangedReadWarning, match=r"odd\.types.*Spark's own reader has no such type"):
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
    both = frame.alias("a").join(ranged_frame(spark, pin(table)).alias("b"), "id", "right")
    assert both.count() == 100


@pytest.mark.local_only
def test_lake_in_memory_is_refused(spark: SparkSession):
    table = make_table(ul.connect(f"memory://{os.urandom(6).hex()}"), files=1)
    with pytest.raises(Unsupported, match="memory"):
        ranged_frame(spark, pin(table))
