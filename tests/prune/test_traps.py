"""The traps of pruning by statistics that the evaluator itself can fall into, by their numbers in the trap list."""

from __future__ import annotations

import math
import struct
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pytest

from tests.prune.columns import C, bloom_of, column, kept, must, verdict
from underlay.errors import BadPredicate
from underlay.prune import (
    AmbiguousIntegers,
    And,
    Between,
    Binary,
    Cause,
    ColumnBounds,
    Compare,
    Decimals,
    Floats,
    In,
    Instant,
    Integers,
    Op,
    Text,
    Times,
    Unit,
    Unordered,
    evaluate,
)

DOUBLE = Floats(64)
NAN = math.nan


@pytest.mark.parametrize("where", ["c > 2", "c >= 2", "c = 'nan'::double", "c IN (7, CAST('NaN' AS DOUBLE))"])
def test_t1_a_block_that_may_hold_nan_is_kept(where):
    assert kept(where, column(DOUBLE, (1.0, 1.0), (1.0, 1.0), may_hold_nan=[True, False])) == [True, False]


@pytest.mark.parametrize("where", ["c < 1", "c <= 0.5", "c = 2", "c BETWEEN 2 AND 3", "c > 'nan'::double"])
def test_t1_nan_is_neither_less_nor_equal_to_a_number(where):
    assert kept(where, column(DOUBLE, (1.0, 1.0), may_hold_nan=True)) == [False]


def test_t2_a_nan_bound_is_ignored_alone():
    bounds = column(DOUBLE, (1.0, NAN), (NAN, 1.0), may_hold_nan=False)
    assert kept("c < 5", bounds) == [True, True]
    assert kept("c < 1", bounds) == [False, True]
    assert kept("c > 2", bounds) == [True, True]
    assert kept("c = 2", bounds) == [True, False]


def test_t3_no_bounds_means_unknown():
    bounds = column(DOUBLE, (None, None), null_count=[1], value_count=[2])
    assert kept("c > 2", bounds) == kept("c < 2", bounds) == kept("c IS NOT NULL", bounds) == [True]


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_t5_the_zeros_are_equal(zero):
    bounds = column(DOUBLE, (-0.0, -0.0), (0.0, 0.0), (-0.0, 5.0), (-5.0, -0.0), may_hold_nan=False)
    assert kept(Compare(C, Op.EQ, zero), bounds) == [True] * 4
    assert kept(Compare(C, Op.GE, zero), bounds) == [True] * 4
    assert kept(Compare(C, Op.LT, zero), bounds) == [False, False, False, True]


@pytest.mark.parametrize(("domain", "form"), [(Floats(32), "<f"), (DOUBLE, "<d")])
def test_t6_a_bloom_filter_is_asked_for_both_zeros(domain, form):
    bloom = bloom_of({struct.pack(form, -0.0)}, {struct.pack(form, 0.0)}, {struct.pack(form, 7.0)})
    bounds = column(domain, *[(-1.0, 9.0)] * 3, bloom=bloom, may_hold_nan=False)
    assert kept("c = 0", bounds) == kept("c = -0.0", bounds) == [True, True, False]


def test_t6_a_bloom_filter_is_not_asked_for_nan():
    bounds = column(DOUBLE, (-1.0, 9.0), bloom=bloom_of(set()))
    assert kept("c = 'nan'::double", bounds) == [True]
    assert kept("c IN (1e0, CAST('nan' AS DOUBLE))", bounds) == [True]


def test_t7_the_filter_is_asked_in_the_width_of_the_file():
    seven = (7).to_bytes(4, "little")
    bounds = column(Integers(32), (0, 100), bloom=bloom_of({seven}))
    assert kept("c = 7", bounds) == [True]
    assert Cause.BLOOM in verdict("c = 8", bounds).counts()
    assert Cause.NEVER in verdict("c = 4294967303", bounds).counts()


def test_t8_a_float_column_meets_a_decimal_literal_as_float_or_double():
    single = struct.unpack("<f", struct.pack("<f", 0.1))[0]
    bounds = column(Floats(32), (single, single), (0.2, 0.2), may_hold_nan=False)
    for where in ("c = 0.1", "c > 0.1", "c >= 0.1", "c <= 0.1", "c = 1e-1", "c = '0.1'", "c IN (0.1, 9)"):
        assert kept(where, bounds)[0], where
    assert kept("c = 0.1", bounds) == [True, False]


def test_t8_a_bigint_column_meets_a_double_as_a_double():
    bounds = column(Integers(64), (2**53 + 1, 2**53 + 1), (2**53 + 99, 2**53 + 99))
    assert kept(Compare(C, Op.EQ, 2.0**53), bounds) == [True, False]
    assert kept(Compare(C, Op.EQ, 2**53), bounds) == [False, False]


def test_t8_text_is_rounded_to_the_column_by_some_engines():
    assert kept("c = '1.5'", column(Integers(32), (2, 2), (1, 1), (3, 3))) == [True, True, False]
    assert kept("c = 1.5", column(Integers(32), (1, 2))) == [False]
    assert kept("c = '0.125'", column(Decimals(9, 2, 4, big_endian=False), (13, 13), (14, 14))) == [True, False]
    assert kept("c = '2020-01-01 12:00:00'", column(Times(Unit.DAY, 32), (18262, 18262))) == [True]
    assert kept("c = TIMESTAMP '2020-01-01 12:00:00'", column(Times(Unit.DAY, 32), (18262, 18262))) == [False]


def test_t9_cut_text_bounds_keep_what_lies_inside_them():
    bounds = column(Text(), ("b" * 64, "b" * 63 + "c"))
    assert kept(Compare(C, Op.GT, "b" * 60), bounds) == [True]
    assert kept(Compare(C, Op.EQ, "b" * 100), bounds) == [True]
    assert kept(Compare(C, Op.EQ, "b" * 63), bounds) == [False]


def test_t10_edges_without_a_successor_have_no_upper_bound():
    bounds = column(Text(), ("\U0010ffff" * 16, None), ("\ud7ff" * 16, "\ud7ff" * 15 + "\ue000"))
    assert kept(Compare(C, Op.EQ, "\U0010ffff" * 40), bounds) == [True, False]
    assert kept(Compare(C, Op.EQ, "\ud7ff" * 40), bounds) == [False, True]
    assert kept(Compare(C, Op.GT, b"\xff" * 39), column(Binary(), (b"\xff" * 40, None))) == [True]


def test_t13_microsecond_literals_against_millisecond_columns():
    at = 1_577_836_800_123
    bounds = column(Times(Unit.MILLISECOND), (at, at), (at + 1, at + 1))
    assert kept("c > '2020-01-01 00:00:00.123456'", bounds) == [False, True]
    assert kept("c > TIMESTAMP '2020-01-01 00:00:00.123456'", bounds) == [False, True]
    assert kept("c <= TIMESTAMP '2020-01-01 00:00:00.123456'", bounds) == [True, False]
    assert kept("c = TIMESTAMP '2020-01-01 00:00:00.123456'", bounds) == [False, False]


@pytest.mark.parametrize("unit", [Unit.SECOND, Unit.MILLISECOND, Unit.MICROSECOND, Unit.NANOSECOND])
def test_t14_one_instant_in_every_unit(unit):
    at = 1_577_836_800 * 10**9 // unit.value
    bounds = column(Times(unit), (at, at), (at + 1, at + 1), (at - 1, at - 1))
    assert kept("c = TIMESTAMPTZ '2020-01-01 01:00:00+01:00'", bounds) == [True, False, False]
    with pytest.raises(BadPredicate):  # engines ignore the offset of a TIMESTAMP, so it is left to them
        kept("c = TIMESTAMP '2020-01-01 01:00:00+01:00'", bounds)
    assert kept("c = DATE '2020-01-01'", bounds) == [True, False, False]
    assert kept("c > '2020-01-01'", bounds) == [False, True, False]


def test_t14_literals_beyond_the_nanosecond_range_do_not_overflow():
    edges = column(Times(Unit.NANOSECOND), (-(2**63), 2**63 - 1))
    assert kept("c < DATE '1677-01-01'", edges) == kept("c = DATE '2262-04-12'", edges) == [False]
    assert kept("c >= DATE '1677-09-22'", edges) == kept("c < DATE '9999-12-31'", edges) == [True]


def test_t14_a_timestamp_literal_with_nanoseconds_is_cut_by_engines():
    at = 1_577_836_800_123_456_000
    bounds = column(Times(Unit.NANOSECOND), (at, at), (at + 789, at + 789), (at + 2000, at + 2000))
    assert kept("c = TIMESTAMP '2020-01-01 00:00:00.123456789'", bounds) == [True, True, False]
    assert kept("c = TIMESTAMP_NS '2020-01-01 00:00:00.123456789'", bounds) == [False, True, False]
    assert kept(Compare(C, Op.EQ, Instant(at + 789)), bounds) == [False, True, False]


def test_t17_an_offset_with_seconds_is_exact():
    at = (date(1850, 6, 1) - date(1970, 1, 1)).days * 86_400
    bounds = column(Times(Unit.SECOND), (at, at), (at + 28, at + 28))
    assert kept("c = '1850-06-01 00:53:28+00:53:28'", bounds) == [True, False]


@pytest.mark.parametrize("bits", [32, 64])
def test_t21_unsigned_integers_compare_unsigned(bits):
    bounds = column(Integers(bits, signed=False), (1, 2 ** (bits - 1) + 5))
    assert kept(f"c > {2 ** (bits - 1) - 1}", bounds) == kept("c < 2", bounds) == [True]
    assert kept(f"c > {2 ** (bits - 1) + 5}", bounds) == kept("c < 1", bounds) == [False]


def test_t21_integers_of_unknown_sign_are_dropped_only_when_both_signs_agree():
    wide = column(AmbiguousIntegers(32), (1, 2**31 + 5 - 2**32))
    assert kept("c > 2147483647", wide) == kept("c < 2", wide) == kept("c = 5", wide) == [True]
    low = column(AmbiguousIntegers(32), (-5, -1), (5, 9))
    assert kept("c = 3000000000", low) == [False, False]
    assert kept("c = 4294967295", low) == [True, False]
    assert kept("c = -2", low) == kept("c < 0", low) == [True, False]
    assert kept("c = 4294967296", low) == [False, False]


def test_t21_signed_bounds_of_an_unsigned_column_are_not_used():
    assert kept("c > 100", column(Integers(32, signed=False), (-3, 5))) == [True]


def test_t22_decimals_in_bytes_are_signed_and_of_any_length():
    bounds = column(Decimals(20, 2, 2), (b"\xff\x9c", b"\x00\x64"))
    for where in ("c = -1", "c = 1.000", "c > -0.995", "c < -0.995", "c = 0"):
        assert kept(where, bounds) == [True], where
    assert kept("c = -0.995", bounds) == kept("c > 1", bounds) == [False]
    mixed = column(Decimals(30, 2, None), (b"\xff", b"\x00\xff"), (b"\x80\x00\x00", b"\x00"))
    assert kept("c = 2.55", mixed) == [True, False]
    assert kept("c < -0.01", mixed) == [False, True]


def test_t22_decimal_filters_are_asked_only_where_there_is_one_encoding():
    wanted = (-100).to_bytes(9, "big", signed=True)
    fixed = column(Decimals(20, 2, 9), (None, None), (None, None), bloom=bloom_of({wanted}, set()))
    assert kept("c = -1.0", fixed) == [True, False]
    varying = column(Decimals(20, 2, None), (None, None), bloom=bloom_of(set()))
    assert kept("c = -1.0", varying) == [True]


def test_t23_inverted_bounds_are_both_ignored():
    bounds = column(Integers(64), (900, 100))
    for where in ("c < 500", "c > 1000", "c = 5", "c IN (1, 2)", "c BETWEEN 1 AND 2"):
        assert kept(where, bounds) == [True], where


def test_t24_null_counts_that_are_missing_or_absurd_are_unknown():
    bounds = column(
        Integers(32),
        *[(None, None)] * 5,
        null_count=[0, 0, -1, 4, 3],
        has_null_count=[True, False, True, True, True],
        value_count=[3] * 5,
    )
    assert kept("c IS NULL", bounds) == [False, True, True, True, True]
    assert kept("c IS NOT NULL", bounds) == [True, True, True, True, False]
    assert kept("c = 5", bounds) == [True, True, True, True, False]


def test_t24_all_null_with_a_bound_is_a_contradiction_and_kept():
    assert kept("c IS NOT NULL", column(Integers(32), (5, 5), null_count=[3], value_count=[3])) == [True]


@pytest.mark.parametrize(
    "where", ["c = NULL", "c < NULL", "c IN (NULL)", "c BETWEEN NULL AND 5", "c BETWEEN 5 AND NULL"]
)
def test_t24_a_comparison_with_null_is_never_true(where):
    assert verdict(where, column(Integers(32), (5, 5), (None, None))).counts() == {Cause.NEVER: 2}


def test_t24_null_in_a_list_adds_nothing():
    assert kept("c IN (5, NULL)", column(Integers(32), (5, 5), (6, 6))) == [True, False]


def test_t25_nested_leaves_prove_nothing():
    bounds = column(Integers(32), (5, 5), null_count=[0], value_count=[1], is_nested=True, bloom=bloom_of(set()))
    for where in ("c = 99", "c IS NULL", "c IS NOT NULL", "c < 'x'", "c IN (1)"):
        assert kept(where, bounds) == [True], where
        assert must(where, bounds) == [False], where
    for where in ("c <> 5", "NOT c > 9", "c IS DISTINCT FROM 5", "c NOT IN (5)"):
        assert (kept(where, bounds), must(where, bounds)) == ([True], [False])
    assert kept("c = NULL", bounds) == [False]


def test_t26_a_block_without_statistics_stays_beside_blocks_with_them():
    assert kept("c > 9", column(Integers(32), (1, 5), (None, None), (None, 5), (1, None))) == [False, True, False, True]


def test_t28_text_is_compared_as_utf8_bytes():
    bounds = column(Text(), ("\uffff", "\uffff"), ("\U00010000", "\U00010000"))
    assert kept(Compare(C, Op.LT, "\U00010000"), bounds) == [True, False]
    assert kept(Compare(C, Op.GT, "\uffff"), bounds) == [False, True]
    assert kept("c = 'é'", column(Text(), ("e\u0301", "e\u0301"), ("é", "é"))) == [False, True]
    assert kept("c = 'a'", column(Text(), ("A", "A"), ("a ", "a "), ("a", "a"))) == [False, False, True]


def test_t28_trailing_nuls_count():
    bounds = column(Text(), ("a", "a"), ("a\0", "a\0"))
    assert kept(Compare(C, Op.EQ, "a\0"), bounds) == [False, True]
    assert kept(Between(C, "a", "a\0"), bounds) == [True, True]
    assert kept(In(C, ("a\0", "x")), bounds) == [False, True]


def test_t28_bounds_that_are_no_utf8_are_compared_as_bytes():
    bounds = column(Text(), (b"\xff", b"\xff\xfe"))
    assert verdict("c = 'a'", bounds).reason(0) == r"c = 'a': min is '\xff'"


def test_t38_types_without_an_order_ignore_their_bounds():
    assert kept("c > 5", column(Unordered("interval"), (1, 2))) == [True]


@pytest.mark.parametrize(
    ("domain", "literal"),
    [
        (Integers(32), "x"),
        (Integers(32), b"\1"),
        (Integers(32), True),
        (Integers(32), date(2020, 1, 1)),
        (Integers(32), "nan"),
        (Text(), 5),
        (Text(), b"a"),
        (Text(), "\ud800"),
        (Binary(), 5),
        (Binary(), "\\xAB"),
        (DOUBLE, "x"),
        (DOUBLE, datetime(2020, 1, 1)),
        (Times(Unit.SECOND), 5),
        (Times(Unit.SECOND), "2020-13-01"),
        (Decimals(9, 2, 4), "1_0"),
        (Integers(64), Decimal("1e999999")),
    ],
)
def test_a_literal_of_another_kind_is_refused_with_the_column(domain, literal):
    with pytest.raises(BadPredicate, match=r"^c: ") as caught:
        verdict(Compare(C, Op.LT, literal), column(domain, (None, None)))
    assert caught.value.place == "c"


def test_a_signalling_nan_is_no_bound_and_no_warning():
    signalling = np.array([0x7FA00000], np.uint32).view(np.float32)
    bounds = ColumnBounds.of(Floats(32), block_count=1, minimum=signalling, maximum=signalling, may_hold_nan=False)
    assert evaluate(And((Compare(("c",), Op.GT, 2),)), {("c",): bounds}, block_count=1).kept.all()
