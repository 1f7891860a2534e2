from __future__ import annotations

from uuid import uuid4

import duckdb
import pyarrow as pa
import pytest

import underlay as ul
from tests.local.statements.between import Between
from tests.local.statements.lakes import TRIPS, change, rows_of, small_lake
from underlay.errors import InvalidRequest, SchemaMismatch, TableNotFound, UnknownColumn
from underlay.store import open_store


@pytest.fixture
def lake():
    return small_lake()


def test_values_are_appended_in_one_commit(lake):
    before = lake.table("taxi.trips").version
    assert change(lake, "insert into taxi.trips values (7, 'SFO', 1.5), (8, null, 2)") == {
        "affected": 2, "updated": 0, "deleted": 0, "inserted": 2, "version": before + 1,
    }  # fmt: skip
    assert lake.sql("select * from taxi.trips where id > 6 order by id").fetchall() == [(7, "SFO", 1.5), (8, None, 2.0)]


def test_the_answer_prints_and_has_a_length(lake):
    result = lake.sql("insert into taxi.trips (id) values (7)")
    assert "num_inserted_rows" in repr(result)
    assert len(result) == 1


def test_columns_that_are_not_named_get_their_default_or_null(lake):
    lake.create_table("taxi.rates", "id int not null, zone varchar default 'JFK', fare double")
    change(lake, 'insert into taxi.rates ("ID") values (1)')
    change(lake, "insert into TAXI.Rates (fare, id) select 2.5, 2")
    assert rows_of(lake, "taxi.rates") == [(1, "JFK", None), (2, "JFK", 2.5)]


def test_default_in_values_is_the_default_of_the_column(lake):
    lake.create_table("taxi.rates", "id int, zone varchar default 'JFK', fare double")
    change(lake, "insert into taxi.rates values (1, default, 2), (2, DEFAULT, '3')")
    assert rows_of(lake, "taxi.rates") == [(1, "JFK", 2.0), (2, "JFK", 3.0)]
    with pytest.raises(InvalidRequest, match="line 1, column 48: DEFAULT stands for a column in all rows"):
        lake.sql("insert into taxi.rates values (1, 'a', 2), (2, default, 3)")
    assert "2 rows would be appended" in repr(
        lake.sql("explain insert into taxi.rates values (1, '2', 3), ('4', 5, 6)")
    )


def test_by_name_matches_columns_by_their_names(lake):
    change(lake, "insert into taxi.trips by name select 1.5 as fare, 7 as id")
    assert lake.sql("from taxi.trips where id = 7").fetchall() == [(7, None, 1.5)]


def test_values_are_cast_as_duckdb_casts_them():
    lake = small_lake()
    columns = "a bigint, b date, c decimal(5, 2), d varchar, e integer[], f struct(x integer, y varchar), g timestamptz"
    rows = "('7', '2024-02-29', 1.255, 12, [1, 2], {'x': '3', 'y': 4}, '2024-01-01 12:00:00+01'), (2.5, null, '7', date '2024-01-01', null, null, null)"  # noqa: E501
    lake.sql(f"create table t.t ({columns})")
    change(lake, f"insert into t.t values {rows}")
    with duckdb.connect() as judge:
        judge.execute(f"set timezone = 'UTC'; create table t ({columns})")
        judge.execute(f"insert into t values {rows}")
        assert rows_of(lake, "t.t") == sorted(judge.execute("from t").fetchall(), key=repr)


def test_a_query_is_cast_as_duckdb_casts_it(lake):
    lake.sql("create table t.t (a integer, b varchar)")
    change(lake, "insert into t.t select fare, id from taxi.trips")
    assert rows_of(lake, "t.t") == sorted([(10, "1"), (20, "2"), (30, "3"), (4, "4"), (5, "5"), (None, "6")], key=repr)


def test_with_and_frames_and_older_versions_are_sources(lake):
    change(lake, "insert into taxi.trips with a as (select 7 as id) select id, null, null from a")
    change(lake, "insert into taxi.trips from df", df=pa.table({"id": [8], "zone": ["x"], "fare": [1.0]}))
    change(lake, "insert into taxi.trips (select id + 100, zone, fare from taxi.trips version as of 1 where id = 1)")
    assert lake.sql("select id from taxi.trips where id > 6 order by id").fetchall() == [(7,), (8,), (101,)]


def test_parameters_by_place_and_by_name(lake):
    change(lake, "insert into taxi.trips values (?, ?, ?)", [7, "SFO", 1.5])
    change(
        lake, "insert into taxi.trips select $Id, $zone, fare from taxi.trips where id = $id", {"id": 1, "ZONE": "x"}
    )
    assert lake.sql("from taxi.trips where id = 7").fetchall() == [(7, "SFO", 1.5)]
    assert lake.table("taxi.trips").count("zone = 'x'") == 1


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ("insert into taxi.trips values (?, ?, 1)", [1], "line 1, column 35: no value is given (found ?)"),
        ("insert into taxi.trips values (?, 'a', 1)", [1, 2], "some given values are not used (found $2)"),
        ("insert into taxi.trips values ($a, ?, 1)", [1], "cannot be mixed"),
    ],
)
def test_parameters_that_do_not_match_are_refused(lake, text, parameters, message):
    with pytest.raises(InvalidRequest) as refused:
        lake.sql(text, parameters)
    assert message in str(refused.value)


def test_a_query_that_reads_the_table_reads_the_version_that_is_changed():
    """Another commit comes between: the rows are read again on top of it, so that the table doubles exactly."""
    inner = open_store(f"memory://{uuid4()}")
    other = ul.connect(inner, registry="none")
    table = other.create_table("taxi.trips", data=TRIPS)
    store = Between(inner, lambda: table.append(TRIPS.slice(0, 1)))
    lake = ul.connect(store, registry="none")
    store.is_armed = True
    assert change(lake, "insert into taxi.trips select * from taxi.trips")["inserted"] == 7
    assert len(table) == 14


def test_rows_of_another_source_are_appended_beside_another_commit():
    inner = open_store(f"memory://{uuid4()}")
    other = ul.connect(inner, registry="none")
    table = other.create_table("taxi.trips", data=TRIPS)
    store = Between(inner, lambda: table.append(TRIPS.slice(0, 1)))
    lake = ul.connect(store, registry="none")
    store.is_armed = True
    assert change(lake, "insert into taxi.trips values (7, 'a', 1)")["inserted"] == 1
    assert len(table) == 8


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("insert into taxi.trips (id, nope) values (1, 2)", UnknownColumn, "line 1, column 29: there is no"),
        ("insert into taxi.trips (id, ID) values (1, 2)", InvalidRequest, "line 1, column 29: a column is named twice"),
        ("insert into taxi.trips values (1, 'a', 2),\n (2, 'b')", InvalidRequest, "VALUES lists must all"),
        ("insert into taxi.trips\nselect 1, 'a'", InvalidRequest, "line 2, column 1: there are not as many values"),
        ("insert into taxi.trips by name select 1 as nope", UnknownColumn, "line 1, column 32: there is no"),
        ("insert into taxi.trips\n select nope, 1, 2 from taxi.zones", InvalidRequest, "LINE 2:  select nope"),
        ("insert into taxi.trips values (1, 'a', 'b')", InvalidRequest, "line 1, column 40: Conversion Error"),
        ("insert into taxi.trips select 'x', zone, fare from taxi.trips", InvalidRequest, "column 31: Conversion"),
        ("insert into taxi.nope values (1)", TableNotFound, "line 1, column 13: there is no table taxi.nope"),
        ("insert into trips values (1)", InvalidRequest, "line 1, column 13: a table is named with its dataset"),
        ("insert into a.b.c values (1)", InvalidRequest, "line 1, column 16: not SQL that is understood"),
        ("insert into taxi.trips version as of 1 values (1)", InvalidRequest, "column 24: a version never changes"),
        ("insert into taxi.trips values (1, 'a', 2) on conflict do nothing", InvalidRequest, "column 43: ON CONF"),
        ("insert into taxi.trips values (1, 'a', 2) returning nope", InvalidRequest, "line 1, column 53: Binder Error"),
        ("insert or replace into taxi.trips values (1, 'a', 2)", InvalidRequest, "line 1, column 8: INSERT adds rows"),
        ("insert into taxi.trips by name values (1)", UnknownColumn, "there is no column col0"),
        ("insert into taxi.trips", InvalidRequest, "line 1, column 23: the statement ends too early"),
        ("insert into taxi.trips values (1, 'a', 2); drop table taxi.trips", InvalidRequest, "more than one statement"),
        ("insert into taxi.trips values (1, 'a', max(2))", InvalidRequest, "aggregate"),
        ("insert into taxi.trips select 1 as a, 'a' as b, from", InvalidRequest, "syntax error"),
        ("with a as (select 1) insert into taxi.trips select * from a", InvalidRequest, "not as many values as"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_place_and_changes_nothing(lake, text, error, message):
    before = [lake.table(name).version for name in ("taxi.trips", "taxi.Zones")]
    with pytest.raises(error) as refused:
        lake.sql(text)
    assert message in str(refused.value)
    assert [lake.table(name).version for name in ("taxi.trips", "taxi.Zones")] == before


def test_null_in_a_required_column_is_refused(lake):
    lake.sql("create table t.t (a int not null, b int)")
    with pytest.raises(SchemaMismatch, match="a: a required column is missing"):
        lake.sql("insert into t.t (b) values (1)")
    with pytest.raises(SchemaMismatch, match="a: a required column holds null"):
        lake.sql("insert into t.t select null, 1")
    assert len(lake.table("t.t")) == 0


def test_many_rows_of_values(lake):
    lake.sql("create table t.t (a int, b varchar)")
    rows = ", ".join(f"({number}, 'z{number}')" for number in range(1000))
    assert change(lake, f"insert into t.t values {rows}")["inserted"] == 1000
    assert lake.sql("select sum(a), count(distinct b) from t.t").fetchall() == [(499500, 1000)]
