from __future__ import annotations

from datetime import UTC, time

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.prune.columns import column, kept
from underlay.errors import BadPredicate
from underlay.prune import And, Compare, Op, TimesOfDay, Unit, col, matches
from underlay.prune.parse.arrow import from_arrow
from underlay.prune.parse.sql import parse_where

NOON_MS = 43_200_000


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("c = TIME '12:00:00'", [False, True, False]),
        ("c = TIME '12:00:00.0005'", [False, False, False]),
        ("c < TIME '12:00:00.0005'", [True, True, False]),
        ("c >= TIME '12:00:00.001'", [False, False, True]),
        ("c = '12:00'", [False, True, False]),
        ("c = '12:00:00.0005'", [False, True, True]),
        ("c > TIME '23:59:59.999999'", [False, False, False]),
    ],
)
def test_blocks_of_times_are_dropped_by_their_bounds(where, expected):
    bounds = column(TimesOfDay(Unit.MILLISECOND), (0, 5), (NOON_MS, NOON_MS), (NOON_MS + 1, NOON_MS + 9))
    assert kept(where, bounds) == expected


@pytest.mark.parametrize("type_", [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")], ids=str)
def test_rows_are_matched_in_every_unit(type_):
    rows = pa.record_batch({"c": pa.array([time(0), time(12), None, time(23, 59, 59)], type_)})
    found = matches(parse_where("c >= TIME '12:00' AND c < '23:59:59'"), rows)
    assert found.to_pylist() == [False, True, False, False]


def test_text_between_two_units_equals_no_row():
    rows = pa.record_batch({"c": pa.array([time(12)], pa.time32("s"))})
    assert matches(parse_where("c = '12:00:00.5'"), rows).to_pylist() == [False]
    assert matches(parse_where("c < '12:00:00.5'"), rows).to_pylist() == [True]


@pytest.mark.parametrize("literal", [time(0), time(23, 59, 59, 999_999), time(12, 34, 56, 780_000)])
def test_a_time_is_printed_as_sql_that_is_read_back(literal):
    predicate = And((col("c") == literal,))
    assert parse_where(str(predicate)) == predicate


@pytest.mark.parametrize("text", ["24:00:00", "12:60", "12", "noon", "12:00:00+01:00", "12:00:00.1234567"])
def test_a_typed_literal_that_is_no_time_to_the_microsecond_is_refused(text):
    with pytest.raises(BadPredicate):
        parse_where(f"c = TIME '{text}'")


@pytest.mark.parametrize("literal", [5, "2020-01-01", time(12, tzinfo=UTC)])
def test_a_time_column_is_not_compared_with_other_things(literal):
    with pytest.raises(BadPredicate, match="time"):
        TimesOfDay(Unit.MICROSECOND).select(Op.EQ, literal)


def test_a_time_column_of_days_does_not_exist():
    with pytest.raises(ValueError, match="seconds or less"):
        TimesOfDay(Unit.DAY)


def test_bounds_are_shown_as_clocks():
    domain = TimesOfDay(Unit.NANOSECOND)
    assert [domain.show(key) for key in (0, 1, 86_399 * 10**9)] == ["00:00:00", "00:00:00.000000001", "23:59:59"]
    assert domain.show(86_400 * 10**9) == "86400000000000 ns since midnight"


def test_an_arrow_literal_is_read():
    schema = pa.schema([("c", pa.time64("us"))])
    found = from_arrow(pc.field("c") > pa.scalar(time(1, 2, 3, 4)), schema)
    assert found == Compare(("c",), Op.GT, time(1, 2, 3, 4))
