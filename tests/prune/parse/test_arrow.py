"""Arrow expressions, as engines really push them down, become predicates that ask the same, or Opaque ones."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.prune.oracles.pushed import Pushed, answer, pushed_down
from underlay.prune import (
    TRUE,
    And,
    Compare,
    In,
    Instant,
    IsNan,
    IsNotNull,
    IsNull,
    Like,
    Not,
    Op,
    Opaque,
    Or,
    StartsWith,
    columns_of,
    matches,
)
from underlay.prune.parse.arrow import from_arrow

F = pc.field
DAY = datetime(2020, 1, 1)
AT = Instant(1_577_836_800 * 10**9)
ROWS = pa.table(
    {
        "k": [0, 1, 2],
        "i8": pa.array([1, -2, None], pa.int8()),
        "i": pa.array([1, -2, None], pa.int32()),
        "l": pa.array([1, 9007199254740993, None], pa.int64()),
        "u": pa.array([1, 18446744073709551615, None], pa.uint64()),
        "f": pa.array([0.1, math.nan, None], pa.float32()),
        "d": pa.array([1.5, math.nan, None], pa.float64()),
        "s": ['a"b', "é\n", None],
        "b": pa.array([b"a\xff", b'\0"', None], pa.binary()),
        "dec": pa.array([Decimal("-1.50"), Decimal("1.5"), None], pa.decimal128(9, 2)),
        "dt": pa.array([date(2020, 1, 1), date(1960, 1, 1), None]),
        "sec": pa.array([DAY, None, None], pa.timestamp("s")),
        "ms": pa.array([DAY, None, None], pa.timestamp("ms")),
        "us": pa.array([DAY, None, None], pa.timestamp("us")),
        "ns": pa.array([DAY, None, None], pa.timestamp("ns")),
        "tz": pa.array([DAY, None, None], pa.timestamp("us", "UTC")),
        "bo": [True, False, None],
        "st": pa.array([{"x": 1, "y z": 2}, {"x": 2, "y z": None}, None]),
        "id": pa.array([bytes(16), None, None], pa.uuid()),
        "dur": pa.array([1, 2, None], pa.duration("us")),
        "time": pa.array([1, 2, None], pa.time64("us")),
    }
)


@pytest.fixture(scope="module")
def database():
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("arrow_rows", ROWS)
        connection.execute("CREATE TABLE stored AS SELECT * FROM arrow_rows")
        yield connection


PUSHED = {
    "i = 1": Compare(("i",), Op.EQ, 1),
    "i8 > -2": Compare(("i8",), Op.GT, -2),
    "i <> 1": Compare(("i",), Op.NE, 1),
    "NOT i < 1": Compare(("i",), Op.GE, 1),
    "i < 1 OR i > 5": Or((Compare(("i",), Op.LT, 1), Compare(("i",), Op.GT, 5))),
    "i BETWEEN 1 AND 5": And((Compare(("i",), Op.GE, 1), Compare(("i",), Op.LE, 5))),
    "l >= 9007199254740993": Compare(("l",), Op.GE, 9007199254740993),
    "u > 18446744073709551614": Compare(("u",), Op.GT, 18446744073709551614),
    "f = 0.1": Compare(("f",), Op.EQ, 0.10000000149011612),
    "s = 'a\"b'": Compare(("s",), Op.EQ, 'a"b'),
    "s >= 'é'": Compare(("s",), Op.GE, "é"),
    "b = 'a\\xFF'::BLOB": Compare(("b",), Op.EQ, b"a\xff"),
    "dt >= DATE '1960-01-01'": Compare(("dt",), Op.GE, date(1960, 1, 1)),
    "sec >= '2020-01-01'": Compare(("sec",), Op.GE, AT),
    "ms >= '2020-01-01'": Compare(("ms",), Op.GE, AT),
    "us >= TIMESTAMP '2020-01-01'": Compare(("us",), Op.GE, AT),
    "tz >= TIMESTAMPTZ '2020-01-01 01:00:00+01'": Compare(("tz",), Op.GE, AT),
    "bo = TRUE": Compare(("bo",), Op.EQ, True),
    "st.x > 1": Compare(("st", "x"), Op.GT, 1),
    'st."y z" = 2': Compare(("st", "y z"), Op.EQ, 2),
    "time > TIME '00:00:01'": Compare(("time",), Op.GT, time(0, 0, 1)),
}


VARIOUSLY_PUSHED = (
    "i IN (1, 3, 5)", "i NOT IN (1, 3)", f"i IN ({', '.join(map(str, range(0, 100, 3)))})", "i IN (1, NULL)",
    "i NOT IN (1, NULL)", "i IS NULL", "i IS NOT NULL", "i = 1 OR i IS NULL", "i IS DISTINCT FROM 1",
    "s IN ('a\"b', 'é')", "s LIKE 'a%'", "dec > -1.25", "dec IN (1.5, 2)", "bo", "NOT bo", "bo IS NULL",
    "f IN (0.1, 2)", "st.x IN (1, 3)", "st.x IS NULL", "i + 1 = 2", "i = 1 OR l > 1",
)  # fmt: skip
"""What some versions push in one form, some in another, and some not at all."""


@pytest.mark.parametrize("where", PUSHED)
def test_what_every_duckdb_pushes_down_is_read(where, database):
    assert from_arrow(pushed_down(database, ROWS, where), ROWS.schema) == PUSHED[where]


@pytest.mark.parametrize("where", [*PUSHED, *VARIOUSLY_PUSHED])
def test_duckdb_over_rows_filtered_by_what_it_pushes_answers_as_over_its_own(where, database):
    rows = Pushed(ROWS)
    assert answer(database, rows, where) == answer(database, "stored", where)
    assert not any(isinstance(from_arrow(filter_, ROWS.schema), Opaque) for filter_ in rows.filters)


def where_valid(name, expression):
    """A test as DuckDB 2.0 pushes lists: null where the column is."""
    return pc.if_else(F(name).is_valid(), expression, pa.scalar(None, pa.bool_()))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (F("i") > 5, Compare(("i",), Op.GT, 5)),
        (~(F("d") > 5.0), Not(Compare(("d",), Op.GT, 5.0))),
        (F("l").isin([1, 2]), And((IsNotNull(("l",)), In(("l",), (1, 2))))),
        (F("l").isin([1, None]), Or((IsNull(("l",)), In(("l",), (1,))))),
        (where_valid("l", F("l").isin([1, 3])), In(("l",), (1, 3))),
        (~where_valid("l", F("l").isin([1, 3])), Not(In(("l",), (1, 3)))),
        (
            where_valid("d", (F("d") == 0.0) | F("d").isin([1.5])),
            Or((Compare(("d",), Op.EQ, 0.0), In(("d",), (1.5,)))),
        ),
        (F("i").is_null(), IsNull(("i",))),
        (F("dec") > Decimal("-1.25"), Compare(("dec",), Op.GT, Decimal("-1.25"))),
        (F("d").is_nan(), IsNan(("d",))),
        (pc.starts_with(F("s"), "a"), StartsWith(("s",), "a")),
        (F("bo") & F("i").is_valid(), And((Compare(("bo",), Op.EQ, True), IsNotNull(("i",))))),
        (F("us") > datetime(2020, 1, 1), Compare(("us",), Op.GT, AT)),
        (F("tz") > datetime(2020, 1, 1, tzinfo=UTC), Compare(("tz",), Op.GT, AT)),
        (F("i") == pa.scalar(None, pa.int32()), Compare(("i",), Op.EQ, None)),
        (pc.scalar(True), TRUE),
        (F("i") > 5.5, Compare(("i",), Op.GT, 5.5)),
        (F("i8") > 2**40, Compare(("i8",), Op.GT, 2**40)),
        (pa.scalar(5) < F("i"), Compare(("i",), Op.GT, 5)),
        (F("ns") > DAY, Compare(("ns",), Op.GT, AT)),
        (F("ns") == pa.scalar(1, pa.timestamp("ns")), Compare(("ns",), Op.EQ, Instant(1))),
        (F("dt") > DAY, Compare(("dt",), Op.GT, AT)),
        (F("id") == bytes(16), Compare(("id",), Op.EQ, UUID(int=0))),
        (F("id") == pa.scalar(UUID(int=7), pa.uuid()), Compare(("id",), Op.EQ, UUID(int=7))),
        (pc.starts_with(F("b"), "a"), StartsWith(("b",), b"a")),
        (pc.match_like(F("s"), "a%"), Like(("s",), "a%")),
        (F("st", "x") >= 1.5, Compare(("st", "x"), Op.GE, 1.5)),
        (F("i").isin(pa.array([], pa.int32())), And((IsNotNull(("i",)), In(("i",), ())))),
        (
            pc.is_in(F("i"), pa.array([1, None], pa.int32()), skip_nulls=True),
            And((IsNotNull(("i",)), In(("i",), (1,)))),
        ),
        ((F("i") > 5) | (F("i") == F("l")), Or((Compare(("i",), Op.GT, 5), Opaque("(i == l)", (("i",), ("l",)))))),
    ],
    ids=str,
)
def test_what_arrow_itself_says_is_read(expression, expected):
    assert from_arrow(expression, ROWS.schema) == expected


def test_the_arrow_lists_that_sql_has_not_keep_their_answer_for_nulls():
    table = pa.table({"l": [1, 5, None]})
    for expression in (F("l").isin([1]), ~F("l").isin([1]), F("l").isin([1, None]), ~F("l").isin([1, None])):
        expected = table.filter(expression).column("l").to_pylist()
        found = table.filter(matches(from_arrow(expression, table.schema), table)).column("l").to_pylist()
        assert found == expected, str(expression)


@pytest.mark.parametrize(
    "expression",
    [
        F(0) == 1,
        F("st", 0) == 1,
        F("i") + 1 == 2,
        F("i") == F("l"),
        F("i").cast("int64", safe=False) > 5,
        F("dur") > pa.scalar(1, pa.duration("us")),
        F("id") == b"short",
        F("i") > pa.scalar(0.5, pa.float32()),
        F("f") > Decimal("0.1"),
        F("us") > datetime(2020, 1, 1, tzinfo=UTC),
        F("time") > pa.scalar(1, pa.time64("ns")),
        F("i") > pa.scalar("1"),
        F("i").isin([1.5]),
        F("f").isin([0.1]),
        F("i"),
        pc.match_like(F("s"), r"a\%"),
        pc.match_like(F("b"), "a%"),
        F("s") == pa.scalar("a", pa.dictionary(pa.int8(), pa.string())),
        pc.and_(F("bo"), F("bo")),
        pc.starts_with(F("s"), "a", ignore_case=True),
        pc.if_else(F("i") > 1, F("l") > 1, F("l") < 1),
        where_valid("i", F("l").isin([1])),
        where_valid("i", F("l") == 1),
        where_valid("l", F("l").isin([1, None])),
        where_valid("i", F("i").is_null()),
        F("d").is_null(nan_is_null=True),
        F("nowhere") == 1,
        pc.is_finite(F("d")),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_opaque_and_names_what_it_may_ask(expression):
    predicate = from_arrow(expression, ROWS.schema)
    assert isinstance(predicate, Opaque)
    assert columns_of(predicate) <= {(name,) for name in ROWS.column_names}


def test_a_name_that_two_columns_have_is_not_guessed():
    schema = pa.schema([("c", pa.int32()), ("c", pa.int64())])
    assert isinstance(from_arrow(F("c") == 1, schema), Opaque)


def test_a_date_beyond_the_years_of_python_is_an_instant():
    predicate = from_arrow(F("dt") < pa.scalar(10**7, pa.int32()).cast(pa.date32()), ROWS.schema)
    assert predicate == Compare(("dt",), Op.LT, Instant(10**7 * 86_400 * 10**9))
