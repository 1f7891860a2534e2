"""UPDATE and MERGE, and the joins that become merges."""

from __future__ import annotations

from uuid import uuid4

import pyarrow as pa
import pytest

import underlay as ul
from tests.local.statements.between import Between
from tests.local.statements.lakes import TRIPS, ZONES, change, rows_of, small_lake
from underlay.errors import InvalidRequest, TableNotFound, UnknownColumn
from underlay.store import open_store


@pytest.fixture
def lake():
    return small_lake()


def fares(lake):
    return dict(lake.sql("select id, fare from taxi.trips order by id").fetchall())


def test_update_gives_rows_other_values_in_one_commit(lake):
    done = change(lake, "update taxi.trips set fare = fare * 2, zone = 'x' || id where zone = 'JFK' and fare > 4")
    assert done == {"affected": 1, "updated": 1, "deleted": 0, "inserted": 0, "version": 2}
    assert lake.sql("from taxi.trips where id = 1").fetchall() == [(1, "x1", 20.0)]


def test_values_are_of_the_row_as_it_was(lake):
    lake.sql("create table t.t as select 1 as a, 2 as b")
    change(lake, "update t.t set a = b, b = a")
    assert rows_of(lake, "t.t") == [(2, 1)]


def test_update_of_all_rows_by_the_tables_alias_and_name(lake):
    change(lake, "UPDATE Taxi.trips AS x SET Fare = coalesce(x.fare, 0) + taxi.trips.id WHERE x.id = x.id")
    assert fares(lake) == {1: 11.0, 2: 22.0, 3: 33.0, 4: 8.0, 5: 10.0, 6: 6.0}
    assert change(lake, "update taxi.trips set fare = 1")["updated"] == 6


def test_values_are_cast_as_duckdb_casts_them(lake):
    lake.sql("create table t.t (a int, b date, c varchar, d uuid, e int[], f struct(x int, y varchar))")
    lake.sql("insert into t.t (a) values (1)")
    change(
        lake,
        """update t.t set a = 2.5, b = '2024-02-29', c = 7, d = '11111111-2222-3333-4444-555555555555', e = ['1', '2'],
           f = {'x': '1', 'y': 2}""",
    )
    text = "select a, b::varchar, c, d::varchar, e, f from t.t"
    assert lake.sql(text).fetchall() == [
        (3, "2024-02-29", "7", "11111111-2222-3333-4444-555555555555", [1, 2], {"x": 1, "y": "2"})
    ]


def test_parameters_are_bound_in_every_clause(lake):
    change(lake, "update taxi.trips set fare = ?, zone = ? where id = ?", [7.5, "a", 1])
    change(lake, "update taxi.trips set fare = fare + $more where id = $ID", {"more": 1, "id": 1})
    assert lake.sql("from taxi.trips where id = 1").fetchall() == [(1, "a", 8.5)]
    change(
        lake,
        """merge into taxi.trips t using (select ? as id) s on t.id = s.id + ?
           when matched and t.fare > ? then update set fare = ?
           when not matched then insert (id, fare) values (?, 0)""",
        [0, 1, 2, 3, 99],
    )
    assert fares(lake)[1] == 3.0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("update taxi.trips set fare = s.f from (values (1, 2.0), (7, 3.0)) s(k, f) where taxi.trips.id = s.k", 2.0),
        ("delete from taxi.trips t using (values (1)) as S (k) where t.id = s.k", None),
        (
            "merge into taxi.trips t using taxi.trips s (k, z, f) on id = k when matched then update set fare = f + 1",
            11,
        ),
        ("merge into taxi.trips t using df as s (k, f) on t.id = s.k when matched then update set fare = s.f", 4.0),
        (
            """merge into taxi.trips t using (values ($one, $five), (99, 1)) as s (k, "the fare") on t.id = s.k
               when matched then update set fare = s."the fare"
               when not matched then insert (id, fare) values (s.k, s."the fare")""",
            5.0,
        ),
    ],
)
def test_a_source_may_name_its_columns(lake, text, found):
    given = {"df": pa.table({"a": [1], "b": [4.0]})} if " df " in text else None
    lake.sql(text, {"one": 1, "five": 5} if "$one" in text else None, tables=given)
    assert fares(lake).get(1) == found
    assert fares(lake).get(99) == (1.0 if "99" in text else None)


def test_update_from_is_a_merge(lake):
    done = change(lake, "update taxi.trips t set fare = t.fare + z.fee from taxi.zones z where t.zone = z.zone")
    assert (done["updated"], done["inserted"]) == (3, 0)
    assert fares(lake) == {1: 11.5, 2: 22.5, 3: 30.0, 4: 5.5, 5: 5.0, 6: None}
    change(lake, "update taxi.trips set zone = city from taxi.zones where zones.zone = trips.zone and trips.id = 1")
    assert lake.sql("select zone from taxi.trips where id = 1").fetchall() == [("Queens",)]


def test_delete_using_is_a_merge_and_takes_several_matches(lake):
    text = "delete from taxi.trips using (select unnest(['EWR', 'EWR', 'LGA']) as zone) as z where trips.zone = z.zone"
    assert change(lake, text)["deleted"] == 3
    assert list(fares(lake)) == [1, 3, 4]


def test_merge_with_every_kind_of_clause(lake):
    frame = pa.table({"id": [1, 2, 3, 7, 8], "zone": ["a", "b", None, "d", "e"], "fare": [None, 2.0, 3.0, 7.0, 8.0]})
    done = change(
        lake,
        """merge into taxi.trips as t using frame as s on t.id = s.id
           when matched and s.fare is null then delete
           when matched and t.zone = 'LGA' then update set zone = s.zone, fare = s.fare + t.fare
           when matched then update set *
           when not matched and s.id = 7 then insert (fare, id) values (case when s.id > 1 then 70 else 0 end, s.id)
           when not matched by target then insert *
           when not matched by source and t.fare is null then delete
           when not matched by source then update set zone = lower(zone)""",
        frame=frame,
    )
    assert done == {"affected": 8, "updated": 4, "deleted": 2, "inserted": 2, "version": 2}
    assert rows_of(lake) == sorted(
        [(2, "b", 22.0), (3, None, 3.0), (4, "jfk", 4.0), (5, "ewr", 5.0), (7, None, 70.0), (8, "e", 8.0)], key=repr
    )


@pytest.mark.parametrize(
    "statement",
    [
        "merge into taxi.trips t using (select id, fare from taxi.trips) s on t.id = s.id "
        "when matched then update set fare = s.fare + 1",
        "update taxi.trips t set fare = s.fare + 1 from taxi.trips s where t.id = s.id",
        "update taxi.trips t set fare = (select s.fare + 1 from taxi.trips s where t.id = s.id)",
        "with s as (select * from taxi.trips) update taxi.trips t set fare = s.fare + 1 from s where t.id = s.id",
    ],
)
def test_a_source_that_reads_the_table_sees_the_version_that_is_changed(statement):
    inner = open_store(f"memory://{uuid4()}")
    table = ul.connect(inner, registry="none").create_table("taxi.trips", data=TRIPS)
    store = Between(inner, lambda: table.update({"fare": "fare + 100"}))
    lake = ul.connect(store, registry="none")
    store.is_armed = True
    assert change(lake, statement)["updated"] == 6
    assert fares(lake) == {1: 111.0, 2: 121.0, 3: 131.0, 4: 105.0, 5: 106.0, 6: None}


@pytest.mark.parametrize(
    ("act", "versions"),
    [
        (lambda table: table.append(pa.table({"id": [7], "zone": ["JFK"], "fare": [1.0]})), 4),
        (lambda table: table.delete("id = 1"), 4),
        (lambda table: table.update({"fare": "0"}, "id = 4"), 4),
    ],
)
def test_rows_that_a_query_chooses_are_chosen_again_when_others_change_them(act, versions):
    inner = open_store(f"memory://{uuid4()}")
    first = ul.connect(inner, registry="none")
    table = first.create_table("taxi.trips", data=TRIPS, key=["id"], properties={"block_rows": 2})
    first.create_table("taxi.zones", data=ZONES)
    store = Between(inner, lambda: act(table))
    lake = ul.connect(store, registry="none")
    store.is_armed = True
    change(lake, "delete from taxi.trips where zone in (select zone from taxi.zones where fee < 2)")
    assert sorted(fares(lake)) == [2, 3, 5, 6]
    assert lake.table("taxi.trips").version == versions - 1


def test_other_tables_are_read_in_the_version_they_had_when_the_statement_began():
    inner = open_store(f"memory://{uuid4()}")
    first = ul.connect(inner, registry="none")
    table = first.create_table("taxi.trips", data=TRIPS, key=["id"])
    zones = first.create_table("taxi.zones", data=ZONES)

    def act():
        zones.append(pa.table({"zone": ["EWR"], "city": [None], "fee": [0.0]}))
        table.append(pa.table({"id": [7], "zone": ["JFK"], "fare": [1.0]}))

    store = Between(inner, act)
    lake = ul.connect(store, registry="none")
    store.is_armed = True
    assert change(lake, "delete from taxi.trips where zone in (select zone from taxi.zones)")["deleted"] == 4
    assert sorted(fares(lake)) == [3, 5, 6]


def test_only_blocks_that_a_subquery_leaves_are_read():
    lake = ul.connect(f"memory://{uuid4()}", registry="none")
    table = lake.create_table("d.t", pa.schema([("id", pa.int64()), ("v", pa.int64())]), properties={"block_rows": 10})
    table.append(pa.table({"id": range(1000), "v": range(1000)}))
    text = repr(lake.sql("explain delete from d.t where id in (select unnest([5, 7]))"))
    assert "would have 2 rows deleted; 1 of 100 blocks read" in text
    text = repr(lake.sql("explain update d.t set v = 0 where v < 10 and id = any (select 3)"))
    assert "would have 1 row updated; 1 of 100 blocks read" in text


def test_older_versions_are_sources(lake):
    change(lake, "update taxi.trips set fare = 0")
    change(
        lake,
        """merge into taxi.trips t using taxi.trips version as of 1 as old on t.id = old.id
           when matched and old.fare > 5 then update set fare = old.fare""",
    )
    assert fares(lake) == {1: 10.0, 2: 20.0, 3: 30.0, 4: 0.0, 5: 0.0, 6: 0.0}


def test_explain_counts_and_changes_nothing(lake):
    text = repr(lake.sql("explain update taxi.trips set fare = 1 where id = 1"))
    assert text.startswith("taxi.trips, version 1: would have 1 row updated; 1 of 3 blocks read (")
    text = repr(
        lake.sql(
            """explain merge into taxi.trips t using taxi.zones z on t.zone = z.zone
               when matched then delete when not matched then insert (id) values (100)"""
        )
    )
    assert text.startswith("taxi.trips, version 1: would have 1 row inserted and 3 rows deleted; 2 of 3 blocks read")
    assert lake.table("taxi.trips").version == 1


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("update {t} set nope = 1", UnknownColumn, "line 1, column 23: there is no column nope"),
        ("update {t} set fare = 1, FARE = 2", InvalidRequest, "line 1, column 33: a column is named twice"),
        ("update {t} set fare = nope", UnknownColumn, "line 1, column 30: there is no column nope"),
        ("update {t} set fare = 1,\n zone = 'a' where nope = 1", UnknownColumn, "line 2, column 19: there is no"),
        ("update {t} set zone = 1,\n fare = 'abc'", InvalidRequest, "line 2, column 9: Conversion Error"),
        ("update {t} set fare = (select fee from taxi.zones)", InvalidRequest, "More than one row returned"),
        ("update {t} set fare = (select 'a')", InvalidRequest, "Conversion Error"),
        ("update {t} set fare = (select default)", InvalidRequest, "cannot contain DEFAULT"),
        ("update {t} set fare = default", InvalidRequest, "line 1, column 30: DEFAULT is not available"),
        ("update {t} set (fare, zone) = (1, 'a')", InvalidRequest, "line 1, column 23: columns are set one by"),
        ("update {t} set fare = 1 where id = 1 returning nope", InvalidRequest, "column 55: Binder Error"),
        ("update {t} set fare = 1 from taxi.zones, taxi.trips t", InvalidRequest, "id = 1 matches more than one row"),
        ("update {t} set fare = 1 from range(3)", InvalidRequest, "id = 1 matches more than one row of the source"),
        ("update {t} set fare = 1 from read_csv('/etc/passwd')", InvalidRequest, "function read_csv is not available"),
        ("with z as (select 1) select 1 from z update {t} set fare = 1", InvalidRequest, "syntax error"),
        ("with z as (select 1 as id) truncate {t}", InvalidRequest, ""),
        ("merge into {t} t using {zones} and t.id in (select 1) when matched then delete",
         InvalidRequest, "a subquery is not available in the clauses of MERGE"),
        ("merge into {t} t using {zones} when matched then delete returning id", InvalidRequest, "RETURNING is not"),
        ("update {t} set fare 1", InvalidRequest, "line 1, column 28: not SQL"),
        ("update {t} version as of 1 set fare = 1", InvalidRequest, "line 1, column 19: a version never changes"),
        ("update {t} t set fare = z.fee from taxi.zones z where zone = 'JFK'", InvalidRequest, "Ambiguous"),
        ("update {t} t set fare = z.nope from taxi.zones z where t.zone = z.zone", UnknownColumn, "column 34: "),
        ("update {t} t set fare = 0 from taxi.zones z", InvalidRequest, "matches more than one row of the source"),
        ("update {t} set fare = random()", InvalidRequest, "line 1, column 30: the function random"),
        ("update {t} set fare = sum(fare)", InvalidRequest, "line 1, column 30: "),
        ("merge into {t} t using {zones}", InvalidRequest, "line 1, column 62: the st"),
        ("merge into {t} t using taxi.zones z when matched then delete", InvalidRequest, "expected ON"),
        ("merge into {t} t using taxi.zones z using (zone) when matched then delete", InvalidRequest, "needs ON"),
        ("merge into {t} t using taxi.zones t on true when matched then delete", InvalidRequest, "the same name"),
        ("merge into {t} t using {zones} when matched then do nothing",
         InvalidRequest, "line 1, column 81: not SQL"),
        ("merge into {t} t using {zones} when not matched then delete",
         InvalidRequest, "line 1, column 85: not SQL that is understood (expected INSERT"),
        ("merge into {t} t using {zones} when matched then insert *",
         InvalidRequest, "line 1, column 81: not SQL that is understood (expected UPDATE or DELETE"),
        ("merge into {t} t using {zones}\nwhen matched then update set fare = z.nope",
         UnknownColumn, "line 2, column 39: there is no column nope"),
        ("merge into {t} t using {zones}\nwhen not matched then insert (id, nope) values (1, 2)",
         UnknownColumn, "line 2, column 35: there is no column nope"),
        ("merge into {t} t using {zones}\nwhen not matched then insert (id) values (1, 2)",
         InvalidRequest, "line 2, column 42: there are not as many values as columns"),
        ("merge into {t} t using {zones} when not matched then insert values (1)",
         InvalidRequest, "column 100: there are not as many values as columns"),
        ("merge into {t} t using {zones} when not matched and t.id = 1 then insert (id) values (1)",
         UnknownColumn, "line 1, column 84: there is no table or column t here"),
        ("merge into {t} t using {zones} when not matched then insert *", UnknownColumn, "* takes all columns"),
        ("merge into {t} t using (select * from taxi.nope) z on true when matched then delete",
         TableNotFound, "there is no table taxi.nope"),
        ("merge into {t} t using read_csv('/etc/passwd') z on true when matched then delete",
         InvalidRequest, "a function is not a table here"),
        ("merge into {t} t using (from read_csv('/etc/passwd')) z on true when matched then delete",
         InvalidRequest, "the function read_csv is not available"),
        ("merge into {t} t using (select 1 as id) z on getenv('HOME') = 'x' when matched then delete",
         InvalidRequest, "getenv"),
        ("merge into {t} t using (select 1 as id) z on t.id = z.id when matched then update set zone = getenv('A')",
         InvalidRequest, "getenv"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_place_and_changes_nothing(lake, text, error, message):
    with pytest.raises(error) as refused:
        lake.sql(text.replace("{t}", "taxi.trips").replace("{zones}", "taxi.zones z on t.zone = z.zone"))
    assert message in str(refused.value)
    assert lake.table("taxi.trips").version == 1
