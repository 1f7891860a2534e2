"""The filter gives DuckDB's answer for every row, which is also the reference's, and pruning never contradicts it."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate import costly, sized
from tests.prune.oracles.arrow_rows import OTHER_FORMS, TYPES, arrow_array
from tests.prune.oracles.duckdb_sql import duckdb_sql
from tests.prune.oracles.kinds import BY_NAME
from tests.prune.oracles.reference import truth
from tests.prune.oracles.test_differential import judge, row_key
from tests.prune.oracles.worlds import build_tree, build_world
from underlay.errors import BadPredicate, UnknownColumn
from underlay.prune import And, In, IsNotNull, Like, NotIn, Opaque, col, matches
from underlay.prune.parse.sql import parse_where

kinds = pytest.mark.parametrize("kind", [BY_NAME[name] for name in TYPES], ids=repr)
seeds = st.integers(min_value=0, max_value=2**64)
NAN = math.nan


@pytest.fixture(scope="module")
def database():
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def found(where, **columns):
    predicate = parse_where(where) if isinstance(where, str) else where
    return matches(predicate, pa.table(columns)).to_pylist()


@kinds
@given(seed=seeds)
def test_every_row_gets_the_reference_answer(kind, seed):
    rng = random.Random(seed)
    predicate = build_tree(rng, kind, loose=False)
    type_ = rng.choice([TYPES[kind.name], *OTHER_FORMS.get(kind.name, [])])
    rows = [None, *kind.values]
    mask = matches(predicate, pa.table({"c": arrow_array(kind, rows, type_)})).to_pylist()
    expected = [truth(predicate, row_key(kind, row), kind.readings) is True for row in rows]
    assert mask == expected, str(predicate)


@kinds
@costly
@given(seed=seeds)
def test_pruning_agrees_with_the_rows_that_the_filter_finds(kind, seed):
    world = build_world(random.Random(seed), kind, loose=True, damage=False, tree=True)
    verdict = judge(world)
    for block, is_kept, is_full in zip(world.blocks, verdict.kept, verdict.must, strict=True):
        mask = matches(world.predicate, pa.table({"c": arrow_array(kind, block)})).to_pylist()
        assert is_kept or not any(mask), (str(world.predicate), block)
        assert not is_full or all(mask), (str(world.predicate), block)


@kinds
def test_duckdb_finds_the_same_rows(kind, database):
    rng, judged = random.Random(5), 0
    rows = [None, *kind.values]
    table = pa.table({"c": arrow_array(kind, rows)})
    database.register("rows", table)
    database.execute("CREATE OR REPLACE TABLE stored AS SELECT * FROM rows")
    for _ in range(sized(25, 60)):
        predicate = build_tree(rng, kind, loose=False)
        query = f"SELECT coalesce(({duckdb_sql(str(predicate))}), false) FROM stored ORDER BY rowid"
        try:
            answers = [row[0] for row in database.execute(query).fetchall()]
        except duckdb.Error:  # it does not compare such a column with such a literal
            continue
        judged += 1
        assert matches(predicate, table).to_pylist() == answers, str(predicate)
    assert judged > sized(4, 10)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("c > 2", [False, True, False, False]),
        ("c <> 1", [False, True, True, False]),
        ("NOT c < 2", [False, True, False, False]),
        ("NOT c > 2", [True, False, True, False]),
        ("c NOT IN (1)", [False, True, True, False]),
        ("c = 'nan'::double", [False, True, False, False]),
        ("c <> 'nan'::double", [True, False, True, False]),
        ("c <= 'nan'::double", [True, True, True, False]),
        ("c > 'nan'::double", [False, False, False, False]),
        ("isnan(c)", [False, True, False, False]),
        ("NOT isnan(c)", [True, False, True, False]),
        ("c = 0", [False, False, True, False]),
        ("c IN (0.0, 7)", [False, False, True, False]),
        ("c IS DISTINCT FROM 1", [False, True, True, True]),
    ],
)
def test_nan_is_greatest_and_the_zeros_are_one(where, expected):
    for type_ in (pa.float16(), pa.float32(), pa.float64()):
        assert found(where, c=pa.array([1.0, NAN, -0.0, None], type_)) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("c IN (5, NULL)", [True, False, False]),
        ("c NOT IN (5, NULL)", [False, False, False]),
        ("c NOT IN (5)", [False, True, False]),
        ("c = NULL OR c = 6", [False, True, False]),
        ("NOT (c = NULL AND c = 6)", [True, False, False]),
        ("c BETWEEN 1 AND NULL", [False, False, False]),
        ("NOT c BETWEEN 6 AND NULL", [True, False, False]),
        ("c IS NOT DISTINCT FROM NULL", [False, False, True]),
        ("NOT c IS NOT DISTINCT FROM 5", [False, True, True]),
        ("NULL", [False, False, False]),
        ("TRUE", [True, True, True]),
        ("NOT (NULL AND FALSE)", [True, True, True]),
    ],
)
def test_null_is_neither_true_nor_false(where, expected):
    assert found(where, c=[5, 6, None]) == expected


def test_an_empty_list_is_false_and_its_negation_true_of_nulls_too():
    assert found(In(("c",), ()), c=[5, None]) == [False, False]
    assert found(NotIn(("c",), ()), c=[5, None]) == [True, True]


def test_a_python_float_meets_whole_numbers_and_decimals_as_doubles():
    prices = pa.array([Decimal("0.10"), Decimal("0.30"), None], pa.decimal128(9, 2))
    assert found(col("c") == 0.1, c=prices) == [True, False, False]
    assert found(col("c") < 0.3, c=prices) == [True, False, False]
    assert found(col("c").is_in([0.3, 7]), c=prices) == [False, True, False]
    assert found(col("c") > 4.5, c=[4, 5]) == [False, True]


def test_a_field_of_a_null_struct_is_null():
    rows = pa.array([{"x": 1}, {"x": None}, None], pa.struct([("x", pa.int64())]))
    assert found("s.x IS NULL", s=rows) == [False, True, True]
    assert found("s IS NULL", s=rows) == [False, False, True]
    assert found("s.x = 1", s=rows) == [True, False, False]


def test_a_column_of_no_type_is_null_everywhere():
    rows = pa.nulls(2)
    for where in ("c = 'x'", "NOT c > 5", "c IN (1, 'x')", "c LIKE 'a%'", "isnan(c)", "c IS NOT DISTINCT FROM 1"):
        assert found(where, c=rows) == [False, False], where
    assert found("c IS DISTINCT FROM 1", c=rows) == found("c IS NULL", c=rows) == [True, True]


def test_encodings_change_nothing():
    rows = pa.array(["a", "a", None, "b"])
    for encoded in (rows.dictionary_encode(), pc.run_end_encode(rows)):
        assert found("c = 'a' OR c > 'a'", c=encoded) == [True, True, False, True]


def test_slices_and_chunks_and_no_rows_at_all():
    table = pa.concat_tables([pa.table({"c": [1, 2, 3]}).slice(1), pa.table({"c": [2]})])
    assert matches(parse_where("c = 2"), table).to_pylist() == [True, False, True]
    empty = pa.table({"c": pa.array([], pa.int64())})
    assert matches(parse_where("c = 2 OR TRUE"), empty).to_pylist() == []
    assert matches(And(()), table.to_batches()[0]).to_pylist() == [True, True]


def test_a_pattern_that_engines_read_differently_is_refused():
    with pytest.raises(BadPredicate, match="backslash"):
        found(r"c LIKE 'a\_b%'", c=["a_b"])
    assert found(r"c LIKE 'a\_b%' ESCAPE '\'", c=["a_bc", "axb"]) == [True, False]


def test_patterns_are_literal_but_for_their_wildcards():
    rows = ["a.b", "axb", "a\nb", "a%b", "", "A.B", None]
    assert found("c LIKE 'a.b'", c=rows) == [True] + [False] * 6
    assert found("c LIKE 'a_b'", c=rows) == [True, True, True, True, False, False, False]
    assert found("c LIKE 'a!%_' ESCAPE '!'", c=rows) == [False, False, False, True, False, False, False]
    assert found("NOT c LIKE '%b'", c=rows) == [False, False, False, False, True, True, False]


@pytest.mark.parametrize(
    ("predicate", "problem"),
    [
        (Opaque("abs(c) = 1"), "abs"),
        (col("c") == "x", "c: a column of type int64 cannot be compared"),
        (col("c").like("x%"), "c: a column of type int64 cannot be compared"),
        (col("l") == 5, "l: a column of type list"),
        (Like(("b",), "a_"), "b: a column of type binary"),
        (col("c").starts_with("1"), "prefix"),
    ],
)
def test_what_cannot_be_applied_is_refused_with_its_column(predicate, problem):
    with pytest.raises(BadPredicate, match=problem):
        found(predicate, c=[1], l=[[1]], b=[b"a"])


def test_unknown_and_ambiguous_columns_are_refused():
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["c", "c"])
    for predicate, table in ((IsNotNull(("x",)), twice), (IsNotNull(("c",)), twice)):
        with pytest.raises(UnknownColumn):
            matches(predicate, table)
    with pytest.raises(UnknownColumn, match=r"c\.x"):
        found("c.x = 1", c=[1])
