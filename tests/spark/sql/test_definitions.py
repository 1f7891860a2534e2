"""Statements that make, change and drop tables, and those that read older versions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import underlay as ul
from underlay.api.lake import Lake
from underlay.spark import forget, session


@pytest.fixture
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Lake]:
    found = ul.connect(tmp_path_factory.mktemp("definitions") / "lake")
    found.create_table("made.first", "id bigint")
    session(found, spark)
    yield found
    forget(spark, found)


def answer(spark: SparkSession, statement: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in spark.sql(statement).collect()]


def test_tables_are_made_replaced_and_dropped(spark: SparkSession, lake: Lake):
    assert (
        answer(
            spark,
            "create table made.trips (id bigint not null comment 'number', zone string, at timestamp_ntz) "
            "using underlay partitioned by (zone, months(at)) comment 'all of them' "
            "tblproperties ('block_rows' = '1000')",
        )
        == []
    )
    definition = lake.table("made.trips").definition
    assert [part.transform for part in definition.partition_by] == ["identity", "month"]
    assert (definition.comment, definition.properties) == ("all of them", {"block_rows": "1000"})
    assert [field.nullable for field in lake.table("made.trips").schema] == [False, True, True]
    answer(spark, "create table if not exists made.trips using underlay as select 1 as x")
    with pytest.raises(PySparkException, match="already exists"):
        spark.sql("create table made.trips (x int) using underlay")
    answer(spark, "create table made_new.twice using underlay as select id, id * 2 as twice from range(4)")
    assert answer(spark, "select sum(id), sum(twice) from made_new.twice") == [(6, 12)]
    answer(spark, "create or replace table made_new.twice using underlay as select sum(twice) as s from made_new.twice")
    assert answer(spark, "select * from made_new.twice") == [(12,)]
    assert answer(spark, "select * from made_new.twice version as of 0") == []  # before its rows came
    with pytest.raises(PySparkException, match="no such row"):
        spark.sql("create table made.bad using underlay as select raise_error('no such row') as a")
    answer(spark, "drop table made_new.twice")
    answer(spark, "drop table if exists made_new.twice")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("made_new.twice")
    assert [table.name for table in lake.tables()] == ["made.first", "made.trips"]


def test_tables_are_altered(spark: SparkSession, lake: Lake):
    answer(spark, "insert into made.first values (1)")
    for statement in (
        "alter table made.first add columns (small int comment 'few' after id, half double default 1.5 first)",
        "alter table made.first rename column small to more",
        "alter table made.first alter column more type bigint",
        "alter table made.first alter column more comment 'many'",
        "alter table made.first add column gone string",
        "alter table made.first drop column gone",
        "alter table made.first drop columns if exists (gone)",
        "alter table made.first set tblproperties ('block_rows' = '2000')",
        "alter table made.first unset tblproperties if exists ('block_bytes')",
        "comment on table made.first is 'the first'",
        "alter table made.first rename to made.other",
    ):
        assert answer(spark, statement) == []
    assert answer(spark, "select * from made.other") == [(1.5, 1, None)]
    described = answer(spark, "describe made.other")
    assert described == [("half", "double", None), ("id", "bigint", None), ("more", "bigint", "many")]
    definition = lake.table("made.other").definition
    assert (definition.comment, definition.properties) == ("the first", {"block_rows": "2000"})


def test_older_versions_are_read_in_any_part_of_a_statement(spark: SparkSession, lake: Lake):
    answer(spark, "insert into made.first values (1), (2)")
    lake.table("made.first").tag("audit")
    answer(spark, "insert into made.first values (3)")
    first = "made.first version as of 1"
    assert answer(spark, f"select count(*) from {first}") == [(2,)]
    assert answer(spark, "select count(*) from made.first version as of 'audit'") == [(2,)]
    assert answer(spark, "select count(*) from made.first timestamp as of current_timestamp()") == [(3,)]
    assert answer(
        spark, f"with o as (select * from {first}) select count(*) from o where id in (select id from {first})"
    ) == [(2,)]
    assert answer(spark, f"select (select count(*) from {first}), count(*) from made.first") == [(2, 3)]
    assert answer(spark, f"select first.id from {first} join made.first n on first.id = n.id and n.id = 1") == [(1,)]
    answer(spark, f"insert into made.first select id + 10 from {first}")
    assert answer(spark, "select sum(id) from made.first") == [(1 + 2 + 3 + 11 + 12,)]
    for missing in ("version as of 99", "version as of 'nothing'", "timestamp as of '1999-01-01'"):
        with pytest.raises(PySparkException):
            spark.sql(f"select * from made.first {missing}")
    history = spark.sql("describe history made.first").collect()
    assert [row.version for row in history] == [3, 2, 1, 0]
    assert history[0].operationMetrics["rows_added"] == "2"
    assert [row.version for row in spark.sql("desc history made.first limit 2").collect()] == [3, 2]
