from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from underlay.local.dataset.arrow_filter import conjuncts, named_columns, split_filter
from underlay.prune import TRUE

A, B = pc.field("a"), pc.field("b")
SCHEMA = pa.schema(
    [("a", pa.int64()), ("b", pa.float64()), ("n", pa.timestamp("ns")), ("s", pa.struct([("x", pa.int64())]))]
)
LATE = pc.field("n") >= pa.scalar(1, pa.timestamp("ns"))


@pytest.mark.parametrize(
    "parts",
    [
        [A > 1],
        [A > 1, B < 2],
        [A > 1, (B < 2) | A.is_null(), pc.field("s", "x") == 3, A.isin([1, 2]), B.cast(pa.int32()) > 4],
        [pc.field("it's") == "x' y", LATE],
    ],
)
def test_a_conjunction_falls_into_its_parts(parts):
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part
    assert [str(part) for part in conjuncts(whole)] == [str(part) for part in parts]


def test_nesting_to_the_right_falls_apart_too():
    assert [str(part) for part in conjuncts((A > 1) & ((B > 2) & (A < 3)))] == ["(a > 1)", "(b > 2)", "(a < 3)"]


def test_what_is_no_conjunction_stays_whole():
    either = (A > 1) | ((B > 2) & (A < 3))
    assert [str(part) for part in conjuncts(either)] == [str(either)]


def test_a_name_that_breaks_the_text_stays_whole():
    odd = (pc.field("x\nend: 'and_kleene'\ny") > 1) & (B > 2)
    assert [str(part) for part in conjuncts(odd)] == [str(odd)]


def test_a_filter_that_translates_leaves_no_rest():
    split = split_filter((A > 1) & (B < 2), SCHEMA)
    assert (str(split.predicate), split.rest) == ("a > 1 AND b < 2.0e0", None)


def test_only_the_part_that_does_not_translate_is_left_to_arrow():
    split = split_filter((B > 2) & LATE, SCHEMA)
    assert (str(split.predicate), str(split.rest)) == ("b > 2.0e0", str(LATE))


def test_a_filter_without_a_known_part_is_all_rest():
    split = split_filter(LATE, SCHEMA)
    assert (split.predicate, str(split.rest)) == (TRUE, str(LATE))


def test_columns_of_an_expression_are_the_top_level_ones():
    assert named_columns(pc.field("s", "x") + A, SCHEMA) == {"s", "a"}


def test_a_column_by_number_may_be_any():
    assert named_columns(pc.field(0) > 1, SCHEMA) == {"a", "b", "n", "s"}
