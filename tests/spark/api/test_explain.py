from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import underlay as ul
from tests.contract.worlds import delete_positions, rename_column
from tests.spark.conftest import SCHEMA, rows_of
from underlay.api.lake import Lake
from underlay.spark.api.data_source import register_source
from underlay.spark.api.explain import NOTHING, explain
from underlay.spark.api.session import forget, session
from underlay.spark.jvm.gateway import call, java_plan
from underlay.spark.jvm.plan_nodes import nodes_of
from underlay.spark.ranged.frame import ranged_frame
from underlay.spark.relation.relation import pin, read_table

pytestmark = pytest.mark.local_only

HANDED_OVER = re.compile(r"handed to Spark: (\d+) of (\d+) files?, ([\d,]+) bytes")


@pytest.fixture(scope="module")
def items(spark: SparkSession, lake: Lake) -> DataFrame:
    found = read_table(spark, lake, "shop.items")
    found.createOrReplaceTempView("explained")
    return found


def metric(frame: DataFrame, name: str) -> int:
    """What Spark itself counted in the scans of a frame that ran."""
    scans = [one.node for one in nodes_of(call(java_plan(frame), "executedPlan")) if one.kind == "FileSourceScanExec"]
    return sum(int(str(call(call(call(scan, "metrics"), "apply", name), "value"))) for scan in scans)


def test_files_and_blocks_are_named_with_the_conditions_that_dropped_the_others(items: DataFrame):
    frame = items.where("id between 2010 and 3010 and name rlike '9$' and (small > 3 or size % 2 = 1)").select("small")
    frame.collect()
    found = explain(frame)
    assert found.splitlines()[0] == "shop.items version 6, by Spark itself"
    assert "id >= 2010: 2 of 6 files dropped by range\n  id <= 3010: 2 of 4 files dropped by range" in found
    assert re.search(r"conditions of the plan: .*id >= 2010; id <= 3010", found)
    assert re.search(r"left to Spark, dropping nothing: RLIKE\(.*\); .*size", found)
    assert re.search(r"needed of them: 2 of 6 blocks, 100 rows, .* bytes of 4 columns; Spark picks row groups", found)
    (counts,) = HANDED_OVER.findall(found)
    assert (int(counts[0]), int(counts[2].replace(",", ""))) == (metric(frame, "numFiles"), metric(frame, "filesSize"))


def test_every_scan_of_a_query_is_there_before_and_after_it_ran(spark: SparkSession, items: DataFrame):
    query = spark.sql(
        """
        select a.flag, count(*) from explained a join explained b on a.small = b.small
        where a.id >= 1000 and a.id < 1050 and b.id in (select id from explained where size > 900)
          and a.size > (select avg(size) from explained where id < 50)
        group by a.flag
        union all select flag, 1 from explained where id = 5001
        """
    )
    before = explain(query)
    query.collect()
    assert before.count("shop.items version 6") == 5
    assert explain(query) == before
    assert {"id < 50: 5 of 6 files dropped by range", "id = 5001: 5 of 6 files dropped by range"} <= {
        line.strip() for line in before.splitlines()
    }


def test_equal_scans_are_shown_once_and_counted(items: DataFrame):
    found = explain(items.union(items).where("id = 5001"))
    assert found.splitlines()[0] == "shop.items version 6, by Spark itself (2 scans)"
    assert HANDED_OVER.findall(found)[0][:2] == ("1", "6")


def test_cached_frame_is_explained_by_what_filled_it(items: DataFrame):
    cached = items.where("id > 5000").cache()
    try:
        found = explain(cached.groupBy("flag").count())
        cached.count()
        assert explain(cached.groupBy("flag").count()) == found
    finally:
        cached.unpersist()
    assert found.splitlines()[0].endswith("by Spark itself, through a cached frame")
    assert HANDED_OVER.findall(found)[0][:2] == ("1", "6")


def test_each_way_in_which_files_are_read_is_said(spark: SparkSession, tmp_path: Path):
    table = ul.connect(tmp_path).create_table("shop.items", SCHEMA)
    table.append(rows_of(0))
    table.append(rows_of(1))
    rename_column(table, "small", "little")
    delete_positions(table, {1: range(10)})
    frame = read_table(spark, ul.connect(tmp_path), "shop.items").where("little < -5").select("id")
    found = explain(frame)
    own_names = "shop.items version 4, by Spark itself, under the files' own column names and types"
    assert {own_names, f"{own_names}, deleted rows taken out by a join"} <= set(found.splitlines())
    assert found.count("these files of the table: 1 file, 1 block") == 2
    assert found.count("little < -5") == 2
    assert [counts[:2] for counts in HANDED_OVER.findall(found)] == [("1", "1")] * 2


def test_what_the_ranged_reader_reads_is_said(spark: SparkSession, lake: Lake):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = ranged_frame(spark, pin(lake.table("shop.items")), why="it is a test").where("id = 5001")
        register_source(spark)
    found = explain(frame)
    assert found.startswith("shop.items version 6, by the ranged reader, since it is a test\n")
    assert "read: 1 file, 1 block, 50 rows" in found
    assert "conditions of the plan: id IS NOT NULL; id = 5001" in found
    source = spark.read.format("underlay").option("lake", lake.url).load("shop.items")
    assert explain(source) == 'shop.items, by format("underlay"), whose version was fixed when it was loaded'


def test_conditions_do_not_show_what_stands_behind_a_name(spark: SparkSession, tmp_path: Path):
    lake = ul.connect(tmp_path)
    lake.create_table("seen.words", "word string, `odd name` string")
    session(lake, spark)
    try:
        found = explain(spark.sql("select 1 from seen.words where upper(word) = 'A' and length(`odd name`) > 1"))
    finally:
        forget(spark, lake)
    assert "left to Spark, dropping nothing: (upper(word) = 'A'); (length(`odd name`) > 1)\n" in found


def test_frame_without_our_tables_says_so(spark: SparkSession):
    assert explain(spark.range(3)) == NOTHING
    assert explain(spark.sql("show databases")) == NOTHING
