"""The traps of negations, lists, patterns and full matches, by their numbers in the trap list."""

from __future__ import annotations

import math
import struct

import pytest

from tests.prune.columns import C, column, kept, must
from underlay.errors import BadPredicate
from underlay.prune import (
    Between,
    Binary,
    Compare,
    Floats,
    In,
    Integers,
    Not,
    NotIn,
    Op,
    StartsWith,
    Text,
    Unordered,
    evaluate,
)
from underlay.prune.parse.sql import parse_where

DOUBLE = Floats(64)
NAN = math.nan


@pytest.mark.parametrize(
    "where",
    ["c <> 1", "NOT c < 2", "NOT c <= 1", "c NOT IN (1)", "isnan(c)", "NOT (c = 1 OR c < 0)", "c IS DISTINCT FROM 1"],
)
def test_t1_negations_keep_a_block_that_may_hold_nan(where):
    bounds = column(DOUBLE, (1.0, 1.0), (1.0, 1.0), may_hold_nan=[True, False], null_count=[0, 0], value_count=[2, 2])
    assert kept(where, bounds) == [True, False]


@pytest.mark.parametrize("where", ["NOT c > 2", "NOT c >= 2", "NOT c BETWEEN 2 AND 9", "NOT c < 'nan'::double"])
def test_t1_arrow_finds_nan_where_an_ordering_is_negated(where):
    assert kept(where, column(DOUBLE, (5.0, 9.0), may_hold_nan=True)) == [True]


@pytest.mark.parametrize(
    "where",
    ["c >= 1", "c <= 1", "c = 1", "c <> 2", "c IN (1, 2)", "c NOT IN (2)", "NOT c > 1", "NOT isnan(c)", "c <=> 1"],
)
def test_t1_no_block_that_may_hold_nan_matches_in_full(where):
    bounds = column(DOUBLE, (1.0, 1.0), (1.0, 1.0), may_hold_nan=[True, False], null_count=[0, 0], value_count=[2, 2])
    assert must(where, bounds) == [False, True]


@pytest.mark.parametrize("where", ["c < 'nan'::double", "c <= 'nan'::double", "c <> 'nan'::double", "NOT c > 'nan'"])
def test_t1_no_block_matches_a_comparison_with_nan_in_full(where):
    bounds = column(DOUBLE, (1.0, 1.0), may_hold_nan=False, null_count=[0], value_count=[2])
    assert (kept(where, bounds), must(where, bounds)) == ([True], [False])


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_t5_a_block_of_zeros_is_one_value(zero):
    bounds = column(
        DOUBLE, (-0.0, 0.0), (0.0, -0.0), (0.0, 5.0), may_hold_nan=False, null_count=[0] * 3, value_count=[2] * 3
    )
    assert must(Compare(C, Op.EQ, zero), bounds) == [True, True, False]
    assert kept(Compare(C, Op.NE, zero), bounds) == [False, False, True]
    assert must(Compare(C, Op.GE, zero), bounds) == [True, True, True]
    assert kept(NotIn(C, (zero,)), bounds) == [False, False, True]


def test_t8_a_double_in_a_list_or_range_makes_doubles_of_its_neighbours():
    last = 2**63 - 1
    bounds = column(Integers(64), (last, last), (9, 9), null_count=[0, 0], value_count=[1, 1])
    assert kept(In(C, (7.0, last - 1)), bounds) == [True, False]
    assert must(NotIn(C, (7.0, last - 1)), bounds) == [False, True]
    assert must(NotIn(C, (7, last - 1)), bounds) == [True, True]
    assert kept(Between(C, 7.0, last - 1), bounds) == [True, True]
    assert kept(Between(C, 7, last - 1), bounds) == [False, True]
    assert must(Not(Between(C, 7.0, last - 1)), bounds) == [False, False]


def test_t8_a_literal_that_some_engine_rounds_proves_no_full_match():
    single = struct.unpack("<f", struct.pack("<f", 0.1))[0]
    bounds = column(Floats(32), (single, single), may_hold_nan=False, null_count=[0], value_count=[1])
    for where in ("c = 0.1", "c <> 0.1", "c > 0.1", "c >= 0.1", "c <= 0.1", "c IN (0.1)", "c NOT IN (0.1)"):
        assert (kept(where, bounds), must(where, bounds)) == ([True], [False]), where


FIVES = {"null_count": [1, 0, 3], "value_count": [3, 3, 3]}
"""[5, null, 5], [5, 5, 5] and three nulls."""


@pytest.mark.parametrize(
    ("where", "may", "full"),
    [
        ("c <> 5", [False, False, False], [False, False, False]),
        ("NOT (c <=> 5)", [True, False, True], [False, False, True]),
        ("c <=> 5", [True, True, False], [False, True, False]),
        ("c IS DISTINCT FROM NULL", [True, True, False], [False, True, False]),
        ("c NOT IN (5, NULL)", [False, False, False], [False, False, False]),
        ("c NOT IN (6, NULL)", [False, False, False], [False, False, False]),
        ("c NOT IN (6)", [True, True, False], [False, True, False]),
        ("c IN (NULL)", [False, False, False], [False, False, False]),
        ("NOT c IN (NULL)", [False, False, False], [False, False, False]),
        ("c IN (5, NULL)", [True, True, False], [False, True, False]),
        ("NOT (c = 6 OR c IS NULL)", [True, True, False], [False, True, False]),
        ("NOT (c = NULL AND c = 5)", [False, False, False], [False, False, False]),
        ("NOT (c = NULL AND c = 6)", [True, True, False], [False, True, False]),
        ("c = 5 OR c IS NULL", [True, True, True], [False, True, True]),
        ("NULL OR c = 5", [True, True, False], [False, True, False]),
        ("NOT NULL", [False, False, False], [False, False, False]),
    ],
)
def test_t24_nulls_under_every_form(where, may, full):
    bounds = column(Integers(32), (5, 5), (5, 5), (None, None), **FIVES)
    assert (kept(where, bounds), must(where, bounds)) == (may, full)


@pytest.mark.parametrize(
    "where",
    ["c % 8 = 2", "abs(c - 25) = 25", "-c > -3", "CAST(c AS VARCHAR) > '5'", "c + 0 = 99", "upper(c) = 'A'", "c = d"],
)
def test_t27_what_computes_keeps_every_block_and_proves_none(where):
    bounds = column(Integers(32), (0, 49), null_count=[0], value_count=[50])
    for text in (where, f"NOT {where}", f"{where} OR c > 99", f"c >= 0 AND {where}"):
        found = evaluate(parse_where(text, opaque=True), {C: bounds}, block_count=1)
        assert (found.kept.tolist(), found.must.tolist()) == ([True], [False]), text
    assert not evaluate(parse_where(f"{where} AND c > 99", opaque=True), {C: bounds}, block_count=1).kept[0]
    assert evaluate(parse_where(f"{where} OR c >= 0", opaque=True), {C: bounds}, block_count=1).must[0]


TOP = "\U0010ffff"


@pytest.mark.parametrize(
    ("where", "may", "full"),
    [
        ("c LIKE 'a%'", [True, True, False, False], [True, False, False, False]),
        (r"c LIKE 'a\_b%' ESCAPE '\'", [True, True, False, False], [True, False, False, False]),
        (r"c LIKE 'a\_b%'", [True, True, False, False], [False, False, False, False]),
        ("c LIKE 'a!_c%' ESCAPE '!'", [False, True, False, False], [False, False, False, False]),
        ("c LIKE '%'", [True, True, True, True], [True, True, True, True]),
        ("c NOT LIKE '%'", [False, False, False, False], [False, False, False, False]),
        ("c LIKE ''", [False, True, False, False], [False, False, False, False]),
        ("c LIKE '%b'", [True, True, True, True], [False, False, False, False]),
        ("c LIKE 'a_b%'", [True, True, False, False], [False, False, False, False]),
        ("c LIKE 'b'", [False, True, True, False], [False, False, False, False]),
        ("c NOT LIKE 'a%'", [False, True, True, True], [False, False, True, True]),
        (f"starts_with(c, '{TOP}')", [False, False, False, True], [False, False, False, True]),
        (f"NOT starts_with(c, '{TOP}')", [True, True, True, False], [True, True, True, False]),
        ("c ILIKE 'zz%'", [True, True, True, True], [False, False, False, False]),
    ],
)
def test_t30_patterns_are_prefix_ranges_of_bytes(where, may, full):
    blocks = ("a_b", "a_bz"), ("", "b"), ("b", "d"), (TOP, TOP * 3)
    bounds = column(Text(), *blocks, null_count=[0] * 4, value_count=[9] * 4)
    found = evaluate(parse_where(where, opaque=True), {C: bounds}, block_count=4)
    assert (found.kept.tolist(), found.must.tolist()) == (may, full)


def test_t30_a_prefix_without_a_successor_is_open_above():
    bounds = column(Binary(), (b"\xff\xff", b"\xff\xff\xff"), (b"\xff", None), (b"a", b"b"), (b"\xff\xfe", b"\xff\xfe"))
    assert kept(StartsWith(C, b"\xff\xff"), bounds) == [True, True, False, False]
    assert kept(StartsWith(C, b"a\xff\xff"), bounds) == [False, False, True, False]
    assert kept(StartsWith(C, b"\xff\xfe"), bounds) == [False, True, False, True]


def test_t30_only_text_and_bytes_have_prefixes():
    for where in ("starts_with(c, '5')", "c LIKE '5%'", "c LIKE '5'"):
        with pytest.raises(BadPredicate, match=r"^c: "):
            kept(where, column(Integers(32), (1, 9)))
        assert kept(where, column(Unordered("interval"), (1, 9))) == [True]
