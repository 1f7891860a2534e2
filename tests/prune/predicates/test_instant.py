"""ISO text to nanoseconds, exactly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underlay.prune.predicates.instant import format_ns, instant_of, parse_instant


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01", 0),
        ("1970-01-01 00:00:00.000000001", 1),
        ("1970-01-01T00:01", 60 * 10**9),
        ("1970-01-01 00:00:00Z", 0),
        ("1970-01-01 05:30:00+0530", 0),
        ("1969-12-31 18:29:32-05:30:28", 0),
        ("1969-12-31 23:59:59.5", -5 * 10**8),
        ("0001-01-01", -62_135_596_800 * 10**9),
        (" 1970-01-01 00:00 +00 ", 0),
    ],
)
def test_iso_text_is_read_to_the_nanosecond(text, ns):
    found = parse_instant(text)
    assert found is not None
    assert found.ns == ns


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "1970",
        "1970-1-1",
        "0000-01-01",
        "10000-01-01",
        "1970-02-30",
        "1970-01-01 24:00:00",
        "1970-01-01 00:60",
        "1970-01-01 00:00:60",
        "1970-01-01 00:00:00.0000000001",
        "1970-01-01 00:00+19:00",
        "1970-01-01 00:00 UTC",
        "١٩٧٠-01-01",
    ],
)
def test_other_text_is_not_guessed_at(text):
    assert parse_instant(text) is None


@given(st.datetimes(), st.integers(-64_800, 64_800))
def test_a_datetime_and_its_text_are_the_same_instant(moment, offset_s):
    aware = moment.replace(tzinfo=timezone(timedelta(seconds=offset_s)))
    read = parse_instant(aware.isoformat())
    assert read == instant_of(aware)
    assert instant_of(moment) == instant_of(moment.replace(tzinfo=UTC)) == parse_instant(moment.isoformat(sep=" "))


@given(st.datetimes(), st.integers(0, 999))
def test_formatted_nanoseconds_read_back(moment, extra_ns):
    ns = instant_of(moment).ns + extra_ns
    read = parse_instant(format_ns(ns))
    assert read is not None
    assert read.ns == ns


def test_an_instant_beyond_the_calendar_is_shown_as_a_number():
    assert format_ns(2**63 * 10**9).endswith("ns since 1970")
    assert instant_of(datetime(1970, 1, 2)).ns == 86_400 * 10**9
