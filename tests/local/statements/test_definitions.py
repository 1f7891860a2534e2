from __future__ import annotations

from uuid import uuid4

import pyarrow as pa
import pytest

import underlay as ul
from tests.local.statements.between import Between
from tests.local.statements.lakes import TRIPS, change, rows_of, small_lake
from underlay.errors import CommitConflict, InvalidRequest, TableExists, TableNotFound, Unsupported
from underlay.store import open_store


@pytest.fixture
def lake():
    return small_lake()


def test_create_table_is_what_create_table_makes_in_python(lake):
    assert change(
        lake,
        """create table taxi.rides (
             id bigint not null primary key comment 'the key',
             at timestamp, -- when
             zone varchar default 'JFK', fare decimal(10, 2) default 1.5,
             tags list<string>, pos struct<x: double, y: double>, "odd name" integer[]
           )
           partitioned by (month(at), bucket(4, id)) sorted by (at, fare desc)
           tblproperties ('codec' = 'snappy', block_rows = 1000) comment 'rides'""",
    )["version"] == 0  # fmt: skip
    lake.create_table(
        "taxi.same",
        """id bigint not null comment 'the key', at timestamp, zone varchar default 'JFK',
           fare decimal(10, 2) default 1.5,
           tags list<string>, pos struct<x: double, y: double>, "odd name" integer[]""",
        key=["id"],
        partition_by=["month(at)", "bucket(4, id)"],
        sort_by=["at", "fare desc"],
        properties={"codec": "snappy", "block_rows": 1000},
        comment="rides",
    )
    assert lake.table("taxi.rides").definition == lake.table("taxi.same").definition


def test_a_key_of_several_columns(lake):
    lake.sql("create table t.t (b int, primary key (b, a), a int)")
    definition = lake.table("t.t").definition
    names = {field.id: field.name for field in definition.schema.fields}
    assert [names[one] for one in definition.key] == ["b", "a"]


def test_create_table_as_has_the_rows_of_the_query(lake):
    text = "create table taxi.rich partitioned by (zone) as select * from taxi.trips where fare > ?"
    assert change(lake, text, [5])["inserted"] == 3
    assert rows_of(lake, "taxi.rich") == [(1, "JFK", 10.0), (2, "LGA", 20.0), (3, None, 30.0)]
    assert lake.table("taxi.rich").schema.field("id").type == pa.int64()
    assert len(lake.table("taxi.rich").definition.partition_by) == 1


def test_if_not_exists_leaves_a_table_alone(lake):
    before = rows_of(lake)
    assert change(lake, "create table if not exists TAXI.trips as select 1 as a")["inserted"] == 0
    assert change(lake, "create table if not exists taxi.trips (a int)")["version"] == 1
    assert rows_of(lake) == before
    assert change(lake, "create table if not exists taxi.new (a int)")["version"] == 0
    assert "taxi.new" in lake


def test_a_table_that_exists_is_refused(lake):
    with pytest.raises(TableExists, match=r"line 1, column 14: there is a table taxi\.trips"):
        lake.sql("create table Taxi.Trips (a int)")


def test_or_replace_makes_another_table_of_that_name(lake):
    revision = lake.table("taxi.trips").revision
    counted = "select zone, count(*) as n from taxi.trips group by zone"
    assert change(lake, f"create or replace table taxi.trips as {counted}")["inserted"] == 4
    assert rows_of(lake) == sorted([("JFK", 2), ("LGA", 1), ("EWR", 2), (None, 1)], key=repr)
    assert lake.table("taxi.trips").revision != revision
    change(lake, "create or replace table taxi.trips (a int)")
    assert rows_of(lake) == []
    change(lake, "create or replace table taxi.other (a int)")
    assert "taxi.other" in lake
    assert list(lake.verify().findings) == []


def test_or_replace_loses_no_row_that_it_has_not_seen():
    inner = open_store(f"memory://{uuid4()}")
    table = ul.connect(inner, registry="none").create_table("taxi.trips", data=TRIPS)
    store = Between(inner, lambda: table.append(TRIPS), after=2)  # the new revision's two roots come first
    lake = ul.connect(store, registry="none")
    store.is_armed = True
    with pytest.raises(CommitConflict):
        lake.sql("create or replace table taxi.trips as select id from taxi.trips")
    assert len(table) == 12


def test_drop_table(lake):
    assert change(lake, "drop table taxi.trips")["version"] is None
    assert "taxi.trips" not in lake
    change(lake, "drop table if exists taxi.trips")
    with pytest.raises(TableNotFound, match=r"line 1, column 12: there is no table taxi\.trips"):
        lake.sql("drop table taxi.trips")


def test_comments(lake):
    change(lake, "comment on table taxi.trips is 'all trips'")
    change(lake, "comment on column taxi.trips.FARE is 'in dollars'")
    definition = lake.table("taxi.trips").definition
    assert definition.comment == "all trips"
    assert [field.comment for field in definition.schema.fields] == [None, None, "in dollars"]
    change(lake, "comment on table taxi.trips is null")
    assert lake.table("taxi.trips").definition.comment is None


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("create table t.t (a int unique)", InvalidRequest, "line 1, column 25: not SQL that is understood"),
        ("create table t.t (a int references x)", InvalidRequest, "line 1, column 25: not SQL"),
        ("create table t.t (a int,\n b foo)", InvalidRequest, "line 2, column 2: b: no such type (found foo)"),
        ("create table t.t (a int,\n b int int)", InvalidRequest, "line 2, column"),
        ("create table t.t (a hugeint)", Unsupported, "tables have no columns of this type"),
        ("create table t.t (a int) partitioned by (b)", InvalidRequest, "there is no column b"),
        ("create table t.t (a int) tblproperties ('nope' = 1)", InvalidRequest, "unknown property"),
        ("create table t.t (a int) location '/tmp'", InvalidRequest, "line 1, column 26: not SQL"),
        ("create table t.t (a int) as select 1", InvalidRequest, "line 1, column 29: a table created from a query"),
        ("create table t.t", InvalidRequest, "the statement ends too early"),
        ("create table t.t as", InvalidRequest, "the statement ends too early"),
        (
            "create table t.t (a int primary key, b int primary key)",
            InvalidRequest,
            "line 1, column 44: the key is given twice",
        ),
        (
            "create table t.t (a int, b text, a int)",
            InvalidRequest,
            "line 1, column 34: a: two columns have the same name",
        ),
        ("create table t.t (primary key (a))", InvalidRequest, "a table needs at least one column"),
        ("create table t (a int)", InvalidRequest, "line 1, column 14: a table is named with its dataset"),
        ("create temp table t.t (a int)", InvalidRequest, "line 1, column 8: not SQL"),
        ("create view t.t as select 1", InvalidRequest, "line 1, column 8: not SQL"),
        ("create or replace table if not exists t.t (a int)", InvalidRequest, "contradict each other"),
        ("create table t.t as select 1 as a, 2 as a", InvalidRequest, "a"),
        ("create table t.t as select * from read_csv('/etc/passwd')", InvalidRequest, "the function read_csv"),
        ("create table t.t as select * from t.t version as of 3", TableNotFound, "there is no table t.t"),
        ("create table t.t as copy (select 1) to '/tmp/x'", InvalidRequest, "syntax error"),
        ("drop view t.t", InvalidRequest, "line 1, column 6: not SQL"),
        ("drop table taxi.trips cascade", InvalidRequest, "line 1, column 23: not SQL"),
        ("drop table taxi.trips version as of 1", InvalidRequest, "a version never changes"),
        ("comment on table taxi.trips is 7", InvalidRequest, "line 1, column 32: not SQL"),
        ("comment on column taxi.trips.nope is 'a'", InvalidRequest, "line 1, column 30: there is no column nope"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place_and_changes_nothing(lake, text, error, message):
    tables, version = lake.tables(), lake.table("taxi.trips").version
    with pytest.raises(error) as refused:
        lake.sql(text)
    assert message in str(refused.value)
    assert (lake.tables(), lake.table("taxi.trips").version) == (tables, version)
