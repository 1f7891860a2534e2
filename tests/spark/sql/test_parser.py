"""Statements pass through Python: those that are none of ours as if they did not, names always at their newest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import underlay as ul
from underlay.api.lake import Lake
from underlay.spark import forget, session
from underlay.spark.jvm.gateway import JavaObject, call, java_session

pytestmark = pytest.mark.local_only

STATEMENTS: list[tuple[str, dict[str, object] | list[object] | None]] = [
    ("select 1 as a, 'x' as b", None),
    ("select :one + 1 as two", {"one": 1}),
    ("select ? + ? as three", [1, 2]),
    ("select id from range(3) where id > :least", {"least": 1}),
    ("create or replace temp view passing as select id, id * 2 as twice from range(4)", None),
    ("select sum(twice) from passing", None),
    ("with passing as (select 7 as id) select * from passing", None),
    ("explain select id from passing where id = 2", None),
    ("cache table passing", None),
    ("uncache table passing", None),
    ("set spark.sql.passing = 1", None),
    ("show tables in default", None),
    ("describe passing", None),
    ("insert into nowhere.at_all values (1)", None),
    ("delete from nowhere.at_all", None),
    ("merge into nowhere.at_all t using passing s on t.id = s.id when matched then delete", None),
    ("create table passing_table (x int) using parquet", None),
    ("insert into passing_table values (1), (2)", None),
    ("insert overwrite passing_table select 3", None),
    ("select * from passing_table", None),
    ("alter table passing_table rename to passing_other", None),
    ("drop table passing_other", None),
    ("begin declare x int default 3; select x + 1 as y; end", None),
    ("begin select nothing; end", None),
    ("selec 1", None),
    ("select from where", None),
    ("select nothing from passing", None),
    ("select * from nowhere.at_all", None),
    ("select cast('x' as int)", None),
    ("select 1; select 2", None),
    ("drop view passing", None),
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Lake]:
    found = ul.connect(tmp_path_factory.mktemp("passing") / "lake")
    found.create_table("passing.numbers", "id bigint").append(pa.table({"id": [1]}))
    session(found, spark)
    yield found
    forget(spark, found)


def outcome(spark: SparkSession, statement: str, args: dict[str, object] | list[object] | None) -> object:
    """What a statement gives, without the numbers that Spark counts up."""
    try:
        rows = spark.sql(statement, args=args).collect()
    except PySparkException as error:
        return type(error), error.getCondition(), error.getSqlState(), error.getMessageParameters()
    return ["".join(letter for letter in str(row) if not letter.isdigit()) for row in rows]


def parser_field(spark: SparkSession) -> tuple[JavaObject, JavaObject]:
    state = call(java_session(spark), "sessionState")
    field = call(call(state, "getClass"), "getDeclaredField", "sqlParser")
    call(field, "setAccessible", True)
    return state, field


def test_statements_that_are_none_of_ours_do_what_they_did(
    spark: SparkSession, lake: Lake, caplog: pytest.LogCaptureFixture
):
    caplog.clear()
    through = [outcome(spark, *one) for one in STATEMENTS]
    assert caplog.records == []
    state, field = parser_field(spark)
    ours = call(field, "get", state)
    plain = call(call(call(java_session(spark), "sessionState"), "catalog"), "parser")
    assert "Underlay" in str(call(ours, "toString"))
    call(field, "set", state, plain)
    try:
        without = [outcome(spark, *one) for one in STATEMENTS]
    finally:
        call(field, "set", state, ours)
    for statement, one, other in zip(STATEMENTS, through, without, strict=True):
        assert one == other, statement


def elsewhere(lake: Lake, code: str) -> None:
    """Another process does something to the lake."""
    before = f"import underlay as ul, pyarrow as pa\nlake = ul.connect({lake.url!r})\n"
    subprocess.run([sys.executable, "-c", before + code], check=True)


def test_what_other_processes_commit_is_seen_at_once(spark: SparkSession, lake: Lake):
    spark.sql("create or replace temp view passing_view as select * from passing.numbers")
    later = spark.newSession()
    elsewhere(
        lake,
        "lake.table('passing.numbers').append(pa.table({'id': [2]}))\n"
        "lake.create_table('passing.more', 'id bigint').append(pa.table({'id': [3]}))\n"
        "lake.create_table('passing_new.first', 'id bigint').append(pa.table({'id': [4]}))\n",
    )
    assert {row.id for row in spark.sql("select * from passing_view").collect()} == {1, 2}
    assert {row.id for row in spark.table("passing.numbers").collect()} == {1, 2}
    assert {row.id for row in later.sql("select id from passing.`more`").collect()} == {3}
    assert {row.id for row in spark.sql("select id from passing_new.first").collect()} == {4}
    elsewhere(
        lake,
        "lake.table('passing.numbers').append(pa.table({'id': [5]}))\n"
        "lake.rename_table('passing.more', 'passing.other')\n"
        "lake.drop_table('passing_new.first')\n",
    )
    assert {row.id for row in spark.table("passing_view").collect()} == {1, 2, 5}
    assert {row.id for row in later.table("passing.other").collect()} == {3}
    tables = {row.tableName for row in spark.sql("show tables in passing").collect() if not row.isTemporary}
    assert tables == {"numbers", "other"}
    for gone in ("passing.more", "passing_new.first"):
        assert not spark.catalog.tableExists(gone)
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql(f"select * from {gone}")


def test_names_within_the_staleness_are_not_looked_up(spark: SparkSession, tmp_path: Path):
    lake = ul.connect(tmp_path / "stale", max_staleness_seconds=3600)
    lake.create_table("passing_stale.numbers", "id bigint").append(pa.table({"id": [1]}))
    session(lake, spark)
    try:
        assert spark.sql("select * from passing_stale.numbers").count() == 1
        elsewhere(lake, "lake.table('passing_stale.numbers').append(pa.table({'id': [2]}))")
        assert spark.sql("select * from passing_stale.numbers").count() == 1
        lake.table("passing_stale.numbers").append(pa.table({"id": [3]}))
        assert spark.sql("select * from passing_stale.numbers").count() == 3
    finally:
        forget(spark, lake)
