"""What lake.sql leaves out: blocks of which no row can be in the answer, whatever the statement does with them."""

from __future__ import annotations

from datetime import datetime

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests.local.lakes import SmallLake
from underlay.local.sql.run import _Query

ROWS = pa.table(
    {
        "k": range(6),
        "ts": pa.array([datetime(2022 + at // 2, 1, 1 + at) for at in range(6)], pa.timestamp("us")),
        "s": ["a", "A", "b", "B", "c", "C"],
        "b": [None, True, False] * 2,
    }
)
BOTH = "select k from a.b where year(ts) = 2023 union all select k from a.b where lower(s) = 'c'"


@pytest.fixture
def narrowed(monkeypatch):
    """What is implied for each table of the queries that run."""
    seen = []
    narrow = _Query._narrowed

    def spy(self, *arguments):
        found = narrow(self, *arguments)
        seen.extend(str(dataset.source.implied) for _, dataset in found)
        return found

    monkeypatch.setattr(_Query, "_narrowed", spy)
    return seen


@pytest.fixture
def lake():
    return SmallLake(None, {"a.b": ROWS}, block_rows=1)


@pytest.mark.parametrize(
    ("text", "parameters", "keys"),
    [
        ("select k from a.b where year(ts) = 2023", None, [2, 3]),
        ("select t.k from a.b as t where year(t.ts) = 2023 and lower(t.s) = 'b'", None, [2, 3]),
        ("with x as (select * from a.b where year(ts) = 2023) select k from x", None, [2, 3]),
        ("select k from (select k, s from a.b where year(ts) = ?) where s = 'b'", [2023], [2]),
        ("select k from a.b where year(ts) = $y and a.b.k > 2", {"y": 2023}, [3]),
        (BOTH, None, [2, 3, 4, 5]),
        ("select x.k from a.b x join a.b y on x.k = y.k where year(x.ts) = 2023 and year(y.ts) = 2023", None, [2, 3]),
        ("select t.k from a.b t, (select 1) where year(t.ts) = 2023", None, [2, 3]),
        ("select x.k from a.b x left join (select 3 i) y on x.k = y.i where year(x.ts) = 2023", None, [2, 3]),
        ("select x.k from (select 3 i) y right join a.b x on x.k = y.i where year(x.ts) = 2023", None, [2, 3]),
        ("select x.k from a.b x anti join (select 3 k) y using (k) where year(x.ts) = 2023", None, [2]),
        ("select x.k from (values (2), (5)) y(k) natural join a.b x where year(x.ts) = 2023", None, [2]),
        ("select year(ts) as k2, k from a.b where upper(s) = 'C' order by k limit 1", None, [4]),
        ("select k from a.b where ts::date between '2023-01-01' and '2023-12-31' and b", None, []),
    ],
)
def test_conditions_on_functions_prune(text, parameters, keys, lake, narrowed):
    rows = lake.sql(text, parameters).to_arrow()
    assert sorted(rows["k"].to_pylist()) == keys
    assert narrowed != ["TRUE"]


@pytest.mark.parametrize(
    "text",
    [
        "select x.k from a.b x left join a.b y on x.k = y.k and year(y.ts) = 2023",
        "select x.k from a.b x join a.b y on x.k = y.k where year(x.ts) = 2023",
        "select y.k from (select 1 i) x left join a.b y on x.i = y.k where coalesce(year(y.ts), 2023) = 2023",
        "select y.k from (select 1 i) x full join a.b y on x.i = y.k where year(y.ts) = 2023",
        "select x.k from a.b x positional join (select 1) y where year(x.ts) = 2023",
        "select x.k from a.b x asof join (select 3 k) y on x.k >= y.k where year(x.ts) = 2023",
        "select k from a.b x, (select 1 i) y where year(ts) = 2023",
        "select x.k from a.b x, a.b where year(a.b.ts) = 2023 and year(x.ts) > 2000 or true",
        "select k from a.b where year(ts) = 2023 union all select k from a.b",
        "select k from a.b tablesample reservoir(6 rows) where year(ts) >= 2022",
        "select k from a.b as t(k, s, ts) where year(s) = 2023",
        "select k, 2023 as y from a.b where y + 0 = 2023",
        "select k, s as ts2 from a.b where year(ts) = 2023 or random() >= 0",
        "select k from a.b where year(ts) = 2023 + (random() * 0)::int",
        "select k from a.b where ts::date < date '2000-01-01' + age(date '2000-01-01')",
        "select k from a.b x where exists (select 1 from a.b y where year(y.ts) = 2023 and year(x.ts) = 2023)",
    ],
)
def test_what_is_not_plain_implies_nothing(text, lake, narrowed):
    lake.sql(text).fetchall()
    assert set(narrowed) == {"TRUE"}


def test_what_arrays_imply_is_not_kept_for_arrays_that_print_alike(lake):
    text = "select k from a.b where list_contains($1, k * 1.0::double)"
    assert repr(np.array([1 - 1e-12])) == repr(np.array([1.0]))
    assert lake.sql(text, [np.array([1 - 1e-12])]).fetchall() == []
    assert lake.sql(text, [np.array([1.0])]).fetchall() == [(1,)]


JOINS = ["join", "left join", "right join", "full join", "semi join", "anti join"]
ABOUT_LEFT = ["year(x.ts) = 2023", "x.k + 1 < 4", "lower(x.s) = 'b'", "coalesce(year(x.ts), 2023) = 2023"]
ABOUT_RIGHT = [
    "year(y.ts) = 2023",
    "coalesce(year(y.ts), 2023) = 2023",
    "year(y.ts) = 2023 or y.k is null",
    "lower(x.s) = 'b' and coalesce(lower(y.s), 'b') = 'b'",
    "not (year(y.ts) = 2023) and year(x.ts) > 2000",
    "(y.k + 1 < 4) is not true",
]


@pytest.mark.parametrize(
    ("join", "where"),
    [
        *((join, where) for join in JOINS for where in ABOUT_LEFT),
        *((join, where) for join in JOINS[:4] for where in ABOUT_RIGHT),
    ],
)
def test_a_join_answers_as_duckdb_does_over_its_own_tables(join, where):
    shows_left_only = join in ("semi join", "anti join")
    others = ROWS.slice(1, 4)
    lake = SmallLake(None, {"a.b": ROWS, "a.c": others}, block_rows=1)
    with duckdb.connect() as connection:
        connection.register("rows", ROWS)
        connection.register("others", others)
        connection.execute("create schema a; create table a.b as from rows; create table a.c as from others")
        for left, right in (("a.b", "a.c"), ("a.c", "a.b"), ("a.b", "a.b")):
            columns = "x.k" if shows_left_only else "x.k, y.k"
            text = f"select {columns} from {left} x {join} {right} y on x.k = y.k + 1 where {where}"
            expected = sorted(connection.execute(text).fetchall(), key=str)
            assert sorted(lake.sql(text).fetchall(), key=str) == expected
