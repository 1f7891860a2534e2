from __future__ import annotations

import gc
import weakref
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import polars as pl
import pyarrow as pa
import pytest

import underlay
from tests.local.lakes import SmallLake
from underlay.errors import Damaged, InvalidRequest, NotFound, TableNotFound, Unsupported, VersionNotFound
from underlay.local.dataset.source import EngineDataset
from underlay.local.sql.run import run_sql
from underlay.scan.query import Query
from underlay.store import open_store
from underlay.store.testing import CountingStore

TRIPS = pa.table(
    {"id": [1, 2, 3, 4, 5], "zone": ["JFK", "LGA", None, "JFK", "EWR"], "fare": [10.0, 20.0, 30.0, 4.0, 5.0]}
)
ZONES = pa.table({"zone": ["JFK", "LGA"], "city": ["Queens", "Queens"]})


@pytest.fixture
def lake():
    return SmallLake(None, {"taxi.trips": TRIPS, "taxi.Zones": ZONES})


def test_a_query_over_one_table(lake):
    assert lake.rows("select zone, sum(fare) s from taxi.trips where fare > 4 group by zone order by s") == [
        ("EWR", 5.0),
        ("JFK", 10.0),
        ("LGA", 20.0),
        (None, 30.0),
    ]


def test_columns_and_filters_reach_the_scan(lake):
    lake.rows("select id from taxi.trips where id > 1 and zone = 'JFK'")
    ((columns, filter_),) = lake.asked
    assert {"id"} <= set(columns) <= {"id", "zone"}  # DuckDB 2 leaves out what only the filter needs
    assert "(id > 1)" in filter_
    assert '(zone == "JFK")' in filter_


def test_a_table_named_twice_is_one_snapshot(lake):
    assert lake.rows("select count(*) from taxi.trips a join taxi.trips b using (id)") == [(5,)]
    assert lake.resolved == ["taxi.trips"]


def test_names_are_found_whatever_their_case(lake):
    query = 'select city from TAXI.zones join "taxi"."Trips" t on t.zone = zones.zone where id = 2'
    assert lake.rows(query) == [("Queens",)]


def test_a_join_of_two_tables_and_a_subquery(lake):
    query = "select id from taxi.trips where zone in (select zone from taxi.zones where city = 'Queens') order by 1"
    assert lake.rows(query) == [(1,), (2,), (4,)]


def test_a_common_table_expression_hides_nothing_but_its_own_name(lake):
    assert lake.rows("with trips as (select 7 as id) select trips.id, t.id from trips, taxi.trips t limit 1") == [
        (7, 1)
    ]


def test_only_tables_that_are_named_are_opened(lake):
    lake.rows("select 1")
    assert lake.resolved == []


@pytest.mark.parametrize(
    ("condition", "parameters"), [("id = ?", [3]), ("id = $1", [3]), ("id = $id", {"id": 3}), ("id in ($1, $1)", [3])]
)
def test_parameters(lake, condition, parameters):
    assert lake.rows(f"select id from taxi.trips where {condition}", parameters) == [(3,)]


def test_a_parameter_that_is_missing_is_refused(lake):
    with pytest.raises(InvalidRequest, match="parameter"):
        lake.sql("select id from taxi.trips where id = ?")


def test_an_older_version_beside_the_newest(lake):
    lake.append("taxi.trips", TRIPS)
    old, new = "taxi.trips version as of 1", "taxi.trips"
    assert lake.rows(f"select (select count(*) from {old}), (select count(*) from {new})") == [(5, 10)]


def test_the_version_of_a_moment(lake):
    moment = datetime.fromtimestamp(lake.head("taxi.trips").root.committed_us / 1e6 + 0.001, UTC)
    lake.append("taxi.trips", TRIPS)
    assert lake.rows(f"select count(*) from taxi.trips timestamp as of '{moment.isoformat()}' t") == [(5,)]


def test_a_version_that_is_not_there(lake):
    with pytest.raises(VersionNotFound, match="no version 9"):
        lake.sql("from taxi.trips version as of 9")


@pytest.mark.parametrize("text", ["from taxi.trps", "from trips", "from taxi.trps version as of 1", "from tax.trips"])
def test_an_unknown_table_names_what_is_near(lake, text):
    with pytest.raises(TableNotFound, match=r"Did you mean .*taxi\.trips"):
        lake.sql(text)


@pytest.mark.parametrize("text", ["from taxi.csv", "from taxi.Parquet", "from taxi.csv join taxi.trips using (id)"])
def test_an_unknown_table_called_as_a_file_is_a_table(lake, text):
    with pytest.raises(TableNotFound, match=r"there is no table taxi\.(csv|Parquet)"):
        lake.sql(text)


def test_a_file_is_refused_with_what_to_do(lake):
    with pytest.raises(InvalidRequest, match=r"files cannot be read here \(found trips\.csv\)(.*)lake\.duckdb\(\)"):
        lake.sql("from 'trips.csv'")


def test_show_tables_opens_none(lake):
    assert lake.rows("show tables") == [("taxi", "Zones"), ("taxi", "trips")]
    assert lake.rows("SHOW ALL TABLES;") == lake.rows("show tables from taxi")
    assert lake.rows("show tables from other") == []
    assert lake.resolved == []


def test_the_catalog_of_the_engine_lists_tables(lake):
    query = "select table_schema, table_name from information_schema.tables order by 2"
    assert lake.rows(query) == [("taxi", "Zones"), ("taxi", "trips")]
    assert lake.rows("select view_name from duckdb_views() where not internal order by 1") == [("Zones",), ("trips",)]
    query = "select column_name from information_schema.columns where table_name = 'trips' order by ordinal_position"
    assert lake.rows(query) == [("id",), ("zone",), ("fare",)]


@pytest.mark.parametrize(
    "text", ["describe taxi.trips", "desc taxi.trips", "show taxi.trips", "describe from taxi.trips"]
)
def test_describe(lake, text):
    assert [row[:2] for row in lake.rows(text)] == [("id", "BIGINT"), ("zone", "VARCHAR"), ("fare", "DOUBLE")]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("summarize taxi.trips", 3),
        ("explain select * from taxi.trips", 1),
        ("explain analyze select * from taxi.trips", 1),
        ("values (1), (2)", 2),
        ("table taxi.trips", 5),
        ("(select 1)", 1),
        ("pivot taxi.trips on zone using sum(fare) group by id", 5),
        ("with p as (pivot taxi.trips on zone using sum(fare)) select * from p", 5),
        ("select * from (pivot taxi.trips on zone using sum(fare))", 5),
        ('select "update" is null, ("copy") from (select 1 as update, 2 as "copy")', 1),
        ("select 1;", 1),
    ],
)
def test_statements_that_read(lake, text, count):
    assert len(lake.rows(text)) == count


def test_a_plan_is_printed_as_duckdb_draws_it(lake):
    drawn = repr(lake.sql("explain select id from taxi.trips where id = 1"))
    assert "explain_value" not in drawn
    assert len(drawn.splitlines()) > 3


@pytest.mark.parametrize("dataset", ["temp", "System", "memory", "information_schema", "pg_catalog"])
def test_a_dataset_whose_name_sql_keeps_for_itself_is_refused(dataset):
    with pytest.raises(InvalidRequest, match=f"a dataset cannot be called {dataset}"):
        underlay.connect("memory://reserved", registry="none").create_table(f"{dataset}.x", "i bigint")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select nope from taxi.trips", r"nope(.|\n)*LINE 1: select nope"),
        ("select from where", "syntax error"),
        ("select cast('x' as int)", "Could not convert"),
        ("select sum(zone) from taxi.trips", "sum"),
        ("select 'open", "not SQL"),
        ("select cast(zone as int) from taxi.trips", "Could not convert"),
    ],
)
def test_what_duckdb_refuses_is_said_in_its_words(lake, text, message):
    with pytest.raises(InvalidRequest, match=message):
        lake.rows(text)


def spoil(lake):
    for file in lake.store.list_objects("taxi"):
        if file.key.endswith(".parquet"):
            lake.store.put(file.key, b"x" * file.size_bytes)


@pytest.mark.parametrize(
    "text", ["select sum(fare) from taxi.trips", "select * from taxi.trips", "summarize taxi.trips"]
)
def test_an_error_of_the_scan_comes_out_as_itself(lake, text):
    spoil(lake)
    with pytest.raises(Damaged, match="parquet"):
        lake.rows(text)


def test_an_engine_serves_again_after_an_error(lake):
    with pytest.raises(InvalidRequest):
        lake.sql("select nope from taxi.trips")
    assert lake.rows("select count(*) from taxi.trips") == [(5,)]


def test_nothing_of_a_query_is_there_for_the_next(lake):
    schemas = "select schema_name from information_schema.schemata where schema_name like 'taxi%' order by 1"
    with lake.sql("select * from taxi.trips version as of 1"):
        assert lake.rows(schemas) == [("taxi",)]  # on another engine
    assert lake.rows(schemas) == [("taxi",)]
    with pytest.raises(TableNotFound):
        lake.rows('select * from "taxi@1".trips')


def test_what_a_query_reads_is_freed_with_it(lake):
    held: list[weakref.ref[EngineDataset]] = []

    class Held(EngineDataset):
        def watched(self, on_failure):
            found = super().watched(on_failure)
            held.append(weakref.ref(found))
            return found

    def resolve(name: str, *_: object) -> EngineDataset:
        return Held(lake.source(name))

    assert len(run_sql("from taxi.trips", resolve, lambda: lake.opened).fetchall()) == 5
    gc.collect()
    assert [one() for one in held] == [None]


def test_many_threads(lake):
    found: list[object] = []
    query = "select sum(fare) from taxi.trips join taxi.zones using (zone)"
    threads = [Thread(target=lambda: found.append(lake.rows(query))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[(34.0,)]] * 8


@pytest.mark.parametrize(("one", "parameters"), [("1", None), ("?", [1])])
def test_rows_are_read_as_they_are_wanted(tmp_path, monkeypatch, one, parameters):
    lake = SmallLake(tmp_path)
    big = pa.table({name: range(100_000) for name in "wxyz"})  # DuckDB 2 reads 10 MiB ahead: three of these
    lake.create("a.b", big, 100_000)
    for _ in range(15):
        lake.append("a.b", big)
    taken = []
    batches = Query.batches
    monkeypatch.setattr(Query, "batches", lambda *given: (taken.append(1) or batch for batch in batches(*given)))
    with lake.sql(f"select w + {one}, x, y, z from a.b", parameters) as result:
        next(result.to_batches())
        assert len(taken) < 12
    assert lake.sql("select x from a.b").to_arrow().num_rows == 1_600_000


def test_answers_in_many_forms(lake):
    query = "select id, zone from taxi.trips where id < 3 order by id"
    expected = pa.table({"id": [1, 2], "zone": ["JFK", "LGA"]})
    assert lake.sql(query).to_arrow() == expected
    assert lake.sql(query).schema == expected.schema
    assert pa.Table.from_batches(lake.sql(query).to_batches()) == expected
    assert pa.table(lake.sql(query)) == expected
    assert lake.sql(query).to_polars().equals(pl.from_arrow(expected))
    assert list(lake.sql(query)) == lake.sql(query).fetchall() == [(1, "JFK"), (2, "LGA")]


def test_pandas_or_a_word_about_it(lake):
    try:
        import pandas
    except ImportError:
        with pytest.raises(Unsupported, match="pandas is not installed"):
            lake.sql("select 1").to_pandas()
    else:
        assert lake.sql("select 1 as a").to_pandas().equals(pandas.DataFrame({"a": [1]}, dtype="int32"))


def test_an_answer_is_read_once(lake):
    result = lake.sql("select 1")
    result.to_arrow()
    with pytest.raises(InvalidRequest, match="read already"):
        result.to_arrow()


def test_a_closed_answer_has_no_rows(lake):
    with lake.sql("select 1") as result:
        pass
    with pytest.raises(InvalidRequest):
        result.fetchall()
    result.close()


def test_looking_at_an_answer_takes_no_row_of_it(lake, capsys):
    result = lake.sql("select id, zone from taxi.trips order by id limit 3")
    result.show()
    assert capsys.readouterr().out == "id  zone\n--  ----\n 1  JFK\n 2  LGA\n 3  NULL\n"
    assert len(result.fetchall()) == 3
    assert repr(result) == "<SqlResult of id, zone, read>"


def test_a_long_answer_is_shown_in_part(lake):
    result = lake.sql("select * from range(100)")
    assert repr(result).splitlines()[-2:] == ["   19", "…"]
    assert len(result.fetchall()) == 100


def test_a_file_that_is_missing_is_not_found(lake):
    lake.store.delete(file.key for file in lake.store.list_objects("taxi") if file.key.endswith(".parquet"))
    with pytest.raises(NotFound):
        lake.rows("select * from taxi.trips")


def test_counting_all_rows_reads_no_data(tmp_path: Path):
    store = CountingStore(open_store(tmp_path))
    lake = underlay.connect(store)
    table = lake.create_table("shop.sales", pa.schema([("n", pa.int64())]), properties={"block_rows": "10"})
    table.append(pa.table({"n": range(100)}))
    store.reset()
    assert lake.sql("SELECT count(*) FROM Shop.Sales;").to_arrow().to_pydict() == {"count_star()": [100]}
    assert not any(key.endswith(".parquet") for served in store.log for key in served.request.keys)
    assert lake.sql("select count(*) from shop.sales where n < 10").fetchall() == [(10,)]


def test_counting_the_catalog_does_not_count_the_only_table():
    lake = SmallLake(None, {"taxi.trips": TRIPS})
    assert lake.rows("select count(*) from information_schema.schemata") != [(5,)]
    assert lake.rows("select count(*) from taxi.trips") == [(5,)]


ALIKE = pa.table({"i": [1, 2], "I": [3, 4]})
ALIKE_INSIDE = pa.table({"s": pa.array([{"i": 1, "I": 2}], pa.struct([("i", pa.int64()), ("I", pa.int64())]))})


@pytest.mark.parametrize(
    "text",
    [
        'select "I" from a.alike',
        "select count(*) from A.Alike",
        "describe a.alike",
        "from a.alike version as of 1",
        "select 1 from information_schema.tables, a.alike",
    ],
)
def test_columns_that_differ_in_case_only_are_refused(text):
    lake = SmallLake(None, {"a.alike": ALIKE})
    with pytest.raises(Unsupported, match=r"a(@1)?\.alike: .*found i and I\)\. Read the table with scan") as refused:
        lake.sql(text)
    assert refused.value.found == "i and I"


def test_fields_of_a_struct_that_differ_in_case_only_are_refused():
    lake = SmallLake(None, {"a.alike": ALIKE_INSIDE})
    with pytest.raises(Unsupported, match=r"found s\.i and s\.I"):
        lake.sql("from a.alike")


def test_columns_that_differ_in_case_only_are_no_trouble_to_others():
    lake = SmallLake(None, {"a.alike": ALIKE, "a.accents": pa.table({"é": [1], "É": [2]})})
    assert lake.dataset("a.alike").to_table(["I"]).to_pydict() == {"I": [3, 4]}
    assert lake.rows("select count(*) from information_schema.tables where table_schema = 'a'") == [(2,)]
    assert lake.rows('select "É" from a.accents') == [(2,)]


def test_a_filter_that_cannot_be_handed_over_is_applied_to_the_same_snapshot(lake):
    query = "select id from taxi.trips where id is distinct from 1 or id is distinct from 2 order by id"
    assert lake.rows(query) == [(1,), (2,), (3,), (4,), (5,)]
    assert [filter_ for _, filter_ in lake.asked] == ["None"]
    assert lake.resolved == ["taxi.trips"]
