from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from tests.gate import costly
from tests.schema.examples import schema_of, values
from underlay.prune import Operand
from underlay.schema.cast.exact import cast_exactly
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.convert.stored_values import stored_array
from underlay.schema.partitioning.bucket import HASHES
from underlay.schema.partitioning.partition import apply_transform, bucket_of_literal, source_bounds
from underlay.schema.partitioning.transform import PartitionField, partition_fields
from underlay.schema.types import parse_scalar

EDGES_NS = [0, -1, 1, -(2**63), 2**63 - 1, 86_400 * 10**9 - 1, -86_400 * 10**9, 951_782_400 * 10**9]


def bound(text: str, type_: str, hash_name: str | None = None) -> PartitionField:
    field = partition_fields(schema_of(c=parse_scalar(type_)), [text])[0]
    return field if hash_name is None else replace(field, hash=hash_name)


def applied(text: str, type_: str, given_values: list[object], hash_name: str | None = None) -> list[object]:
    field = bound(text, type_, hash_name)
    found = apply_transform(field, pa.array(given_values, to_arrow_type(field.source)))
    assert found.type == to_arrow_type(field.type)
    found.validate(full=True)
    return found.to_pylist()


def slow_period(transform: str, moment: datetime) -> int:
    match transform:
        case "year":
            return moment.year - 1970
        case "month":
            return (moment.year - 1970) * 12 + moment.month - 1
        case "day":
            return moment.toordinal() - date(1970, 1, 1).toordinal()
    return (moment - datetime(1970, 1, 1)) // timedelta(hours=1)


@given(st.lists(st.none() | st.datetimes(), max_size=20), st.sampled_from(["year", "month", "day", "hour"]))
def test_periods_are_those_of_the_calendar(moments: list[datetime | None], transform: str):
    expected = [None if moment is None else slow_period(transform, moment) for moment in moments]
    assert applied(f"{transform}(c)", "timestamp(us)", list(moments)) == expected


@given(st.lists(st.none() | st.dates(), max_size=20), st.sampled_from(["year", "month", "day"]))
def test_periods_of_dates_are_those_of_the_calendar(days: list[date | None], transform: str):
    midnight = datetime.min.time()
    expected = [None if day is None else slow_period(transform, datetime.combine(day, midnight)) for day in days]
    assert applied(f"{transform}(c)", "date", list(days)) == expected


def test_periods_before_1970_round_down():
    moment = datetime(1969, 12, 31, 23, 59, 59, 999_999)
    assert [applied(f"{name}(c)", "timestamp(us)", [moment]) for name in ("year", "month", "day", "hour")] == [[-1]] * 4


def test_periods_are_counted_in_utc():
    moment = datetime(2021, 10, 31, 23, 30, tzinfo=UTC)
    assert applied("day(c)", "timestamp(us, Asia/Kolkata)", [moment]) == applied(
        "day(c)", "timestamp(us, UTC)", [moment]
    )


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("transform", ["year", "month", "day", "hour"])
def test_the_bounds_of_a_period_are_its_first_and_last_moment(unit, transform):
    field = bound(f"{transform}(c)", f"timestamp({unit})")
    moments = np.array(EDGES_NS + [n // 7 for n in EDGES_NS], dtype=np.int64)
    periods = stored_array(apply_transform(field, pa.array(moments).cast(pa.timestamp(unit))), field.type)
    low, high = source_bounds(field, periods)
    assert (low <= moments).all()
    assert (moments <= high).all()
    for edge, step in ((low, -1), (high, 1)):
        inside = apply_transform(field, pa.array(edge).cast(pa.timestamp(unit)))
        assert stored_array(inside, field.type).tolist() == periods.tolist()
        is_end = (edge == np.iinfo(np.int64).min) | (edge == np.iinfo(np.int64).max)
        outside = apply_transform(field, pa.array(edge[~is_end] + step).cast(pa.timestamp(unit)))
        assert (stored_array(outside, field.type) == periods[~is_end] + step).all()


def test_the_bounds_of_a_day_of_microseconds():
    low, high = source_bounds(bound("day(c)", "timestamp(us)"), np.array([19_000, -1]))
    assert low.tolist() == [19_000 * 86_400_000_000, -86_400_000_000]
    assert high.tolist() == [19_001 * 86_400_000_000 - 1, -1]


@pytest.mark.parametrize("type_", ["int8", "int32", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("width", [1, 2, 10, 2**31 - 1])
def test_a_truncated_integer_is_the_multiple_below_it_within_the_type(type_, width):
    limits = np.iinfo(type_)
    middle = (int(limits.min) + int(limits.max)) // 2
    numbers = sorted({int(limits.min), int(limits.min) + 1, middle, 0, 1, int(limits.max) - 1, int(limits.max)})
    expected = [max(int(limits.min), n - n % width) for n in numbers]
    assert applied(f"truncate({width}, c)", type_, [*numbers, None]) == [*expected, None]


@pytest.mark.parametrize("type_", ["int8", "uint8"])
@pytest.mark.parametrize("width", [1, 3, 10, 300])
def test_the_bounds_of_a_truncated_integer_hold_exactly_its_values(type_, width):
    field = bound(f"truncate({width}, c)", type_)
    limits = np.iinfo(type_)
    every = np.arange(limits.min, limits.max + 1)
    cut = stored_array(apply_transform(field, pa.array(every.astype(type_))), field.type)
    low, high = source_bounds(field, cut)
    for value, least, most in zip(cut.tolist(), low.tolist(), high.tolist(), strict=True):
        inside = every[cut == value]
        assert (inside.min(), inside.max()) == (least, most)


@given(st.lists(st.none() | st.text(max_size=8), max_size=10), st.integers(1, 5))
def test_truncated_text_keeps_whole_characters_and_bounds_the_text(texts: list[str | None], width: int):
    texts = [text for text in texts if text is None or text.isprintable()]
    field = bound(f"truncate(c, {width})", "string")
    cut = apply_transform(field, pa.array(texts, pa.string()))
    assert cut.to_pylist() == [None if text is None else text[:width] for text in texts]
    low, high = source_bounds(field, stored_array(cut, field.type))
    for text, least, most in zip(texts, low.to_pylist(), high.to_pylist(), strict=True):
        if text is not None:
            assert least <= text.encode()
            assert most is None or text.encode() <= most


@pytest.mark.parametrize(
    ("prefix", "end"),
    [("abcd", "abce"), ("abc", "abc"), ("abc\ud7ff", "abc\ue000"), ("abc\U0010ffff", "abd"), ("\U0010ffff" * 4, None)],
    ids=ascii,
)
def test_the_end_of_a_prefix_of_text(prefix, end):
    _, high = source_bounds(bound("truncate(4, c)", "string"), pa.array([prefix.encode()]))
    assert high.to_pylist() == [None if end is None else end.encode()]


@pytest.mark.parametrize(
    ("prefix", "end"), [(b"ab", b"ac"), (b"a\xff", b"b"), (b"\xff\xff", None), (b"a", b"a"), (b"", b"")]
)
def test_the_end_of_a_prefix_of_bytes(prefix, end):
    _, high = source_bounds(bound("truncate(2, c)", "binary"), pa.array([prefix, None]))
    assert high.to_pylist() == [end, None]


def test_minus_zero_is_zero_and_nan_is_one_value():
    quiet, other = struct_nan(0x7FF8000000000000), struct_nan(0xFFF8000000000001)
    found = apply_transform(bound("c", "float64"), pa.array([-0.0, 0.0, quiet, other, None, 1.5]))
    bits = found.fill_null(7.0).to_numpy().view(np.uint64)
    assert bits[0] == bits[1] == 0
    assert bits[2] == bits[3]
    assert found.null_count == 1
    assert found[5].as_py() == 1.5


def struct_nan(bits: int) -> float:
    found = float(np.array([bits], dtype=np.uint64).view(np.float64)[0])
    assert math.isnan(found)
    return found


def test_identity_keeps_every_value():
    assert applied("c", "string", ["", None, "a/b", "%2F"]) == ["", None, "a/b", "%2F"]
    stored = np.array([5, -5])
    assert source_bounds(bound("c", "int32"), stored) == (stored, stored)


def slow_mix(value: int) -> int:
    mask = 2**64 - 1
    x = (value + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.integers(1, 2**31 - 1))
def test_buckets_of_integers_in_older_tables_are_the_documented_hash(numbers: list[int | None], count: int):
    expected = [None if n is None else slow_mix(n % 2**64) % count for n in numbers]
    assert applied(f"bucket({count}, c)", "int64", list(numbers), "") == expected


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]))), st.integers(1, 1000))
def test_buckets_of_text_in_older_tables_are_the_documented_hash(texts: list[str | None], count: int):
    expected = [None if text is None else xxhash.xxh64_intdigest(text.encode()) % count for text in texts]
    assert applied(f"bucket(c, {count})", "string", list(texts), "") == expected


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("int8", "int64"),
        ("uint32", "int64"),
        ("decimal(9,2)", "decimal(18,4)"),
        ("decimal(9,2)", "decimal(38,10)"),
        ("timestamp(s)", "timestamp(ns)"),
        ("timestamp(ms)", "timestamp(us)"),
        ("time(ms)", "time(ns)"),
        ("fixed(3)", "binary"),
    ],
)
@given(data=st.data())
@costly
def test_a_value_keeps_its_old_bucket_when_its_type_is_widened(narrow, wide, data):
    before, after = bound("bucket(1000, c)", narrow, ""), bound("bucket(1000, c)", wide, "")
    field = schema_of(c=before.source).fields[0]
    array = pa.array(data.draw(st.lists(values(field), max_size=8)), to_arrow_type(before.source))
    widened = cast_exactly(array, after.source, ("c",))
    assert apply_transform(before, array).to_pylist() == apply_transform(after, widened).to_pylist()


@pytest.mark.parametrize(
    ("type_", "literal", "value"),
    [
        ("int32", 7, 7),
        ("int32", Decimal("7.0"), 7),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("string", "é", "é"),
        ("uuid", UUID(int=9), UUID(int=9).bytes),
        ("date", date(1969, 7, 20), date(1969, 7, 20)),
        ("timestamp(us)", datetime(1969, 7, 20, 20, 17), datetime(1969, 7, 20, 20, 17)),
        ("decimal(9,2)", Decimal("1.5"), Decimal("1.50")),
        ("decimal(38,2)", Decimal("1.5"), Decimal("1.50")),
        ("decimal(38,2)", 10**30, Decimal(10**30)),
        ("fixed(2)", b"ab", b"ab"),
    ],
)
@pytest.mark.parametrize("hash_name", HASHES)
def test_a_literal_has_the_bucket_of_the_value_that_it_equals(type_, literal, value, hash_name):
    field = bound("bucket(1000, c)", type_, hash_name)
    assert [bucket_of_literal(field, literal)] == applied("bucket(1000, c)", type_, [value], hash_name)


@pytest.mark.parametrize(
    ("type_", "literal"),
    [
        ("int32", 7.5),
        ("int32", "x"),
        ("int64", float(2**60)),
        ("string", 5),
        ("int32", None),
        ("fixed(2)", b"abc"),
        ("int32", math.nan),
    ],
)
def test_a_literal_in_doubt_has_no_bucket(type_: str, literal: Operand):
    assert bucket_of_literal(bound("bucket(16, c)", type_), literal) is None


def test_buckets_bound_nothing():
    assert source_bounds(bound("bucket(16, c)", "int32"), np.array([3])) is None


def test_chunks_are_transformed_as_one_array():
    chunks = pa.chunked_array([[1, 12], [], [None, 25]], pa.int64())
    assert apply_transform(bound("truncate(10, c)", "int64"), chunks).to_pylist() == [0, 10, None, 20]


def test_slices_are_read_from_their_offset():
    array = pa.array([Decimal("1.00"), None, Decimal("-3.25")], pa.decimal128(20, 2)).slice(1)
    assert stored_array(array, parse_scalar("decimal(20,2)")).to_pylist() == [
        None,
        (-325).to_bytes(16, "big", signed=True),
    ]
    assert stored_array(array.cast(pa.decimal128(9, 2)), parse_scalar("decimal(9,2)")).tolist() == [0, -325]
