from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal

import pytest

from tests.index.segment_examples import file_entry, schema_of
from tests.plan.worlds import stored
from underlay.errors import UnknownColumn
from underlay.index.deletion_vectors import pack
from underlay.index.entry import FileEntry, Flag
from underlay.plan.answers import exact_row_count, lower_bound, maximum, minimum, upper_bound
from underlay.plan.part import Part
from underlay.plan.plan import BlockPlan, make_plan
from underlay.prune.parse.sql import parse_where
from underlay.schema.table_schema import TableSchema

SCHEMA = schema_of({"id": "int64", "name": "string", "real": "float64"})


def plan_of(entries: list[FileEntry], where: str = "true", schema: TableSchema = SCHEMA) -> BlockPlan:
    return make_plan([Part(segment=stored(entries, schema))], schema, parse_where(where))


def extremes(plan: BlockPlan, field: int) -> tuple[object, object]:
    low, high = minimum(plan, field), maximum(plan, field)
    return (None if low is None else low.as_py(), None if high is None else high.as_py())


def test_rows_are_counted_where_every_block_matches_in_full():
    entries = [file_entry("a", SCHEMA, {"id": [[1, 2], [5, 6]]})]
    assert exact_row_count(plan_of(entries)) == 4
    assert exact_row_count(plan_of(entries, "id >= 5")) == 2
    assert exact_row_count(plan_of(entries, "id >= 6")) is None
    assert exact_row_count(plan_of(entries, "id > 9")) == 0


def test_deleted_rows_do_not_count():
    """T34."""
    entries = [file_entry("a", SCHEMA, {"id": [[1, 2], [5, 6]]}, deleted=[0, 3])]
    assert exact_row_count(plan_of(entries)) == 2
    part = Part(segment=stored(entries, SCHEMA), deletes={0: pack([0, 1, 3])})
    assert exact_row_count(make_plan([part], SCHEMA)) == 1


def test_extremes_are_those_of_all_kept_blocks():
    entries = [file_entry("a", SCHEMA, {"id": [[4, 2], [None], [9]]}), file_entry("b", SCHEMA, {"id": [[3]]})]
    assert extremes(plan_of(entries), 1) == (2, 9)
    assert extremes(plan_of(entries, "id > 8"), 1) == (9, 9)


def test_extremes_are_unknown_with_deletions():
    """T34."""
    assert minimum(plan_of([file_entry("a", SCHEMA, {"id": [[1, 2]]}, deleted=[0])]), 1) is None


def test_extremes_are_unknown_when_a_bound_is_cut():
    """T11, T12."""
    entries = [file_entry("a", SCHEMA, {"name": [[b"k"], [b"k" * 100]]})]
    assert extremes(plan_of(entries), 2) == (None, None)


def test_extremes_are_unknown_where_nan_may_be():
    assert extremes(plan_of([file_entry("a", SCHEMA, {"real": [[1.0, math.nan]]})]), 3) == (None, None)
    assert extremes(plan_of([file_entry("a", SCHEMA, {"real": [[1.0, -0.5]]})]), 3) == (-0.5, 1.0)


def test_extremes_are_unknown_where_a_block_has_no_bounds():
    entries = [file_entry("a", SCHEMA, {"id": [[1]]}, clear=Flag.HAS_LOW), file_entry("b", SCHEMA, {"id": [[3]]})]
    assert extremes(plan_of(entries), 1) == (None, 3)


def bounds(plan: BlockPlan, field: int) -> tuple[object, object]:
    low, high = lower_bound(plan, field), upper_bound(plan, field)
    return (None if low is None else low.as_py(), None if high is None else high.as_py())


def test_bounds_are_known_with_deletions_and_where_texts_are_cut():
    assert bounds(plan_of([file_entry("a", SCHEMA, {"id": [[1, 2], [None]]}, deleted=[0])]), 1) == (1, 2)
    low, high = bounds(plan_of([file_entry("a", SCHEMA, {"name": [[b"k"], [b"k" * 100]]})]), 2)
    assert low == "k"
    assert str(high) >= "k" * 100


def test_a_lower_bound_that_is_cut_in_a_character_stays_below():
    value = "a" * 15 + "\u20ac" * 40
    for begin in range(6):
        text = "b" * begin + value
        low, high = bounds(plan_of([file_entry("a", SCHEMA, {"name": [[text.encode()]]})]), 2)
        assert str(low) <= text
        assert str(high) >= text


def test_no_bound_is_claimed_that_is_unknown():
    assert bounds(plan_of([file_entry("a", SCHEMA, {"real": [[1.0, math.nan]]})]), 3)[1] is None
    entries = [file_entry("a", SCHEMA, {"id": [[1]]}, clear=Flag.HAS_LOW), file_entry("b", SCHEMA, {"id": [[3]]})]
    assert bounds(plan_of(entries), 1) == (None, 3)
    assert bounds(plan_of([file_entry("a", SCHEMA, {"id": [[None]]})]), 1) == (None, None)
    with pytest.raises(UnknownColumn):
        lower_bound(plan_of([]), 99)


def test_the_extreme_of_no_values_is_null():
    found = minimum(plan_of([file_entry("a", SCHEMA, {"id": [[None]]})]), 1)
    assert found is not None
    assert not found.is_valid


def test_a_file_without_the_column_has_its_default():
    schema = schema_of({"id": "int64", "kind": "string"}, {"kind": "m"})
    entries = [file_entry("a", schema, {"id": [[1]]}), file_entry("b", schema, {"id": [[1]], "kind": [[b"p"]]})]
    assert extremes(plan_of(entries, schema=schema), 2) == ("m", "p")


@pytest.mark.parametrize(
    ("text", "stored_value", "value"),
    [
        ("decimal(30, 2)", -150, Decimal("-1.50")),
        ("decimal(9, 2)", -150, Decimal("-1.50")),
        ("timestamp(us)", 1_000_000, datetime(1970, 1, 1, 0, 0, 1)),
        ("boolean", 1, True),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("binary", b"\xff", b"\xff"),
    ],
)
def test_extremes_have_the_type_of_the_column(text: str, stored_value: int | bytes, value: object):
    schema = schema_of({"v": text})
    assert extremes(plan_of([file_entry("a", schema, {"v": [[stored_value]]})], schema=schema), 1) == (value, value)


def test_an_unknown_leaf_is_refused():
    with pytest.raises(UnknownColumn):
        minimum(plan_of([]), 99)
