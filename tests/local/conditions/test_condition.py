"""Any condition on one row gives the rows that `lake.sql` gives, in the table's order, whatever prunes it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from random import Random

import duckdb
import pyarrow as pa
import pytest

import underlay
from tests.local.conditions.random_rows import COLUMNS, COMPUTED, CONSTANTS, MIXED, NESTED, TIMES_OF, random_row
from underlay import col
from underlay.errors import BadPredicate, InvalidRequest, UnknownColumn, Unsupported
from underlay.local.conditions import condition, shared_engine
from underlay.prune.parse.bind import bind_where


def make_lake(name, files):
    lake = underlay.connect(f"memory://{name}", registry="none")
    table = lake.create_table("a.b", COLUMNS)
    number = 0
    for rows in files:
        numbered = [{"k": number + at, **row} for at, row in enumerate(rows)]
        number += len(rows)
        table.append(pa.Table.from_pylist(numbered, table.schema))
    return lake, table


def by_sql(lake, where):
    return [key for (key,) in lake.sql(f"SELECT k FROM a.b WHERE {where}\nORDER BY k").fetchall()]


@pytest.fixture(scope="module")
def random_lake():
    random = Random(14)
    return make_lake("random", [[random_row(random) for _ in range(60)] for _ in range(3)])


@pytest.mark.parametrize("where", [*CONSTANTS, *TIMES_OF, *COMPUTED, *NESTED, *MIXED])
def test_scan_and_count_answer_as_sql_does(where, random_lake):
    lake, table = random_lake
    expected = by_sql(lake, where)
    assert table.scan(["k"], where).to_arrow()["k"].to_pylist() == expected
    assert table.count(where) == len(expected)
    assert table.plan(["k"], where).count() in (None, len(expected))


@pytest.fixture(scope="module")
def table():
    _, table = make_lake("months", [])
    for month in (1, 2, 3):
        days = [datetime(2024, month, day) for day in range(1, 11)]
        rows = {"k": range(month * 10, month * 10 + 10), "i": range(10), "ts": days, "d": days, "s": ["abc", "x"] * 5}
        missing = {name: pa.nulls(10, table.schema.field(name).type) for name in table.schema.names if name not in rows}
        given_rows = {name: pa.array(values, table.schema.field(name).type) for name, values in rows.items()}
        table.append(pa.table({**missing, **given_rows}).select(table.schema.names))
    return table


@pytest.mark.parametrize(
    ("where", "blocks"),
    [
        ("ts >= '2024-02-01' and lower(s) = 'abc'", 2),
        ("d = date '2024-01-31' + 1", 1),
        ("ts >= now() - interval '3 days'", 0),
        ("d > current_date", 0),
        ("k + 1 = 12", 1),
        ("1 = 0", 0),
        ("1 = 1", 3),
        ("(k = 10 and lower(s) = 'abc') or k = 30", 2),
        ("not (k < 30 or lower(s) = 'abc')", 1),
        ("lower(s) = 'abc'", 3),
        ("year(ts) = 2025", 0),
        ("extract(year from ts) in (2024, 2030) and month(ts) = 1", 3),
        ("date_part('year', ts) < 2024", 0),
        ("ts::date = '2024-02-03'", 1),
        ("cast(ts as date) between '2024-02-01' and date '2024-02-01' + 20", 1),
        ("date_trunc('month', ts) = '2024-02-01'", 1),
        ("date_trunc('month', ts) between '2024-02-01' and '2024-02-15'", 1),
        ("date_trunc('quarter', d) > '2024-01-01'", 0),
        ("d + 31 < '2024-02-20'", 1),
        ("ts + interval '1 month' < '2024-02-20'", 1),
        ("upper(s) = 'Z'", 0),
        ("s ilike 'z%'", 0),
        ("lower(s) = 'ABC'", 0),
        ("substr(s, 1, 2) = 'zz'", 0),
        ("s[1] in ('y', 'z')", 0),
        ("-k < -32", 1),
        ("k * 2 = 24", 1),
        ("k / 2 > 15.5", 1),
        ("k - 3 >= 27 and k::double < 33", 1),
        ("abs(k - 15) <= 4", 1),
        ("coalesce(k, 0) > 35", 1),
        ("coalesce(k, 99) > 35", 1),
        ("k in (9 + 2, 5 * 3)", 1),
        ("k = any([11, 12])", 1),
        ("list_contains([31, 32], k)", 1),
        ("year(ts) = 2023 or k + 1 = 12", 1),
        ("not (year(ts) <> 2023 and k + 1 <> 12)", 1),
        ("(k + 1 = 12) is true", 1),
        ("k % 2 = 0", 3),
        ("K = 1::bigint + 9", 1),
    ],
)
def test_what_is_understood_of_a_condition_prunes(where, blocks, table):
    assert table.plan(None, where).kept.blocks == blocks


@pytest.mark.parametrize(("where", "rows"), [(None, 30), ("1 = 1", 30), ("i = 1", 3), ("i + 1 = 2", 3)])
def test_a_scan_of_no_columns_has_all_rows_that_match(where, rows, table):
    found = table.scan([], where).to_arrow()
    assert (found.num_rows, found.num_columns) == (rows, 0)


def test_rows_come_in_the_order_of_the_table(table):
    assert table.scan(["k"], "k % 3 = 0 and lower(s) <> ''").to_arrow()["k"].to_pylist() == list(range(12, 40, 3))


def test_a_plan_with_a_rest_counts_nothing_and_says_what_is_left(table):
    plan = table.plan(None, "ts >= '2024-02-01' and lower(s) = 'abc' and k % 2 = 0")
    assert (plan.count(), plan.minimum("k"), plan.maximum("k")) == (None, None, None)
    assert (
        plan.explain().splitlines()[-3:]
        == [
            "rows are then filtered by: ts >= '2024-02-01' and lower(s) = 'abc' and k % 2 = 0",
            "  (ts >= '2024-02-01'): prunes by ts >= '2024-02-01' AND ts >= TIMESTAMP '2024-02-01 00:00:00'",
            "  (lower(s) = 'abc'): prunes by s IN ('ABC', 'ABc', 'AbC', 'Abc', 'aBC', 'aBc', 'abC', 'abc')",
            "  ((k % 2) = 0): only filters",
        ][-3:]
    )
    assert "lower(s)" in repr(table.scan(where="lower(s) = 'abc'"))


def test_a_condition_without_columns_is_exact(table):
    assert table.plan(None, "1 + 1 = 2").count() == 30
    assert table.plan(None, "1 + 1 = 3").count() == 0


def test_the_time_is_one_moment_for_all_rows(table, monkeypatch):
    query = table.query(["k"], "ts < now() and d < current_date and s <> 'now()'")
    assert "now()" not in query.rest.text.replace("'now()'", "")
    assert "current_date" not in query.rest.text
    assert len(query.table()) == 30


@pytest.mark.parametrize(
    "where",
    [
        "exists(select 1)", "i in (select 1)", "i = (select 1)", "count(*) > 1", "sum(i) > 1",
        "row_number() over () = 1",
        "random() < 0.5", "nextval('s') = i", "* > 1", "columns(*) > 1", "columns('k|i') > 1", "#1 > 1",
        "read_text('/etc/passwd') is null", "write_log('x') is null", "unnest([true])",
        "sleep_ms(1) is null and i = 1",
    ],
)  # fmt: skip
def test_what_is_no_question_about_one_row_is_refused_with_a_hint(where, table):
    with pytest.raises(BadPredicate) as caught:
        table.scan(where=where)
    assert "lake.sql" in caught.value.hint


@pytest.mark.parametrize("where", ["i = 1) or (1 = 1", "lower(s) = 'a'; drop table x", "lower(s) = 'a", "nosuch(i)"])
def test_what_is_no_condition_is_refused(where, table):
    with pytest.raises(BadPredicate):
        table.scan(where=where)


@pytest.mark.parametrize("where", ["random\u200b() < 0.5", "i = (select\u20601)", "lower(\ufeffs) = 'a'"])
def test_a_blank_that_nobody_sees_hides_no_function_and_no_subquery(where, table):
    with pytest.raises(BadPredicate, match="zero-width character"):
        table.scan(where=where)
    assert table.scan(where="lower(s) = $$a\u200b$$").count() == 0


def test_an_age_is_counted_anew_each_time(table, monkeypatch):
    where = "i + 0 < 5 and timestamp '2020-01-01' + age(timestamp '2020-01-01') > timestamp '2020-01-02'"
    split = []
    split_with = condition._split_with
    monkeypatch.setattr(condition, "_split_with", lambda *given: split.append(given[0]) or split_with(*given))
    assert table.scan(where=where).count() == table.scan(where=where).count() == table.scan(where="i < 5").count()
    assert split == [where, where]


def test_a_literal_that_nobody_can_read_is_refused_in_our_words(table):
    with pytest.raises(BadPredicate, match="i: a column of type int64 cannot be compared with str 'abc'"):
        table.scan(where="i = 'abc'")


def test_a_row_that_does_not_convert_is_an_error_of_the_scan(table):
    with pytest.raises(BadPredicate, match="Conversion Error"):
        table.scan(where="s::int = 1").to_arrow()


@pytest.mark.parametrize("where", ["I = 1", "`i` = 1", '"I" = 1', "`I` + 1 = 2", "i = 1 AND `s` = upper('x') OR i = 1"])
def test_names_are_found_in_any_case_and_in_backticks(where, table):
    assert table.count(where) == 3


@pytest.mark.parametrize("where", ["tss > '2024-01-01'", "lower(tss) = 'a'"])
def test_a_name_that_is_not_there_gets_a_hint(where, table):
    with pytest.raises(UnknownColumn) as caught:
        table.scan(where=where).to_arrow()
    assert caught.value.hint == "Did you mean ts?"


def test_text_without_quotes_gets_a_hint_that_says_so(table):
    with pytest.raises(UnknownColumn, match="no column EWR") as caught:
        table.count("s=EWR")
    assert (caught.value.hint or "").endswith(
        "If EWR is text, write 'EWR'; in a shell put the whole condition in double quotes."
    )


def test_names_that_differ_in_case_only_are_told_apart_where_that_is_possible():
    lake = underlay.connect("memory://cases", registry="none")
    table = lake.create_table("a.b", 'i bigint, "I" bigint, j bigint')
    table.append(pa.table({"i": [1], "I": [2], "j": [3]}))
    assert (table.count("i = 1"), table.count("I = 2"), table.count("J = 3"), table.count("j + 1 = 4")) == (1, 1, 1, 1)
    with pytest.raises(Unsupported, match="differ only in case"):
        table.count("i + 1 = 2")
    schema = pa.schema([("ab", pa.int64()), ("AB", pa.int64())])
    with pytest.raises(UnknownColumn, match="ab, AB"):
        bind_where("Ab = 1", schema)


def test_predicates_of_python_keep_the_case_of_their_names(table):
    with pytest.raises(UnknownColumn):
        table.scan(where=col("I") == 1).to_arrow()


def test_a_fork_gets_an_engine_of_its_own(table, monkeypatch):
    assert table.count("i + 1 = 2") == 3
    engine = shared_engine.shared_engine()
    monkeypatch.setattr(shared_engine.os, "getpid", lambda: -1)
    assert shared_engine.shared_engine() is not engine
    assert table.count("i + 1 = 2") == 3


ROUNDED = {
    "k": pa.array([0, 1], pa.int64()),
    "i": pa.array([5, 1], pa.int32()),
    "dec": pa.array([Decimal("1.01"), Decimal("5.00")], pa.decimal128(10, 2)),
    "dd": pa.array([date(2024, 1, 31), date(2024, 2, 1)]),
    "ts": pa.array([datetime(2024, 1, 1), datetime(2024, 1, 1, 2)], pa.timestamp("us")),
    "sec": pa.array([0, 1], pa.timestamp("s")),
    "s": pa.array(["30", "x"]),
    "current_date": pa.array([date(2020, 1, 1), date(2090, 1, 1)]),
    "u": pa.array([2**64 - 1, 1], pa.uint64()),
}


@pytest.fixture(scope="module")
def rounded():
    lake = underlay.connect("memory://rounded")
    rows = pa.table(ROUNDED)
    lake.create_table("a.r", rows.schema, properties={"block_rows": "1"}).append(rows)
    return lake


@pytest.mark.parametrize(
    "where",
    [
        *("i = '5.4'", "i in ('5', '1.2')", "dec = '1.005'", "dec <> '1.005'", "dd = '2024-01-31 12:00:00'"),
        *("ts = '2024-01-01 02:00:00+02'", "ts = '2024-01-01 00:00:00.0000004'", "sec = '1970-01-01 00:00:00.4'"),
        *("ts >= timestamp(0) '2024-01-01 02:00:00.4'", "ts = timestamp '2024-01-01 00:00:00+02'"),
        *("i = '5.4' and length(s) > 0", "i = '5' and length(s) > 0", "dec = '1.01'", "dd = '2024-01-31'"),
        *("current_date < '2025-01-01'", "year(current_date) = 2020", "s = $$current_date$$"),
        *("i + 0 >= 0 and now() = now()", "current_timestamp = now() and i + 0 > 0"),
        "case when typeof(ts) = 'TIMESTAMP' then ts < now() else ts > now() end",
        "(typeof(ts) = 'TIMESTAMP' and ts < now()) or ts > '2090-01-01'",
        *("ts < now() - interval '3 days'", "now() > ts and i + 0 = 5"),
        *("s ~ '[0-9]+' and s::int > 5", "u in (18446744073709551615, 1) and i + 0 >= 0"),
    ],
)
def test_text_is_cast_and_clocks_are_read_as_sql_does(where, rounded):
    expected = rounded.sql(f"select k from a.r where {where} order by k").to_arrow()["k"].to_pylist()
    assert rounded.table("a.r").scan(["k"], where=where).to_arrow()["k"].to_pylist() == expected


@pytest.mark.parametrize("where", ["ts <= ago(interval '0 seconds')", 'ts <= "now"()', "ts <= main.now()"])
def test_a_clock_that_would_stand_still_is_refused(where, rounded):
    with pytest.raises(BadPredicate, match=r"lake\.sql"):
        rounded.table("a.r").scan(where=where).to_arrow()


def test_nanoseconds_that_duckdb_would_cut_are_compared_with_literals_only():
    lake = underlay.connect("memory://nanoseconds")
    rows = pa.table({"k": [0, 1], "z": pa.array([0, 500], pa.timestamp("ns", "UTC"))})
    table = lake.create_table("a.z", rows.schema)
    table.append(rows)
    assert table.scan(["k"], where="z > '1970-01-01'").to_arrow()["k"].to_pylist() == [1]
    with pytest.raises(BadPredicate, match="only comparisons with literals are exact"):
        table.scan(["k"], where="z > '1970-01-01' and k + 0 >= 0").to_arrow()


def test_words_of_sql_are_names_of_columns_where_they_can_be():
    """Quoted always; bare wherever our own grammar or DuckDB takes them."""
    names = ["call", "map", "values", "end", "order", "limit", "if", "group", "desc"]
    lake = underlay.connect("memory://keywords", registry="none")
    table = lake.create_table("a.b", pa.schema([(name, pa.int64()) for name in names]))
    table.append(pa.table({name: [1, 2] for name in names}))
    for name in names:
        for shape in ("{} = 1", "{} + 0 = 1", "{} in (1, 7) and abs({}) < 5"):
            for written in (name, f'"{name}"', f"`{name}`", name.upper()):
                where = shape.format(written, written)
                if name == "if" and "+" in where and written in ("if", "IF"):
                    continue  # sqlglot reads a statement
                assert table.count(where) == 1, where


def test_bytes_are_written_alike_in_scan_and_sql(random_lake):
    lake, table = random_lake
    for where in ("bin = X'FF'", "bin <> x'01' and i + 0 > 0", "bin in (X'', x'ff')"):
        assert table.scan(["k"], where).to_arrow()["k"].to_pylist() == by_sql(lake, where) != []
    with pytest.raises(InvalidRequest, match="hexadecimal"):
        lake.sql("select X'F'")


@pytest.mark.parametrize(
    "where",
    [
        "f <= 'inf'::double * 0", "f between 0 and 'inf'::double * 0", "r <= 0::double / 0",
        "not f > 'inf'::double * 0",
        "f <= 'inf'::double * 0 or f = 5", "st.X = 1", "ST.X = 1 and st.Y = 'abc'", "st.X + 0 = 2",
    ],
)  # fmt: skip
def test_what_duckdb_hands_over_amiss_is_answered_right(where, random_lake):
    lake, table = random_lake
    expected = table.to_arrow()
    judge = duckdb.connect(":memory:")
    judge.register("given", expected)
    judge.execute("create table rows as select * from given")
    keys = [key for (key,) in judge.execute(f"select k from rows where {where} order by k").fetchall()]
    assert by_sql(lake, where) == keys != []
    assert table.scan(["k"], where).to_arrow()["k"].to_pylist() == keys


def test_a_month_of_a_partitioned_table_is_pruned_by_its_year():
    lake = underlay.connect("memory://partitioned", registry="none")
    table = lake.create_table("a.b", "k bigint, ts timestamp", partition_by=["month(ts)"])
    months = [datetime(2023 + at // 12, at % 12 + 1, 15) for at in range(24)]
    table.append(pa.table({"k": range(24), "ts": pa.array(months, pa.timestamp("us"))}))
    assert table.plan(None, "year(ts) = 2024").kept.blocks == 12
    assert table.plan(None, "date_trunc('month', ts) = '2024-03-01'").kept.blocks == 1
    assert table.plan(None, "ts::date < '2023-02-01'").kept.blocks == 1
    assert table.count("year(ts) = 2024 and month(ts) > 6") == 6
