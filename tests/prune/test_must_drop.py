"""Pruning is not vacuous: for every type and form there is a block that must go, one that must stay, one in full."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from tests.prune.columns import C, column, verdict
from underlay.prune import (
    Addresses,
    AmbiguousIntegers,
    And,
    Between,
    Binary,
    Booleans,
    Cause,
    Characters,
    Compare,
    Decimals,
    FixedBinary,
    Floats,
    In,
    Integers,
    IsDistinct,
    IsNotDistinct,
    IsNotNull,
    IsNull,
    Like,
    Not,
    NotIn,
    Op,
    Opaque,
    Or,
    StartsWith,
    Text,
    Times,
    Unit,
    Unordered,
    Uuids,
)

MS = 1_577_836_800_000
"""2020-01-01 in milliseconds."""

# domain, the bounds of a block, a literal below it, its own minimum, a literal above it
TYPES = {
    "int32": (Integers(32), (5, 9), 4, 5, 10),
    "int64": (Integers(64), (5, 9), Decimal("4.5"), 5, 9.5),
    "uint32": (Integers(32, signed=False), (2**31, 2**32 - 1), 5, 2**31, 2**32),
    "uint64": (Integers(64, signed=False), (2**63, 2**64 - 1), 5, 2**63, 2**64),
    "ambiguous": (AmbiguousIntegers(32), (5, 9), 4, 5, 10),
    "float": (Floats(32), (1.5, 2.5), Decimal("1.4"), 1.5, 2.6),
    "double": (Floats(64), (1.5, 2.5), Decimal("1.4"), 1.5, 2.6),
    "text": (Text(), ("b", "d"), "az", "b", "da"),
    "binary": (Binary(), (b"\x80", b"\xf0"), b"\x7f\xff", b"\x80", b"\xf0\x00"),
    "fixed": (FixedBinary(2), (b"bb", b"dd"), b"ba", b"bb", b"de"),
    "uuid": (Uuids(), (bytes([8] * 16), bytes([9] * 16)), UUID(int=5), bytes([8] * 16), "f" * 32),
    "date": (Times(Unit.DAY, 32), (18262, 18263), datetime(2019, 12, 31, 23), date(2020, 1, 1), date(2020, 1, 3)),
    "date_ms": (Times(Unit.MILLISECOND), (MS, MS + 1), "2019-12-31", date(2020, 1, 1), "2020-01-01 00:00:00.1"),
    "seconds": (Times(Unit.SECOND), (5, 9), "1970-01-01 00:00:04", datetime(1970, 1, 1, 0, 0, 5), "1970-01-02"),
    "micros": (Times(Unit.MICROSECOND), (5, 9), date(1969, 1, 1), datetime(1970, 1, 1, microsecond=5), "1970-01-02"),
    "nanos": (
        Times(Unit.NANOSECOND),
        (5000, 5009),
        date(1969, 1, 1),
        datetime(1970, 1, 1, microsecond=5),
        "1970-01-02",
    ),
    "decimal": (Decimals(9, 2, 4, big_endian=False), (100, 200), Decimal("0.999"), Decimal("1.000"), 3),
    "decimal_flba": (Decimals(20, 2, 2), (b"\xff\x9c", b"\x00\x64"), Decimal("-1.001"), -1, Decimal("1.01")),
    "decimal_bytes": (Decimals(20, 2, None), (b"\x9c", b"\x00\x80"), Decimal("-1.001"), -1, Decimal("1.29")),
    "ipv4": (Addresses(), (2**31, 2**31 + 9), "127.255.255.255", "128.0.0.0", "192.0.2.1"),
    "char": (Characters(), (66, 68), "A", "B", "E"),
}
types = pytest.mark.parametrize("name", TYPES)


def dropped_for(predicate, bounds):
    found = verdict(predicate, bounds)
    return None if found.kept[0] else Cause(int(found.causes[0]))


@types
def test_a_literal_above_the_block_drops_it_from_equality_and_greater(name):
    domain, block, _, _, above = TYPES[name]
    bounds = column(domain, block, may_hold_nan=False)
    past_the_type = domain in (Integers(32, signed=False), Integers(64, signed=False))
    expected = Cause.NEVER if past_the_type else Cause.BELOW
    assert dropped_for(Compare(C, Op.EQ, above), bounds) in (expected, Cause.NEVER)
    assert dropped_for(Compare(C, Op.GT, above), bounds) is expected
    assert dropped_for(Compare(C, Op.GE, above), bounds) is expected
    assert dropped_for(Compare(C, Op.LT, above), bounds) is None
    assert dropped_for(Compare(C, Op.LE, above), bounds) is None


@types
def test_a_literal_below_the_block_drops_it_from_equality_and_less(name):
    domain, block, below, _, _ = TYPES[name]
    bounds = column(domain, block)
    assert dropped_for(Compare(C, Op.EQ, below), bounds) in (Cause.ABOVE, Cause.NEVER)
    assert dropped_for(Compare(C, Op.LT, below), bounds) is Cause.ABOVE
    assert dropped_for(Compare(C, Op.LE, below), bounds) is Cause.ABOVE
    assert dropped_for(Compare(C, Op.GT, below), bounds) is None
    assert dropped_for(Compare(C, Op.GE, below), bounds) is None


@types
def test_the_minimum_itself_matches_all_but_strictly_less(name):
    domain, block, _, minimum, _ = TYPES[name]
    bounds = column(domain, block)
    assert dropped_for(Compare(C, Op.LT, minimum), bounds) is Cause.ABOVE
    for op in (Op.EQ, Op.LE, Op.GE):
        assert dropped_for(Compare(C, op, minimum), bounds) is None


@types
def test_lists_and_ranges_beside_the_block_drop_it(name):
    domain, block, below, minimum, above = TYPES[name]
    bounds = column(domain, block, may_hold_nan=False)
    assert dropped_for(In(C, (above, below)), bounds) is not None
    assert dropped_for(In(C, (below, minimum, above)), bounds) is None
    assert dropped_for(Between(C, below, below), bounds) in (Cause.ABOVE, Cause.NEVER)
    assert dropped_for(Between(C, below, above), bounds) is None
    assert dropped_for(Between(C, above, below), bounds) is Cause.NEVER


@types
def test_null_tests_use_the_null_count(name):
    domain, block, *_ = TYPES[name]
    assert dropped_for(IsNull(C), column(domain, block, null_count=[0])) is Cause.NO_NULLS
    assert dropped_for(IsNull(C), column(domain, block, null_count=[1])) is None
    nothing = column(domain, (None, None), null_count=[3], value_count=[3])
    assert dropped_for(IsNotNull(C), nothing) is Cause.ALL_NULL


def in_full(predicate, bounds):
    return verdict(predicate, bounds).must.tolist()


@types
def test_a_block_inside_what_matches_is_known_in_full(name):
    domain, block, below, minimum, above = TYPES[name]
    bounds = column(domain, block, may_hold_nan=False, null_count=[0], value_count=[3])
    for predicate in (
        Compare(C, Op.GE, minimum),
        Compare(C, Op.GT, below),
        Compare(C, Op.LT, above),
        Compare(C, Op.LE, above),
        Compare(C, Op.NE, above),
        Compare(C, Op.NE, below),
        Not(Compare(C, Op.LT, minimum)),
        Not(Compare(C, Op.GT, above)),
        Between(C, minimum, above),
        Not(Between(C, below, below)),
        NotIn(C, (below, above)),
        IsDistinct(C, above),
        IsNotNull(C),
        Or((Compare(C, Op.EQ, above), Compare(C, Op.LT, above))),
    ):
        assert in_full(predicate, bounds) == [True], str(predicate)
    for predicate in (
        Compare(C, Op.EQ, minimum),
        Compare(C, Op.GT, minimum),
        In(C, (minimum, below)),
        Between(C, above, below),
        IsNull(C),
        And((Compare(C, Op.GE, minimum), Opaque("?"))),
    ):
        assert in_full(predicate, bounds) == [False], str(predicate)


@types
def test_a_block_of_one_value_matches_its_equality_in_full_and_drops_the_negation(name):
    domain, (minimum, _), _, literal, _ = TYPES[name]
    bounds = column(domain, (minimum, minimum), may_hold_nan=False, null_count=[0], value_count=[3])
    for predicate in (Compare(C, Op.EQ, literal), In(C, (literal, None)), IsNotDistinct(C, literal)):
        assert in_full(predicate, bounds) == [True], str(predicate)
        assert dropped_for(Not(predicate), bounds) is not None, str(predicate)
    for predicate in (Compare(C, Op.NE, literal), NotIn(C, (literal,)), IsDistinct(C, literal)):
        assert dropped_for(predicate, bounds) is Cause.GAP, str(predicate)


@types
def test_a_null_is_in_no_full_match(name):
    domain, block, _, minimum, _ = TYPES[name]
    for nulls in ({"null_count": [1], "value_count": [3]}, {}):
        bounds = column(domain, block, may_hold_nan=False, **nulls)
        assert in_full(Compare(C, Op.GE, minimum), bounds) == [False]
        assert in_full(IsNotNull(C), bounds) == [False]
    nothing = column(domain, (None, None), null_count=[3], value_count=[3])
    assert in_full(IsNull(C), nothing) == in_full(IsDistinct(C, minimum), nothing) == [True]
    assert in_full(Compare(C, Op.GE, minimum), nothing) == [False]


def test_whole_numbers_in_a_list_without_gaps_are_known_in_full():
    bounds = column(Integers(64), (5, 7), (5, 8), (-(2**63), 2**63 - 1), null_count=[0, 0, 0], value_count=[9, 9, 9])
    assert in_full(In(C, (7, 5, 6)), bounds) == [True, False, False]
    assert verdict(NotIn(C, (7, 5, 6)), bounds).kept.tolist() == [False, True, True]


def test_prefixes_prune_and_prove():
    bounds = column(Text(), ("ab", "ac"), ("b", "c"), ("a", "b"), null_count=[0, 0, 0], value_count=[9, 9, 9])
    for predicate in (StartsWith(C, "a"), Like(C, "a%"), Like(C, "a%%")):
        assert verdict(predicate, bounds).kept.tolist() == [True, False, True]
        assert in_full(predicate, bounds) == [True, False, False]
        assert verdict(Not(predicate), bounds).kept.tolist() == [False, True, True]
        assert in_full(Not(predicate), bounds) == [False, True, False]
    assert verdict(Like(C, "ab_%"), bounds).kept.tolist() == [True, False, True]
    assert not verdict(Like(C, "ab_%"), bounds).must.any()
    assert verdict(Like(C, "ab"), bounds).kept.tolist() == [True, False, True]


def test_booleans_prune_when_all_values_agree():
    bounds = column(Booleans(), (False, False), (False, True), (True, True))
    assert verdict("c = TRUE", bounds).kept.tolist() == [False, True, True]
    assert verdict("c < TRUE", bounds).kept.tolist() == [True, True, False]
    assert verdict("c >= 'false'", bounds).kept.tolist() == [True, True, True]


def test_types_without_an_order_prune_by_nulls_only():
    bounds = column(
        Unordered("int96"), (1, 2), (None, None), null_count=[0, 4], value_count=[4, 4], has_null_count=[True, True]
    )
    assert verdict("c = 99", bounds).kept.tolist() == [True, False]
    assert verdict("c IN (99, 'x')", bounds).kept.tolist() == [True, False]
    assert verdict("c IS NULL", bounds).kept.tolist() == [False, True]


def test_a_long_list_finds_the_gap_of_every_block():
    bounds = column(Integers(64), *((i, i + 3) for i in range(0, 1000, 10)))
    hits = In(C, tuple(range(5, 1000, 10)))
    assert set(verdict(hits, bounds).counts()) == {Cause.BELOW, Cause.GAP}
    assert not verdict(hits, bounds).kept.any()
    assert verdict(In(C, (*hits.values, 503)), bounds).kept.sum() == 1
