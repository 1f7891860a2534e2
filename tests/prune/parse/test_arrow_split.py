from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from underlay.prune import TRUE, Compare, Op
from underlay.prune.parse.arrow import named_columns, split_filter

A, B = pc.field("a"), pc.field("b")
SCHEMA = pa.schema(
    [("a", pa.int64()), ("b", pa.float64()), ("n", pa.timestamp("ns")), ("s", pa.struct([("x", pa.float64())]))]
)
SUM = A + 1 > B
PRODUCT = A * 2 > B


@pytest.mark.parametrize("rest", [[SUM], [SUM, PRODUCT], [SUM, (B < 2) | PRODUCT, B.cast(pa.int32()) > 4]])
def test_only_the_conjuncts_that_do_not_translate_are_left_to_arrow(rest):
    whole, left = B > 2, rest[0]
    for part in rest:
        whole = whole & part
    for part in rest[1:]:
        left = left & part
    split = split_filter(whole, SCHEMA)
    assert (str(split.predicate), str(split.rest)) == ("b > 2", str(left))


def test_conjunctions_nested_to_the_right_fall_apart_too():
    split = split_filter((A > 1) & ((B > 2) & (SUM & (A < 3))), SCHEMA)
    assert (str(split.predicate), str(split.rest)) == ("a > 1 AND b > 2 AND a < 3", str(SUM))


def test_a_filter_that_translates_leaves_no_rest():
    split = split_filter((A > 1) & (B < 2.0), SCHEMA)
    assert (str(split.predicate), split.rest) == ("a > 1 AND b < 2.0e0", None)


def test_nanoseconds_leave_no_rest():
    split = split_filter(pc.field("n") >= pa.scalar(1, pa.timestamp("ns")), SCHEMA)
    assert (str(split.predicate), split.rest) == ("n >= TIMESTAMP_NS '1970-01-01 00:00:00.000000001'", None)


def test_a_float_inside_a_struct_follows_our_rules_for_nan():
    assert split_filter(pc.field("s", "x") >= 1.5, SCHEMA) == (Compare(("s", "x"), Op.GE, 1.5), None)


def test_a_filter_without_a_known_part_is_all_rest():
    split = split_filter(SUM | (A > 1), SCHEMA)
    assert (split.predicate, str(split.rest)) == (TRUE, str(SUM | (A > 1)))


def test_a_column_by_number_leaves_all_to_arrow():
    whole = (pc.field(0) > 1) & (B > 2)
    split = split_filter(whole, SCHEMA)
    assert (split.predicate, str(split.rest)) == (TRUE, str(whole))


def test_a_chain_of_thousands_is_split():
    whole = SUM
    for number in range(3_000):
        whole = whole & (number != A)
    split = split_filter(whole, SCHEMA)
    assert str(split.rest) == str(SUM)
    assert len(split.predicate.parts) == 3_000


def test_columns_of_an_expression_are_the_top_level_ones():
    assert named_columns(pc.field("s", "x") + A, SCHEMA) == {"s", "a"}


def test_a_column_whose_name_stands_only_inside_text_is_not_named():
    assert named_columns(pc.field("n") == "a > b", SCHEMA) == {"n"}


def test_a_column_by_number_may_be_any():
    assert named_columns(pc.field(0) > 1, SCHEMA) == {"a", "b", "n", "s"}


def test_filters_that_print_alike_are_told_apart():
    def listed(middle: int) -> pc.Expression:
        return pc.field("a").isin([*range(500), middle, *range(501, 1000)])

    first, second = listed(500), listed(5000)
    assert str(first) == str(second)
    assert split_filter(first, SCHEMA) == split_filter(first, SCHEMA) == split_filter(listed(500), SCHEMA)
    assert split_filter(second, SCHEMA) != split_filter(first, SCHEMA)


def test_a_filter_is_split_anew_for_other_columns():
    other = pa.schema({"a": pa.string()})
    assert split_filter(A > 1, SCHEMA).rest is None
    assert split_filter(A > 1, other) != split_filter(A > 1, SCHEMA)


def test_more_filters_than_are_remembered():
    for number in (*range(200), *range(200)):
        assert split_filter(number < A, SCHEMA) == (Compare(("a",), Op.GT, number), None)
