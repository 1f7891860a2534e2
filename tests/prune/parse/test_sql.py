"""What WHERE text is read, and how everything else is refused."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underlay.errors import BadPredicate
from underlay.prune import (
    And,
    Between,
    Compare,
    Constant,
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
    Opaque,
    Or,
    Predicate,
    StartsWith,
    columns_of,
    normalise,
)
from underlay.prune.parse.sql import parse_where

C = ("c",)
NEW_YEAR = Instant(1_577_836_800 * 10**9)


def one(text):
    (part,) = parse_where(text).parts
    return part


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c = 5", Compare(C, Op.EQ, 5)),
        ("c == 5", Compare(C, Op.EQ, 5)),
        ("5 < c", Compare(C, Op.GT, 5)),
        ("5 >= c", Compare(C, Op.LE, 5)),
        ("(c) <= ((-5))", Compare(C, Op.LE, -5)),
        ("c > - -5", Compare(C, Op.GT, 5)),
        ("c = 1.50", Compare(C, Op.EQ, Decimal("1.50"))),
        ("c = -.5", Compare(C, Op.EQ, Decimal("-0.5"))),
        ("c = 1e2", Compare(C, Op.EQ, 100.0)),
        ("c = 123456789012345678901234567890", Compare(C, Op.EQ, 123456789012345678901234567890)),
        ("c = 'it''s'", Compare(C, Op.EQ, "it's")),
        ("c = TRUE", Compare(C, Op.EQ, True)),
        ("c = NULL", Compare(C, Op.EQ, None)),
        ("c = X'0aFF'", Compare(C, Op.EQ, b"\x0a\xff")),
        ("c = x''", Compare(C, Op.EQ, b"")),
        ("c = DATE '2020-01-01'", Compare(C, Op.EQ, date(2020, 1, 1))),
        ("c = CAST('2020-01-01' AS DATE)", Compare(C, Op.EQ, date(2020, 1, 1))),
        ("c = TIMESTAMP '2020-01-01 00:00:00'", Compare(C, Op.EQ, NEW_YEAR)),
        ("c = '2020-01-01T00:00'::timestamp", Compare(C, Op.EQ, NEW_YEAR)),
        ("c = TIMESTAMPTZ '2020-01-01 05:30+05:30'", Compare(C, Op.EQ, NEW_YEAR)),
        ("c = TIMESTAMP_NS '2020-01-01 00:00:00.000000001'", Compare(C, Op.EQ, Instant(NEW_YEAR.ns + 1))),
        ("c = UUID '00000000-0000-0000-0000-000000000005'", Compare(C, Op.EQ, UUID(int=5))),
        ("c = 'inf'::double", Compare(C, Op.EQ, float("inf"))),
        ("c IN (1, 'x', NULL)", In(C, (1, "x", None))),
        ("c BETWEEN 9 AND 1", Between(C, 9, 1)),
        ("c IS NULL", IsNull(C)),
        ("c IS NOT NULL", IsNotNull(C)),
        ("NOT c IS NULL", IsNotNull(C)),
        ('"A b"."x.y" = 1', Compare(("A b", "x.y"), Op.EQ, 1)),
        ("a.b.c.d.e.f = 1", Compare(tuple("abcdef"), Op.EQ, 1)),
        ("date = 1", Compare(("date",), Op.EQ, 1)),
        ("c = 1; ", Compare(C, Op.EQ, 1)),
        ("c <> 5", Compare(C, Op.NE, 5)),
        ("5 != c", Compare(C, Op.NE, 5)),
        ("NOT c < 5", Not(Compare(C, Op.LT, 5))),
        ("c NOT IN (5, NULL)", NotIn(C, (5, None))),
        ("NOT c IN (5)", NotIn(C, (5,))),
        ("c NOT BETWEEN 1 AND 9", Not(Between(C, 1, 9))),
        ("c <=> 5", IsNotDistinct(C, 5)),
        ("5 IS NOT DISTINCT FROM c", IsNotDistinct(C, 5)),
        ("c IS DISTINCT FROM NULL", IsDistinct(C, None)),
        ("c IS TRUE", IsNotDistinct(C, True)),
        ("c IS NOT FALSE", Not(IsNotDistinct(C, False))),
        ("c IS UNKNOWN", IsNull(C)),
        ("isnan(c)", IsNan(C)),
        ("NOT isnan(c)", IsNotNan(C)),
        ("starts_with(c, 'x')", StartsWith(C, "x")),
        ("c ^@ 'x'", StartsWith(C, "x")),
        ("starts_with(c, X'FF')", StartsWith(C, b"\xff")),
        ("c LIKE 'x%'", Like(C, "x%")),
        ("c NOT LIKE 'x%'", Not(Like(C, "x%"))),
        ("c LIKE '!%' ESCAPE '!'", Like(C, "!%", "!")),
        ("c NOT LIKE '!%' ESCAPE '!'", Not(Like(C, "!%", "!"))),
        ("TRUE", Constant(True)),
        ("NULL", Constant(None)),
        ("c", Compare(C, Op.EQ, True)),
        ("NOT (c)", Not(Compare(C, Op.EQ, True))),
        ("c = 1 OR (c = 2 OR c = 3)", Or(tuple(Compare(C, Op.EQ, n) for n in (1, 2, 3)))),
    ],
)
def test_a_supported_predicate_is_read(text, expected):
    assert one(text) == expected


def test_and_is_flattened_in_order():
    assert str(parse_where("a = 1 AND (b = 2 AND (c = 3)) AND d IS NULL")) == "a = 1 AND b = 2 AND c = 3 AND d IS NULL"


def test_nan_is_read_from_a_cast():
    value = one("c = CAST('NaN' AS DOUBLE)").value
    assert value != value


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("abs(a) = 1", "ABS(a) = 1"),
        ("b = 2 OR NOT abs(a) = 1", "ABS(a) = 1"),
        ("a + 1 = 2", "a + 1 = 2"),
        ("a::int = 5", "CAST(a AS INT) = 5"),
        ("a = b", "a = b"),
        ("a = CURRENT_DATE", "CURRENT_DATE"),
        ("a IN (SELECT 1)", "a IN (SELECT 1)"),
        ("a IN b", "a IN b"),
        ("a = (SELECT 1)", "SELECT 1"),
        ("a BETWEEN SYMMETRIC 9 AND 1", "a BETWEEN 9 AND 1"),
        ("a IS NOT DISTINCT FROM b", "a IS NOT DISTINCT FROM b"),
        ("a ILIKE 'x%'", "a ILIKE 'x%'"),
        ("a LIKE b", "a LIKE b"),
        ("a LIKE 5", "a LIKE 5"),
        ("a LIKE ANY ('x', 'y')", "a LIKE 'x' OR a LIKE 'y'"),
        ("a SIMILAR TO 'x'", "a SIMILAR TO 'x'"),
        ("starts_with('abc', a)", "STARTS_WITH('abc', a)"),
        ("isnan(a + 1)", "ISNAN(a + 1)"),
        ("(a = 1) IS NULL", "(a = 1) IS NULL"),
        ("a = 'x' COLLATE NOCASE", "COLLATE"),
        ("a = 1 = 1", "a = 1 = 1"),
        ("a = -'5'", "-'5'"),
        ("a = CAST(1 AS FLOAT)", "CAST(1 AS REAL)"),
        ("a = CAST('0.1' AS FLOAT)", "CAST('0.1' AS REAL)"),
        ("a = TRY_CAST('x' AS DATE)", "TRY_CAST('x' AS DATE)"),
        ("a = DATE '2020-02-30'", "2020-02-30"),
        ("a = TIMESTAMP '2020-01-01 25:00'", "25:00"),
        ("a = 0x10", "0x10"),
        ("a = X'ABC'", "ABC"),
        ("a = 1e999", "1e999"),
        ("a = " + "9" * 401, "9999"),
        ("a[1] = 3", "a[1] = 3"),
        ("a = ?", "?"),
        ("1 = 1", "1 = 1"),
        ("5", "5"),
    ],
)
def test_an_unsupported_part_is_named(text, fragment):
    with pytest.raises(BadPredicate) as caught:
        parse_where(text)
    assert fragment in caught.value.problem
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = 1 b", "line 1, column 7"),
        ("a = 1 AND", "line 1, column 9"),
        ("a = 1\nAND = 2", "line 2, column"),
        ("a = (1", "line 1, column 6"),
        ("SELECT 1 FROM t", "line 1"),
        ("a = 1)", "line 1, column 6"),
        (")(", "line 1, column 1"),
        ("WHERE a = 1", "line 1, column 5"),
    ],
)
def test_text_that_is_no_condition_is_refused_with_its_position(text, place):
    with pytest.raises(BadPredicate) as caught:
        parse_where(text)
    assert caught.value.place is not None
    assert caught.value.place.startswith(place)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "-- nothing",
        "a = 'x",
        'a = "x',
        "a = 1; b = 2",
        "(" * 20_000 + "a = 1",
        "NOT " * 20_000 + "a = 1",
        "a = " + "- " * 20_000 + "1",
        "x" * 4_000_001,
    ],
    ids=["empty", "blank", "comment", "quote", "name", "two", "parens", "nots", "signs", "long"],
)
def test_hostile_text_is_refused(text):
    with pytest.raises(BadPredicate):
        parse_where(text)


def test_long_chains_and_lists_are_read():
    assert len(parse_where(" AND ".join(["a = 1"] * 5_000)).parts) == 5_000
    assert len(one(" OR ".join(["a = 1"] * 5_000)).parts) == 5_000
    assert len(one(f"a IN ({', '.join(map(str, range(5_000)))})").values) == 5_000


@given(st.text(alphabet="ac15'\"()=<>.,;-+*/ \nANDORINULLx\\0xXé[]{}$?:e", max_size=30))
def test_any_text_is_read_or_refused(text):
    for opaque in (False, True):
        with suppress(BadPredicate):
            assert isinstance(parse_where(text, opaque=opaque), And)


names = st.tuples(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8))
literals = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**40), 10**40),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.binary(max_size=8),
    st.dates(),
    st.uuids(),
    st.integers(-(2**62), 2**62).map(Instant),
)


@given(names, st.sampled_from(list(Op)), literals, literals)
def test_every_predicate_prints_as_text_that_reads_back(name, op, left, right):
    parts = (
        Compare(name, op, left),
        In(name, (left, right)),
        Between(name, left, right),
        IsNull(name),
        IsNotNull(name),
    )
    assert parse_where(str(And(parts))) == And(parts)


predicates = st.recursive(
    st.one_of(
        st.builds(Compare, names, st.sampled_from(list(Op)), literals),
        st.builds(In, names, st.lists(literals, max_size=3).map(tuple)),
        st.builds(NotIn, names, st.lists(literals, max_size=3).map(tuple)),
        st.builds(Between, names, literals, literals),
        st.builds(IsDistinct, names, literals),
        st.builds(IsNotDistinct, names, literals),
        st.builds(StartsWith, names, st.text(st.characters(codec="utf-8"), max_size=4) | st.binary(max_size=4)),
        st.builds(Like, names, st.text("ab%_", max_size=4), st.sampled_from([None, "!", "'"])),
        st.sampled_from([IsNull, IsNotNull, IsNan, IsNotNan]).flatmap(lambda leaf: st.builds(leaf, names)),
        st.sampled_from([True, False, None]).map(Constant),
    ),
    lambda parts: st.one_of(
        parts.map(Not),
        st.lists(parts, max_size=3).map(lambda p: And(tuple(p))),
        st.lists(parts, max_size=3).map(lambda p: Or(tuple(p))),
    ),
    max_leaves=8,
)


@given(predicates)
def test_every_tree_prints_as_text_that_reads_back_to_the_same_question(predicate: Predicate):
    assert normalise(parse_where(str(predicate))) == normalise(predicate)


@pytest.mark.parametrize(
    ("text", "part", "columns"),
    [
        ("abs(a) = 1 AND b = 2", "ABS(a) = 1", {("a",)}),
        ("b = 2 OR NOT a + c.d > 1", "a + c.d > 1", {("a",), ("c", "d")}),
        ("a = b", "a = b", {("a",), ("b",)}),
        ("CAST(a AS INT) = 5", "CAST(a AS INT) = 5", {("a",)}),
        ("a.b.c.d.e.f % 8 = 2", "a.b.c.d.e.f % 8 = 2", {tuple("abcdef")}),
        ("a ILIKE 'x%'", "a ILIKE 'x%'", {("a",)}),
        ("a = random()", "a = RANDOM()", {("a",)}),
        ("1 = 1", "1 = 1", set()),
    ],
)
def test_what_cannot_be_translated_is_opaque_for_who_asks(text, part, columns):
    predicate = parse_where(text, opaque=True)
    (found,) = [leaf for leaf in leaves(predicate) if isinstance(leaf, Opaque)]
    assert found.text == part
    assert set(found.columns) == columns
    assert columns <= columns_of(predicate)


def leaves(predicate):
    match predicate:
        case And(parts) | Or(parts):
            return [leaf for part in parts for leaf in leaves(part)]
        case Not(part):
            return leaves(part)
        case _:
            return [predicate]


def test_text_that_is_no_sql_is_refused_even_then():
    for text in ("a = ", "", "a = 0x10", "a = 1; b = 2"):
        with pytest.raises(BadPredicate):
            parse_where(text, opaque=True)


@pytest.mark.parametrize("text", ["a LIKE 'x!' ESCAPE '!'", "a LIKE 'x' ESCAPE 'ab'", "a LIKE 'x' ESCAPE ''"])
def test_a_pattern_that_ends_in_its_escape_is_refused(text):
    with pytest.raises(BadPredicate, match="escape"):
        parse_where(text)
