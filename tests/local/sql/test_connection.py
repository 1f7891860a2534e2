from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import underlay
from underlay.scan.query import Query


@pytest.fixture
def lake(tmp_path):
    with underlay.connect(tmp_path) as lake:
        lake.create_table("a.b", data=pa.table({"i": [1, 2, 3]}), properties={"block_rows": 1})
        yield lake


@pytest.fixture
def connection(lake):
    with lake.duckdb() as connection:
        yield connection


def test_tables_are_there(connection):
    assert connection.sql("select sum(i) from a.b").fetchall() == [(6,)]
    assert connection.execute("from a.b where i > ?", [1]).fetchall() == [(2,), (3,)]


def test_each_query_reads_the_newest_version(lake, connection):
    assert connection.sql("select count(*) from a.b").fetchall() == [(3,)]
    lake["a.b"].append(pa.table({"i": [4]}))
    assert connection.sql("select count(*) from a.b").fetchall() == [(4,)]
    assert connection.cursor().execute("select count(*) from a.b").fetchall() == [(4,)]


def test_a_query_reads_one_version_of_a_table(lake, connection, monkeypatch):
    """Another commits between the two scans of the query."""
    batches = Query.batches
    table = lake["a.b"]

    def commit(query, *slabs):
        if len(table) < 6:
            table.append(pa.table({"i": [7]}))
        return batches(query, *slabs)

    monkeypatch.setattr(Query, "batches", commit)
    assert connection.sql("select count(*) from a.b x full join a.b y on x.i = y.i").fetchall() == [(3,)]
    assert len(table) > 3


def test_filters_reach_the_planner(connection, monkeypatch):
    plans = []
    batches = Query.batches

    def noted(query, *slabs):
        plans.append(query.plan.kept.blocks)
        return batches(query, *slabs)

    monkeypatch.setattr(Query, "batches", noted)
    assert connection.sql("select i from a.b where i = 2").fetchall() == [(2,)]
    assert plans == [1]


def test_it_is_the_users_own(connection, tmp_path):
    frame = pa.table({"i": [1], "z": ["one"]})
    assert connection.sql("select z from a.b join frame using (i)").fetchall() == [("one",)]
    connection.execute("create table mine as from a.b")
    connection.execute(f"copy mine to '{tmp_path}/mine.csv'")
    assert (tmp_path / "mine.csv").exists()
    assert frame.num_rows == 1


def test_new_tables_and_columns_come_with_refresh(lake, connection):
    lake.create_table("c.d", data=pa.table({"x": [1]}))
    with pytest.raises(duckdb.CatalogException):
        connection.sql("from c.d")
    connection.refresh()
    assert connection.sql("from c.d").fetchall() == [(1,)]
    assert connection.sql("select current_schema()").fetchall() == [("main",)]


def test_the_lake_cannot_be_changed(connection):
    with pytest.raises(duckdb.Error):
        connection.execute("insert into a.b values (1)")


def test_it_closes(lake):
    with lake.duckdb() as connection:
        pass
    with pytest.raises(duckdb.ConnectionException):
        connection.execute("select 1")
    assert len(lake["a.b"]) == 3


def test_a_filter_that_duckdb_hands_over_wrongly_is_an_error_and_no_wrong_answer(lake, connection):
    lake.create_table("a.f", data=pa.table({"f": [1.0, None, float("nan")]}))
    connection.refresh()
    with pytest.raises(duckdb.Error, match="comparison with NaN"):
        connection.sql("select f from a.f where f <= 'nan'").fetchall()
    assert connection.sql("select count(*) from a.f where f < 'nan'").fetchall() == [(1,)]
