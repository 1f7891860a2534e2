"""DuckDB over a dataset gives its own answers on floats: NaN greatest and equal to itself, the zeros one."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from tests.prune.oracles.duckdb_sql import IS_DUCKDB_1
from tests.prune.oracles.pushed import Pushed, answer, pushed_down
from underlay.prune import FALSE, TRUE, And, Compare, IsNan, Not, Op
from underlay.prune.parse.arrow import from_arrow

VALUES = [1.0, float("nan"), -0.0, 0.1, float("inf"), float("-inf"), None]
NULL_ROW = VALUES.index(None)
ROWS = pa.table(
    {"k": range(len(VALUES)), "DOUBLE": pa.array(VALUES, pa.float64()), "FLOAT": pa.array(VALUES, pa.float32())}
)
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
LITERALS = ("1", "0", "-0.0", "0.1", "'inf'::DOUBLE", "'-inf'::DOUBLE", "'nan'::DOUBLE")
FORMS = [
    *(f"c {operator} {literal}" for operator in OPERATORS for literal in LITERALS),
    *(f"NOT c {operator} {literal}" for operator in OPERATORS for literal in LITERALS),
    "c IN (1)", "c IN (0, 0.1)", "c IN (1, 'nan'::DOUBLE)", "c IN ('nan'::DOUBLE)", "c IN (1, NULL)",
    "c NOT IN (1)", "c NOT IN (1, 2)", "c NOT IN (1, 'nan'::DOUBLE)", "c NOT IN (1, NULL)",
    "c BETWEEN 0 AND 1", "c BETWEEN 0 AND 'nan'::DOUBLE", "c BETWEEN 'nan'::DOUBLE AND 'nan'::DOUBLE",
    "c NOT BETWEEN 0 AND 1", "c NOT BETWEEN 0 AND 'nan'::DOUBLE",
    "c IS NULL", "c IS NOT NULL", "isnan(c)", "NOT isnan(c)",
    "c IS DISTINCT FROM 1", "c IS NOT DISTINCT FROM 'nan'::DOUBLE",
    "c < 1 OR c > 5", "c < 1 OR c IS NULL", "c = 1 OR c = 'nan'::DOUBLE", "NOT (c < 1 OR c = 'inf'::DOUBLE)",
    "c > 0 AND k > 0", "c > 1 OR k = 2", "c > (SELECT 1.0::DOUBLE)", "c <= (SELECT 'nan'::DOUBLE)",
    "c IN (SELECT c FROM stored WHERE k < 2)", "c > 0 AND k IN (SELECT k FROM stored WHERE k < 4)",
]  # fmt: skip
AT_MOST_NAN = ("c <= 'nan'::DOUBLE", "NOT c > 'nan'::DOUBLE")
types = pytest.mark.parametrize("type_", ["FLOAT", "DOUBLE"])


@pytest.fixture(scope="module")
def database():
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("rows", ROWS)
        for type_ in ("FLOAT", "DOUBLE"):
            connection.execute(f'CREATE TABLE "{type_}" AS SELECT k, "{type_}" AS c FROM rows')
        yield connection


def rows_of(type_):
    return ROWS.select(["k", type_]).rename_columns(["k", "c"])


@types
def test_duckdb_over_a_dataset_answers_as_over_its_own_table(type_, database):
    wrong = {}
    for form in (form for form in FORMS if form not in AT_MOST_NAN):
        where = form.replace("::DOUBLE", f"::{type_}").replace("stored", f'"{type_}"')
        found, expected = answer(database, Pushed(rows_of(type_)), where), answer(database, f'"{type_}"', where)
        if found != expected:
            wrong[where] = (found, expected)
    assert wrong == {}, "(found, expected)"


@types
def test_a_comparison_that_nan_matches_is_trusted_to_the_scan_by_duckdb_1_and_kept_by_duckdb_2(type_, database):
    rows = rows_of(type_)
    for where in ("c > 1", "c >= 1", "c <> 1", "NOT c < 1"):
        everything = answer(database, Pushed(rows, applies=False), where)
        if IS_DUCKDB_1:
            assert isinstance(from_arrow(pushed_down(database, rows, where), rows.schema), Compare)
            assert everything == rows["k"].to_pylist()
        else:
            assert pushed_down(database, rows, where) is None
            assert everything == answer(database, f'"{type_}"', where)


@types
@pytest.mark.parametrize(
    ("where", "by_duckdb_1"),
    [
        ("c = 'nan'::DOUBLE", IsNan(("c",))),
        ("c >= 'nan'::DOUBLE", IsNan(("c",))),
        ("c <> 'nan'::DOUBLE", Not(IsNan(("c",)))),
        ("c < 'nan'::DOUBLE", Not(IsNan(("c",)))),
        ("c > 'nan'::DOUBLE", FALSE),
        ("c BETWEEN 0 AND 'nan'::DOUBLE", And((Compare(("c",), Op.GE, 0.0), TRUE))),
    ],
)
def test_nan_as_a_literal_is_pushed_by_duckdb_1_as_a_test_for_nan_and_not_at_all_by_duckdb_2(
    where, by_duckdb_1, type_, database
):
    rows = rows_of(type_)
    filter_ = pushed_down(database, rows, where.replace("DOUBLE", type_))
    if IS_DUCKDB_1:
        assert from_arrow(filter_, rows.schema) == by_duckdb_1
    else:
        assert filter_ is None


@types
@pytest.mark.parametrize("where", AT_MOST_NAN)
def test_at_most_nan_loses_its_column_in_duckdb_1_which_then_finds_nulls_in_any_arrow_data(where, type_, database):
    where, rows = where.replace("DOUBLE", type_), rows_of(type_)
    expected = answer(database, f'"{type_}"', where)
    found = answer(database, Pushed(rows), where)
    if IS_DUCKDB_1:
        assert from_arrow(pushed_down(database, rows, where), rows.schema) == TRUE
        assert found == answer(database, rows, where) == [*expected, NULL_ROW]
    else:
        assert found == expected
