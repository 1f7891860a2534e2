from __future__ import annotations

import pytest

from tests.local.statements.lakes import change, rows_of, small_lake
from underlay.errors import InvalidRequest, SchemaMismatch, TableExists, TableNotFound


@pytest.fixture
def lake():
    return small_lake()


def add(change):
    change.add_column("tip", "double", default=0.5, comment="the tip", after="id")


@pytest.mark.parametrize(
    ("text", "evolve"),
    [
        ("add column tip double default 0.5 comment 'the tip' after id", add),
        ("add if not exists tip double default 0.5 comment 'the tip' after id", add),
        ("add if not exists FARE int, add tip double default 0.5 comment 'the tip' after id", add),
        ("add columns (a int not null default 7, b struct<x: int, y: list<int>> first)",
         lambda c: (c.add_column("a", "int not null", default=7), c.add_column("b", "struct<x: int, y: list<int>>"),
                    c.move_column("b"))),
        ("add column at timestamptz default '2024-01-01 12:00:00+01:00'",
         lambda c: c.add_column("at", "timestamptz", default="2024-01-01 12:00:00+01:00")),
        ("add n decimal(10, 2) default -1.5, add note varchar default 'it''s'",
         lambda c: (c.add_column("n", "decimal(10, 2)", default="-1.5"),
                    c.add_column("note", "varchar", default="it's"))),
        ("drop column fare", lambda c: c.drop_column("fare")),
        ("drop column if exists nope, drop if exists fare", lambda c: c.drop_column("fare")),
        ("drop columns (fare, zone)", lambda c: (c.drop_column("fare"), c.drop_column("zone"))),
        ('rename column zone to "the area"', lambda c: c.rename_column("zone", "the area")),
        ("rename zone to area", lambda c: c.rename_column("zone", "area")),
        ("add a int, alter column a type bigint", lambda c: (c.add_column("a", "int"), c.widen_column("a", "bigint"))),
        ("add a int, alter a set data type long", lambda c: (c.add_column("a", "int"), c.widen_column("a", "bigint"))),
        ("alter column id set not null", lambda c: c.make_required("id")),
        ("alter column id set not null, alter id drop not null", lambda c: None),
        ("alter column zone comment 'where'", lambda c: c.set_comment("where", "zone")),
        ("alter column fare first", lambda c: c.move_column("fare")),
        ("alter column id after fare", lambda c: c.move_column("id", after="fare")),
        ("add constraint positive check (fare >= 0)", lambda c: c.add_check("positive", "fare >= 0")),
        ("add constraint a check (fare >= 0), add constraint b check (id > 0), drop constraint a",
         lambda c: c.add_check("b", "id > 0")),
        ("drop constraint if exists nope, comment 'all'", lambda c: c.set_comment("all")),
        ("add primary key (zone, id)", lambda c: c.set_key(["zone", "id"])),
        ("drop primary key", lambda c: c.set_key([])),
        ("set partitioned by (zone, bucket(4, id))", lambda c: c.set_partition_by(["zone", "bucket(4, id)"])),
        ("set sorted by (zone desc, fare)", lambda c: c.set_sort_by(["zone desc", "fare"])),
        ("set sorted by (zone), reset sorted by, reset partitioned by", lambda c: None),
        ("set tblproperties ('codec' = 'snappy', block_rows = 7)",
         lambda c: (c.set_property("codec", "snappy"), c.set_property("block_rows", 7))),
        ("unset tblproperties ('block_rows')", lambda c: c.drop_property("block_rows")),
        ("comment 'all trips'", lambda c: c.set_comment("all trips")),
    ],
)  # fmt: skip
def test_alter_table_is_evolve_in_one_commit(lake, text, evolve):
    done = change(lake, f"alter table Taxi.trips {text}")
    other = small_lake()
    with other.table("taxi.trips").evolve() as step:
        evolve(step)
    assert lake.table("taxi.trips").definition == other.table("taxi.trips").definition
    assert rows_of(lake) == rows_of(other)
    assert done["version"] == lake.table("taxi.trips").version == other.table("taxi.trips").version


def test_fields_of_structs_by_their_paths(lake):
    lake.sql("create table t.t (pos struct<x: int>)")
    change(lake, "alter table t.t add column pos.y double, rename pos.x to lon")
    assert [field.name for field in lake.table("t.t").schema.field("pos").type] == ["lon", "y"]


def test_rename_to(lake):
    before = rows_of(lake)
    change(lake, "alter table taxi.trips rename to cab.rides")
    assert rows_of(lake, "cab.rides") == before
    assert "taxi.trips" not in lake


def test_checks_of_create_table_hold_from_the_first_row(lake):
    lake.sql("create table t.t (a int check (a > 0), b int, constraint small check (a + b < 10))")
    assert lake.table("t.t").definition.checks == {"a_check": "a > 0", "small": "a + b < 10"}
    change(lake, "insert into t.t values (1, 2), (3, null)")
    for row in ("(0, 1)", "(5, 6)"):
        with pytest.raises(SchemaMismatch):
            lake.sql(f"insert into t.t values {row}")
    assert len(lake.table("t.t")) == 2


def test_if_exists_of_a_table_that_is_not_there(lake):
    assert change(lake, "alter table if exists taxi.nope drop column a")["version"] is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("alter table taxi.trips drop column fare", "one commit would drop column fare; no data file is rewritten"),
        ("alter table taxi.trips rename to a.b", "taxi.trips, version 1: would be called a.b"),
    ],
)
def test_explain_changes_nothing(lake, text, words):
    assert words in repr(lake.sql(f"explain {text}"))
    assert lake.table("taxi.trips").version == 1
    assert "fare" in lake.table("taxi.trips").schema.names


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("alter table taxi.trips drop column nope", InvalidRequest, "line 1, column 36: there is no column nope"),
        ("alter table taxi.trips drop column fare,\n add column zone int", InvalidRequest, "line 2, column "),
        ("alter table taxi.trips add column a foo", InvalidRequest, "line 1, column 24: "),
        ("alter table taxi.trips add column a int default 'x'", InvalidRequest, "line 1, column 24: "),
        ("alter table taxi.trips add column a", InvalidRequest, "expected a type"),
        ("alter table taxi.trips add column a int unique", InvalidRequest, "line 1, column 41: not SQL"),
        ("alter table taxi.trips add check (id > 1)", InvalidRequest, "line 1, column 28: not SQL"),
        ("alter table taxi.trips add constraint a check (fare > 100)", InvalidRequest, ""),
        ("alter table taxi.trips add constraint a check (nope > 100)", InvalidRequest, "nope"),
        ("alter table taxi.trips alter column fare set not null", SchemaMismatch, "fare"),
        ("alter table taxi.trips alter column id type int", InvalidRequest, "line 1, column 24: "),
        ("alter table taxi.trips alter column id set default 3", InvalidRequest, "line 1, column 40: not SQL"),
        ("alter table taxi.trips set schema x", InvalidRequest, "line 1, column 28: not SQL"),
        ("alter table taxi.trips set tblproperties ('nope' = 1)", InvalidRequest, "column 24: unknown property"),
        ("alter table taxi.trips owner to me", InvalidRequest, "line 1, column 24: not SQL"),
        ("alter table taxi.trips", InvalidRequest, "the statement ends too early"),
        ("alter table taxi.trips version as of 1 drop column fare", InvalidRequest, "a version never changes"),
        ("alter view taxi.trips drop column fare", InvalidRequest, "line 1, column 7: not SQL"),
        ("alter table taxi.nope drop column fare", TableNotFound, "line 1, column 13: there is no table"),
        ("alter table underlay.files drop column rows", InvalidRequest, "system views are read-only"),
        ("alter table taxi.trips rename to Taxi.zones", TableExists, "line 1, column 34: there is a table"),
        ("create table t.t (a int, primary key (b))", InvalidRequest, "line 1, column 39: there is no column b"),
        ("create table t.t (a int) partitioned by (year(b))", InvalidRequest, "column 47: there is no column b"),
        ("create table t.t (a int check (b > 1))", InvalidRequest, "line 1, column 32: there is no column b"),
        ("create table t.t (a int check (getenv('HOME') = 'a'))", InvalidRequest, "getenv"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_place_and_changes_nothing(lake, text, error, message):
    tables = lake.tables()
    with pytest.raises(error) as refused:
        lake.sql(text)
    assert message in str(refused.value)
    assert lake.table("taxi.trips").version == 1
    assert lake.tables() == tables
