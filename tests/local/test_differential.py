"""Random rows in small blocks and random WHERE clauses: DuckDB over our table answers as over its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.gate import costly
from tests.local.lakes import Judge, SmallLake

START = datetime(2020, 1, 1)
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("u", pa.uint64()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("s", pa.string()),
        ("d", pa.decimal128(12, 2)),
        ("t", pa.timestamp("us")),
        ("z", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("ns")),
        ("b", pa.bool_()),
    ]
)
NUMBERS = [0, 1, -1, 2, 5, 7, 2**31 - 1, -(2**31)]
REALS = [0.0, -0.0, 1.0, 1.5, -1.5, 0.1, 5.0, float("nan"), float("inf"), float("-inf"), 2.0**53]
TEXTS = ["", "a", "ab", "a_b", "b", "B", "é", "\U0010ffff", "a%", "10", "9"]
HOURS = [START + timedelta(hours=hours) for hours in (0, 1, 2, 25)]


def maybe(values):
    return st.none() | st.sampled_from(values)


ROW = st.fixed_dictionaries(
    {
        "i": maybe(NUMBERS),
        "u": maybe([0, 1, 2, 2**63, 2**64 - 1]),
        "f": maybe(REALS),
        "g": maybe(REALS),
        "s": maybe(TEXTS),
        "d": maybe([Decimal(text) for text in ("0", "1", "-1", "1.01", "0.99")]),
        "t": maybe(HOURS),
        "z": maybe([hour.replace(tzinfo=UTC) for hour in HOURS]),
        "n": maybe(HOURS),
        "b": maybe([True, False]),
    }
)
LITERALS = {
    "i": ["0", "1", "-1", "5", "1.5", "2147483648", "'7'", "NULL"],
    "u": ["0", "1", "9223372036854775808", "18446744073709551615", "-1"],
    "f": ["0", "-0.0", "1.5", "'nan'::double", "'inf'::double", "0.1", "9007199254740993", "NULL"],
    "g": ["0", "0.1", "0.1::float", "'nan'::float", "1.5"],
    "s": ["''", "'a'", "'ab'", "'b'", "'\U0010ffff'", "NULL"],
    "d": ["0", "1", "0.995", "1.010", "1e0"],
    "t": ["TIMESTAMP '2020-01-01 01:00:00'", "'2020-01-01'", "DATE '2020-01-02'"],
    "z": ["TIMESTAMPTZ '2020-01-01 01:00:00+01:00'", "'2020-01-01 01:00:00'", "TIMESTAMP '2020-01-01 02:00:00'"],
    "n": ["TIMESTAMP_NS '2020-01-01 01:00:00'", "'2020-01-01 02:00:00'"],
    "b": ["true", "false"],
}
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
OTHERS = [
    "i % 3 = 2", "abs(i::bigint) = 1", "-(i::bigint) > -3", "i + u::hugeint > 3", "upper(s) = 'A'",
    "s LIKE 'a%'", "s LIKE '%b'",
    "s LIKE 'a\\_%' ESCAPE '\\'", "s NOT LIKE 'a%'", "s ILIKE 'B%'", "length(s) > 1", "isnan(f)",
    "f = g", "f::float = g",
    "i = f", "b", "NOT b", "hour(t) = 1", "t = n", "try_cast(s as int) > 5", "coalesce(i, 5) = 5", "i::varchar = '1'",
    "f + 1 > 2", "CASE WHEN i > 0 THEN f > 0 ELSE s = 'a' END",
]  # fmt: skip


@st.composite
def leaves(draw):
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from(OTHERS))
    column = draw(st.sampled_from(SCHEMA.names))
    literals = st.sampled_from(LITERALS[column])
    if kind == 1:
        return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if kind == 2:
        listed = ", ".join(draw(st.lists(literals, min_size=1, max_size=3)))
        return f"{column} {draw(st.sampled_from(['IN', 'NOT IN']))} ({listed})"
    if kind == 3:
        return f"{column} BETWEEN {draw(literals)} AND {draw(literals)}"
    return f"{column} {draw(st.sampled_from(COMPARISONS))} {draw(literals)}"


CONDITIONS = st.recursive(
    leaves(),
    lambda inner: (
        st.builds(lambda a, b, word: f"({a} {word} {b})", inner, inner, st.sampled_from(["AND", "OR"]))
        | inner.map(lambda one: f"NOT ({one})")
    ),
    max_leaves=4,
)


@settings(
    costly,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(rows=st.lists(ROW, min_size=1, max_size=12), conditions=st.lists(CONDITIONS, min_size=1, max_size=6))
def test_answers_are_those_of_duckdb(rows, conditions):
    table = pa.Table.from_pylist(rows, SCHEMA).append_column("row", pa.array(range(len(rows)), pa.int64()))
    tables = {"a.b": table}
    lake = SmallLake(None, tables, block_rows=3)
    with Judge(tables) as judge:
        for condition in conditions:
            for query in (
                f"select row from a.b where {condition} order by row",
                f"select count(*) from a.b where {condition}",
            ):
                assert lake.rows(query) == judge.rows(query), condition
