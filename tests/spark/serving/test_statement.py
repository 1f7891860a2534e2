"""Statements of the network on Spark: the versions they read, their rows, their values, and how they are stopped."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.spark.conftest import ROWS
from tests.spark.serving.statements import rows_of, statement_on, table_of
from underlay.api.lake import Lake
from underlay.errors import TableNotFound, Unsupported
from underlay.spark.serving import statement as statements
from underlay.spark.serving.failures import FailureKind, StatementFailure
from underlay.spark.serving.statement import SparkStatement, StatementStopped


@pytest.fixture
def small(tmp_path) -> Lake:
    found = ul.connect(tmp_path / "small", registry="none")
    found.sql("create table a.b (id bigint, price decimal(9, 2))")
    found.sql("insert into a.b values (1, 1.25), (2, 2.5), (3, null)")
    return found


def test_each_table_is_one_version_unless_the_statement_pins_another(spark: SparkSession, small: Lake):
    before = datetime.now(UTC)
    small.sql("delete from a.b where id = 1")
    small.table("a.b").tag("old", version=1)
    points = ("", " version as of 1", " version as of 'old'")
    text = f"select {', '.join(f'(select count(*) from a.b{point})' for point in points)}"
    assert rows_of(spark, small, text) == [(2, 3, 3)]
    assert rows_of(spark, small, f"select count(*) from a.b timestamp as of '{before.isoformat()}'") == [(3,)]
    assert rows_of(spark, small, "select count(*) from a.b x join a.b y using (id)", as_of=before) == [(3,)]

    pinned = statement_on(spark, small)
    pinned.analyse("select x.id from a.b x join a.b version as of 1 y using (id) order by id", None)
    small.sql("delete from a.b")
    assert table_of(pinned).to_pydict() == {"id": [2, 3]}
    assert pinned.versions == {"a.b": 2, "a.b@1": 1}


def test_tables_that_are_not_there_are_told_as_the_lake_tells_them(spark: SparkSession, small: Lake):
    for text in ("select * from a.c", "select * from c", "with x as (select 1) select * from y"):
        with pytest.raises(TableNotFound, match="there is no table"):
            statement_on(spark, small).analyse(text, None)


def test_parameters_are_values_and_never_text(spark: SparkSession, small: Lake):
    assert rows_of(spark, small, "select ?, ?, ?", [1, "'; drop", None]) == [(1, "'; drop", None)]
    named = {"least": Decimal("2.00"), "large": 2**70}
    assert rows_of(spark, small, "select id, :large from a.b where price > :least", named) == [(2, Decimal(2**70))]
    with pytest.raises(StatementFailure) as unbound:
        statement_on(spark, small).analyse("select ?", None)
    assert unbound.value.kind is FailureKind.PARAMETER


@pytest.mark.parametrize(
    ("sql", "kind", "place"),
    [
        ("selec 1", FailureKind.SYNTAX, (1, 1)),
        ("select id,\n  pricce from a.b", FailureKind.COLUMN, (2, 3)),
        ("select nofunction(1)", None, None),
        ("select sum(id) + id from a.b", FailureKind.QUERY, None),
    ],
)
def test_faults_of_a_text_have_their_kind_and_place(spark: SparkSession, small: Lake, sql, kind, place):
    if kind is None:
        with pytest.raises(ul.errors.InvalidRequest, match="not available"):
            statement_on(spark, small).analyse(sql, None)
        return
    with pytest.raises(StatementFailure) as failed:
        statement_on(spark, small).analyse(sql, None)
    assert failed.value.kind is kind
    assert place in (None, (failed.value.line, failed.value.column))


def test_faults_of_data_come_when_rows_are_read_and_say_no_paths(spark: SparkSession, small: Lake):
    for text in ("select 1 div (id - id) from a.b", "select cast(concat('x', id) as int) from a.b"):
        with pytest.raises(StatementFailure) as failed:
            rows_of(spark, small, text)
        assert failed.value.kind is FailureKind.DATA
        assert "/" not in failed.value.detail


def test_types_that_answers_do_not_have_are_refused_by_name(spark: SparkSession, small: Lake):
    for value in ("interval 1 month", "parse_json('1')", "time '12:00:00'"):
        with pytest.raises(Unsupported, match="Cast it"):
            _ = _analysed(spark, small, f"select {value} as x").schema


def test_rows_come_in_order_whatever_the_window_and_the_driver_holds_one(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
):
    found = rows_of(spark, lake, "select id from shop.items order by id")
    assert found == sorted(found)
    assert len(found) == 6 * ROWS
    windows = []
    collected = SparkStatement._collected
    monkeypatch.setattr(SparkStatement, "_collected", lambda *given: windows.append(len(given[2])) or collected(*given))
    monkeypatch.setattr(statements, "WINDOW_BYTES", 1)
    one = _analysed(spark, lake, "select id from range(0, 1000, 1, 8)")
    assert table_of(one)["id"].to_pylist() == list(range(1000))
    assert windows == [1] * 8
    monkeypatch.setattr(statements, "WINDOW_BYTES", 1 << 30)
    windows.clear()
    table_of(_analysed(spark, lake, "select id from range(0, 1000, 1, 8)"))
    assert windows[0] == 1
    assert len(windows) < 8


def test_a_statement_that_is_stopped_leaves_no_job_and_says_so(spark: SparkSession, lake: Lake):
    statement = statement_on(spark, lake)
    ended: list[type[BaseException] | None] = []
    has_begun = threading.Event()

    def work() -> None:
        statement.analyse("select count(*) from range(0, 9000000000000, 1, 4) where id % 7 = 3", None)
        has_begun.set()
        try:
            table_of(statement)
            ended.append(None)
        except StatementStopped as stopped:
            ended.append(type(stopped))

    statement.start(work)
    has_begun.wait()
    while not statement.progress()["tasks"]:
        pass
    shown = statement.progress()
    assert shown["tasks"] > shown["tasks_done"]
    statement.cancel()
    assert ended == [StatementStopped]
    assert statement.has_ended
    java = spark.sparkContext._jsc.sc().statusTracker()
    jobs = [spark.sparkContext.statusTracker().getJobInfo(one) for one in java.getJobIdsForTag(statement._tag)]
    assert jobs
    while any(job.status == "RUNNING" for job in jobs):
        jobs = [spark.sparkContext.statusTracker().getJobInfo(job.jobId) for job in jobs]


def _analysed(spark: SparkSession, lake: Lake, text: str) -> SparkStatement:
    found = statement_on(spark, lake)
    found.analyse(text, None)
    return found
