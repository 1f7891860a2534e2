"""The verdict as a caller sees it: order of predicates, reasons, filters, errors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.prune.columns import C, bloom_of, column, verdict
from underlay.errors import BadPredicate, UnknownColumn
from underlay.prune import (
    Addresses,
    AmbiguousIntegers,
    And,
    Cause,
    ColumnBounds,
    Decimals,
    Floats,
    Integers,
    Text,
    Times,
    Unit,
    col,
    evaluate,
)
from underlay.prune.parse.sql import parse_where


def test_no_predicate_keeps_every_block_with_rows():
    found = evaluate(And(()), {}, block_count=3, row_count=[5, 0, 1])
    assert found.kept.tolist() == [True, False, True]
    assert found.reason(1) == "the block has no rows"
    assert found.counts() == {Cause.ROWLESS: 1}


def test_the_first_predicate_that_proves_it_is_named():
    columns = {("a",): column(Integers(32), (1, 2), (8, 9)), ("b",): column(Integers(32), (1, 2), (1, 2))}
    found = evaluate(parse_where("a > 5 AND b > 5"), columns, block_count=2)
    assert found.parts.tolist() == [0, 1]
    assert found.reason(0) == "a > 5: max is 2"
    assert found.reason(1) == "b > 5: max is 2"


@pytest.mark.parametrize(
    ("where", "bounds", "reason"),
    [
        (
            "c >= TIMESTAMP '2024-01-01'",
            column(Times(Unit.MICROSECOND), (0, 1_704_067_199_000_000)),
            "c >= TIMESTAMP '2024-01-01 00:00:00': max is 2023-12-31 23:59:59",
        ),
        ("c < DATE '1970-01-01'", column(Times(Unit.DAY, 32), (1, 2)), "c < DATE '1970-01-01': min is 1970-01-02"),
        ("c = 5", column(Integers(32), (6, 7)), "c = 5: min is 6"),
        ("c IN (1, 9)", column(Integers(32), (5, 6)), "c IN (1, 9): nothing that matches lies between min 5 and max 6"),
        ("c = 1.5", column(Integers(32), (5, 6)), "c = 1.5: no int32 can match"),
        ("c = 'z'", column(Text(), ("a", "b")), "c = 'z': max is 'b'"),
        ("c > 2.00", column(Decimals(9, 2, 4), (-5, 150)), "c > 2.00: max is 1.50"),
        ("c > '9.9.9.9'", column(Addresses(), (0, 2**24)), "c > '9.9.9.9': max is 1.0.0.0"),
        ("c > 9e9", column(Floats(32), (0.0, 0.5), may_hold_nan=False), "c > 9000000000.0e0: max is 0.5"),
        (
            "c = 'nan'::double",
            column(Floats(64), (0.0, 1.0), may_hold_nan=False),
            "c = CAST('nan' AS DOUBLE): no value is NaN",
        ),
        (
            "c = 5",
            column(AmbiguousIntegers(32), (-9, -7)),
            "c = 5: nothing that matches lies between min -9 or 4294967287 and max -7 or 4294967289",
        ),
        ("c IS NULL", column(Integers(32), (5, 6), null_count=[0]), "c IS NULL: null count is 0"),
        ("c = 5", column(Integers(32), (None, None), null_count=[7], value_count=[7]), "c = 5: all 7 values are null"),
        ("c = 5", column(Integers(32), (1, 9), bloom=bloom_of(set())), "c = 5: the Bloom filter rules it out"),
        ("c = 5", column(Integers(32), (1, 9)), "kept: nothing proves that no row matches"),
    ],
)
def test_a_reason_carries_the_numbers(where, bounds, reason):
    assert verdict(where, bounds).reason(0) == reason


def test_an_or_that_drops_names_each_branch():
    columns = {("a",): column(Integers(32), (1, 2), (1, 9)), ("b",): column(Integers(32), (7, 8), (7, 8))}
    found = evaluate(parse_where("a = 5 OR (b < 3 AND a > 0) OR NOT b > 4"), columns, block_count=2)
    assert found.kept.tolist() == [False, True]
    assert found.counts() == {Cause.BRANCHES: 1}
    assert found.reason(0) == "no branch can match: a = 5: max is 2; b < 3: min is 7; NOT b > 4: min is 7"
    many = evaluate(parse_where(" OR ".join(f"a = {n}" for n in range(20, 30))), columns, block_count=2)
    assert many.reason(0).endswith("; a = 23: max is 2; and 6 more")


def test_a_constant_says_that_it_is_never_true():
    found = evaluate(parse_where("c = 5 AND FALSE"), {C: column(Integers(32), (1, 9))}, block_count=1)
    assert found.reason(0) == "FALSE: never true"
    assert not evaluate(parse_where("NULL OR FALSE"), {}, block_count=1).kept.any()
    assert evaluate(parse_where("NOT FALSE"), {}, block_count=1).must.all()


def test_a_tree_is_judged_without_a_conjunction_around_it():
    bounds = column(Integers(32), (1, 2), (5, 9), null_count=[0, 0], value_count=[2, 2])
    found = evaluate(~(col("c") > 3) | col("c").is_null(), {C: bounds}, block_count=2)
    assert (found.kept.tolist(), found.must.tolist()) == ([True, False], [True, False])


def test_a_block_without_rows_is_dropped_and_matches_nothing_in_full():
    bounds = column(Integers(32), (1, 2), (1, 2), null_count=[0, 0], value_count=[0, 2])
    found = evaluate(parse_where("c > 0"), {C: bounds}, block_count=2, row_count=[0, 2])
    assert (found.kept.tolist(), found.must.tolist()) == ([False, True], [False, True])
    assert evaluate(And(()), {}, block_count=2, row_count=[0, 2]).must.tolist() == [False, True]


def test_filters_are_not_asked_for_blocks_that_another_branch_keeps():
    bloom = bloom_of(set(), set())
    columns = {C: column(Integers(64), (1, 9), (1, 9), bloom=bloom), ("d",): column(Integers(64), (1, 1), (2, 2))}
    found = evaluate(parse_where("d = 1 OR c = 5"), columns, block_count=2)
    assert found.kept.tolist() == [True, False]
    assert bloom.asked == [((5).to_bytes(8, "little"), [1])]
    assert "Bloom" in found.reason(1)


def test_opaque_columns_are_not_looked_up_and_others_are():
    opaque = parse_where("abs(x) = 1", opaque=True)
    assert evaluate(opaque, {}, block_count=1).kept.all()
    with pytest.raises(UnknownColumn):
        evaluate(parse_where("TRUE OR x = 1"), {}, block_count=1)


def test_a_long_list_is_cut_in_the_reason():
    reason = verdict(f"c IN ({', '.join(map(str, range(1000)))})", column(Integers(32), (5000, 6000))).reason(0)
    assert reason.endswith("…: min is 5000")
    assert len(reason) < 150


def test_filters_are_asked_only_for_blocks_that_bounds_and_earlier_predicates_left():
    bloom = bloom_of({(5).to_bytes(8, "little")}, set(), set(), set())
    bounds = column(Integers(64), (1, 9), (1, 9), (7, 9), (1, 9), bloom=bloom)
    other = column(Integers(64), (1, 1), (1, 1), (1, 1), (0, 0))
    found = evaluate(parse_where("d = 1 AND c = 5"), {C: bounds, ("d",): other}, block_count=4)
    assert found.kept.tolist() == [True, False, False, False]
    assert bloom.asked == [((5).to_bytes(8, "little"), [0, 1])]


def test_a_list_is_dropped_by_a_filter_only_when_every_value_is_missing():
    bloom = bloom_of({b"a"}, {b"b"}, {b"z"})
    bounds = column(Text(), *[("a", "z")] * 3, bloom=bloom)
    assert verdict("c IN ('a', 'b', NULL)", bounds).kept.tolist() == [True, True, False]
    assert bloom.asked == [(b"a", [0, 1, 2]), (b"b", [1, 2])]


def test_ranges_never_ask_a_filter():
    bloom = bloom_of(set())
    assert verdict("c >= 5 AND c BETWEEN 1 AND 9", column(Integers(32), (1, 9), bloom=bloom)).kept.all()
    assert bloom.asked == []


def test_an_unknown_column_is_named_with_the_known_ones():
    with pytest.raises(UnknownColumn, match="no column x") as caught:
        evaluate(parse_where("x = 1"), {C: column(Integers(32), (1, 2))}, block_count=1)
    assert caught.value.hint == "Known columns: c."
    with pytest.raises(UnknownColumn, match="did you mean c"):
        evaluate(parse_where("C = 1"), {C: column(Integers(32), (1, 2))}, block_count=1)


def test_a_dotted_path_is_not_a_name_with_a_dot():
    columns = {("a", "b"): column(Integers(32), (1, 2)), ("a.b",): column(Integers(32), (5, 6))}
    assert not evaluate(parse_where("a.b = 5"), columns, block_count=1).kept[0]
    assert evaluate(parse_where('"a.b" = 5'), columns, block_count=1).kept[0]


def test_arrays_of_another_length_are_refused():
    with pytest.raises(ValueError, match="maximum has 2 entries for 1 blocks"):
        ColumnBounds.of(Integers(32), block_count=1, maximum=np.array([1, 2]))
    with pytest.raises(ValueError, match="has_null_count has 2 entries"):
        ColumnBounds.of(Integers(32), block_count=1, null_count=[1], has_null_count=[True, True])
    with pytest.raises(ValueError, match="c has 1 blocks, not 2"):
        evaluate(parse_where("c = 1"), {C: column(Integers(32), (1, 2))}, block_count=2)
    with pytest.raises(ValueError, match="row_count"):
        evaluate(And(()), {}, block_count=2, row_count=[1])


def test_no_blocks_is_a_verdict_on_no_blocks():
    empty = ColumnBounds.of(Integers(32), block_count=0, minimum=np.array([], dtype=np.int64))
    found = evaluate(parse_where("c = 1 AND c IN (1, 2) AND c IS NULL"), {C: empty}, block_count=0)
    assert found.kept.tolist() == []
    assert found.counts() == {}


def test_a_bad_literal_is_refused_even_when_no_block_is_left():
    with pytest.raises(BadPredicate, match="c: a column of type int32 cannot be compared with str 'x'"):
        verdict("c = NULL AND c = 'x'", column(Integers(32), (1, 2)))
