"""Predicates built in Python, and what a slip of the pen is told."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import duckdb
import numpy as np
import pytest

from underlay.errors import BadPredicate
from underlay.prune import (
    And,
    Between,
    Compare,
    In,
    Instant,
    IsDistinct,
    IsNan,
    IsNotDistinct,
    IsNotNan,
    IsNotNull,
    IsNull,
    Like,
    Not,
    NotIn,
    Op,
    Or,
    StartsWith,
    col,
    columns_of,
)
from underlay.prune.parse.sql import parse_where
from underlay.prune.predicates.operand import write_column

A = ("a",)


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (col("a") == 1, Compare(A, Op.EQ, 1)),
        (col("a") != 1, Compare(A, Op.NE, 1)),
        (col('"a.b"') == 1, Compare(("a.b",), Op.EQ, 1)),
        (col('`a.b`."c ""d"".e".f') == 1, Compare(("a.b", 'c "d".e', "f"), Op.EQ, 1)),
        (col('say "a') == 1, Compare(('say "a',), Op.EQ, 1)),
        (col("a b", "c.d") == 1, Compare(("a b", "c.d"), Op.EQ, 1)),
        (col("a") < 1, Compare(A, Op.LT, 1)),
        (col("a") <= 1, Compare(A, Op.LE, 1)),
        (col("a") > 1, Compare(A, Op.GT, 1)),
        (col("a") >= 1, Compare(A, Op.GE, 1)),
        (col("a").is_in(n for n in (1, None)), In(A, (1, None))),
        (col("a").is_not_in([1]), NotIn(A, (1,))),
        (col("a").between(1, 2), Between(A, 1, 2)),
        (col("a").is_same(None), IsNotDistinct(A, None)),
        (col("a").is_different(1), IsDistinct(A, 1)),
        (col("a").is_null(), IsNull(A)),
        (col("a").is_not_null(), IsNotNull(A)),
        (col("a").is_nan(), IsNan(A)),
        (col("a").is_not_nan(), IsNotNan(A)),
        (col("a").starts_with("x"), StartsWith(A, "x")),
        (col("a").like("x!%", escape="!"), Like(A, "x!%", "!")),
        (col("a.b") == 1, Compare(("a", "b"), Op.EQ, 1)),
        (col("a", "b.c") == 1, Compare(("a", "b.c"), Op.EQ, 1)),
    ],
    ids=str,
)
def test_operators_and_methods_build_leaves(built, expected):
    assert built == expected


def test_a_literal_may_stand_on_the_left():
    assert Compare(A, Op.GT, 5) == (col("a") > 5)


def test_and_or_not_join_and_flatten():
    a, b, c = (col(name) == 1 for name in "abc")
    assert a & b & c == And((a, b, c))
    assert a | b | c == Or((a, b, c))
    assert ~a & (b | c) == And((Not(a), Or((b, c))))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.int64(5), 5),
        (np.float32(0.5), 0.5),
        (np.datetime64("2020-01-01", "D"), Instant(1_577_836_800 * 10**9)),
        (np.datetime64(5, "ns"), Instant(5)),
        (np.datetime64("NaT", "us"), None),
        (np.str_("x"), "x"),
        (date(2020, 1, 1), date(2020, 1, 1)),
    ],
)
def test_numpy_values_become_literals(given, kept):
    found = (col("a") == given).value
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize("value", [[1], object(), {"a": 1}, col("b"), Decimal("1e999"), 1j, np.datetime64(5, "Y")])
def test_what_is_no_literal_is_refused_when_it_is_built(value):
    with pytest.raises(BadPredicate):
        _ = col("a") == value


def test_a_text_is_no_list_and_an_empty_name_no_column():
    with pytest.raises(BadPredicate, match="list"):
        col("a").is_in("abc")
    for names in (("",), ("a.",), ("a", "")):
        with pytest.raises(BadPredicate):
            col(*names)
    with pytest.raises(BadPredicate, match="prefix"):
        col("a").starts_with(5)
    with pytest.raises(BadPredicate, match="escape"):
        col("a").like("x", escape="ab")


def test_and_or_not_in_and_chains_are_told_what_to_write():
    a, b = col("a") == 1, col("b") == 2
    with pytest.raises(TypeError, match=r"& \| ~"):
        _ = a and b
    with pytest.raises(TypeError, match=r"& \| ~"):
        _ = not a
    with pytest.raises(TypeError, match="between"):
        _ = 1 < col("a") < 5
    with pytest.raises(TypeError, match="no truth value"):
        bool(col("a"))
    with pytest.raises(TypeError, match="hashed"):
        hash(col("a"))
    with pytest.raises(TypeError, match="parentheses"):
        _ = a & 1
    with pytest.raises(TypeError, match="parentheses"):
        _ = a | col("b")


def test_a_column_shows_itself():
    assert (str(col("a.b c")), repr(col("a", "b"))) == ('a."b c"', "col('a', 'b')")


def test_every_word_of_the_engine_is_a_column_as_it_is_written():
    connection = duckdb.connect()
    words = [str(word) for (word,) in connection.execute("select keyword_name from duckdb_keywords()").fetchall()]
    assert len(words) > 400
    for word in words:
        written = write_column((word,))
        quoted = word.replace('"', '""')
        where = f"{written} >= 1 and {written} is not null"
        found = connection.execute(f'select 1 from (select 1 as "{quoted}") where {where}')
        assert found.fetchall() == [(1,)]
        assert columns_of(parse_where(f"{written} >= 1")) == {(word,)}
