"""Files with INT96 timestamps: exact in the table's type, or an error that names file and column."""

from __future__ import annotations

import datetime
import struct

import numpy as np
import pyarrow as pa
import pytest

import underlay
from tests import genuine
from tests.contract.pruning.traps import assert_safe, numbered, registered
from tests.contract.worlds import widen_column
from tests.parquet.footers import written
from underlay.errors import SchemaMismatch, Unsupported

US = 1_000
MOMENTS_NS = [0, None, None, None, 1_700_000_000_123_456_000, -1_000, -86_400_000_000_001_000, 10**18]
TYPES = [pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC", "Europe/Warsaw")]
FAR = (
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    datetime.datetime(1, 1, 1, 5),
    datetime.datetime(1600, 1, 1, 0, 0, 0, 123_456),
)
INT96 = struct.Struct("<qI")
"""Nanoseconds of the day, and the day."""
SPARK = "parquet-testing/data/int96_from_spark.parquet"


def int96(moments_ns: list[int | None], **options: object) -> bytes:
    data = numbered(pa.array(moments_ns, pa.timestamp("ns")))
    return written(data, use_deprecated_int96_timestamps=True, **options)


def of_moments(type_: pa.DataType, moments_ns: list[int | None]) -> pa.Table:
    per_unit = US if type_.unit == "us" else 1
    numbers = [None if moment is None else moment // per_unit for moment in moments_ns]
    return numbered(pa.array(numbers, pa.int64()).cast(type_))


def far(*moments: datetime.datetime) -> pa.Table:
    return numbered(pa.array(moments, pa.timestamp("us")))


def spark(type_: pa.DataType) -> underlay.Table:
    """The table of a file that Spark wrote: 2024-01-01 twice, 9999-12-31, 2024-12-30, null, and a year past 290000."""
    return registered(pa.schema([("a", type_)]), (genuine.fixtures() / SPARK).read_bytes())


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("row_group_size", [2, 100])
def test_a_scan_gives_the_instants_in_the_columns_type(type_, row_group_size):
    expected = of_moments(type_, MOMENTS_NS)
    table = registered(expected.schema, int96(MOMENTS_NS, row_group_size=row_group_size))
    assert table.to_arrow().sort_by("n").cast(expected.schema).equals(expected)
    assert table.to_arrow().schema.field("c").type == type_


@pytest.mark.parametrize("type_", [pa.timestamp("us"), pa.timestamp("ns")], ids=str)
def test_filters_and_counts_find_what_a_full_scan_finds(type_):
    file = int96(MOMENTS_NS, row_group_size=2)
    wheres = ["c > TIMESTAMP '2000-01-01'", "c < TIMESTAMP '1970-01-01'", "c = TIMESTAMP '1970-01-01'", "c IS NULL"]
    data = of_moments(type_, MOMENTS_NS)
    assert_safe(data, *wheres, "c IS NOT NULL", given=[registered(data.schema, file)])


def test_filters_on_a_column_with_a_zone_find_what_a_full_scan_finds():
    data = of_moments(pa.timestamp("us", "UTC"), MOMENTS_NS)
    wheres = ["c > TIMESTAMPTZ '2000-01-01 00:00:00+00'", "c < TIMESTAMPTZ '1970-01-01 00:00:00+00'", "c IS NULL"]
    assert_safe(data, *wheres, given=[registered(data.schema, int96(MOMENTS_NS, row_group_size=2))])


def test_nanoseconds_keep_all_digits():
    moments = [1, 1_700_000_000_123_456_789, -1]
    data = of_moments(pa.timestamp("ns"), moments)
    assert registered(data.schema, int96(moments)).to_arrow().sort_by("n")["c"].cast(pa.int64()).to_pylist() == moments


def test_both_ends_of_nanoseconds_are_read():
    moments = [np.iinfo(np.int64).min + 1, np.iinfo(np.int64).max]
    data = of_moments(pa.timestamp("ns"), moments)
    assert registered(data.schema, int96(moments)).to_arrow().sort_by("n")["c"].cast(pa.int64()).to_pylist() == moments


@pytest.mark.parametrize("moment", [1_700_000_000_123_456_789, -1])
def test_digits_below_microseconds_are_not_lost(moment):
    table = registered(of_moments(pa.timestamp("us"), [0]).schema, int96([0, None, moment]))
    with pytest.raises(Unsupported, match=r"\.parquet: c: a timestamp is finer .*Change the column's type to nano"):
        table.to_arrow()
    assert table.scan(["n"]).to_arrow().num_rows == 3


def test_the_value_that_is_too_fine_is_shown():
    table = registered(of_moments(pa.timestamp("us"), [0]).schema, int96([0, 1_700_000_000_123_456_789]))
    with pytest.raises(Unsupported, match=r"found 2023-11-14T22:13:20\.123456789"):
        table.to_arrow()


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_moments_that_nanoseconds_do_not_hold_are_exact_in_microseconds(zone):
    data = far(*FAR)
    schema = data.schema.set(0, pa.field("c", pa.timestamp("us", zone)))
    found = registered(schema, written(data, use_deprecated_int96_timestamps=True)).to_arrow().sort_by("n")
    assert found["c"].cast(pa.int64()).equals(data["c"].cast(pa.int64()))


def test_filters_on_far_moments_find_what_a_full_scan_finds():
    data = far(*FAR)
    file = written(data, use_deprecated_int96_timestamps=True, row_group_size=1)
    wheres = ["c > TIMESTAMP '9000-01-01'", "c < TIMESTAMP '1000-01-01'", "c = TIMESTAMP '1600-01-01 00:00:00.123456'"]
    assert_safe(data, *wheres, given=[registered(data.schema, file)])


@pytest.mark.parametrize("moment", FAR)
def test_moments_that_nanoseconds_do_not_hold_are_an_error_in_nanoseconds(moment):
    file = written(far(datetime.datetime(2024, 1, 1), moment), use_deprecated_int96_timestamps=True)
    table = registered(of_moments(pa.timestamp("ns"), [0]).schema, file)
    with pytest.raises(
        Unsupported, match=rf"\.parquet: c: a timestamp is out of the range .*found {moment.isoformat()}"
    ):
        table.to_arrow()


def test_a_column_widened_to_nanoseconds_gives_all_digits():
    moment = 1_700_000_000_123_456_789
    table = registered(of_moments(pa.timestamp("us"), [0]).schema, int96([moment]))
    widen_column(table, "c", "timestamp(ns)")
    assert table.to_arrow()["c"].cast(pa.int64()).to_pylist() == [moment]


@pytest.mark.parametrize("type_", [pa.timestamp("ms"), pa.timestamp("s"), pa.list_(pa.timestamp("us"))], ids=str)
def test_columns_that_cannot_hold_int96_are_refused_when_a_file_is_registered(type_):
    data = pa.table(
        {"c": pa.array([None], pa.list_(pa.timestamp("us")) if pa.types.is_list(type_) else pa.timestamp("us"))}
    )
    with pytest.raises(SchemaMismatch, match="INT96"):
        registered(pa.schema([("c", type_)]), written(data, use_deprecated_int96_timestamps=True))


def test_a_nanosecond_of_the_day_below_zero_is_an_error():
    """Some writers count back from midnight; Arrow takes the number for one without a sign."""
    file = written(
        pa.table({"c": pa.array([-1_000], pa.timestamp("ns"))}),
        use_deprecated_int96_timestamps=True,
        use_dictionary=False,
        compression="none",
    )
    floored, counted_back = INT96.pack(86_399_999_999_000, 2_440_587), INT96.pack(-1_000, 2_440_588)
    assert file.count(floored) == 1
    for unit in ("us", "ns"):
        table = registered(pa.schema([("c", pa.timestamp(unit))]), file.replace(floored, counted_back))
        with pytest.raises(Unsupported, match="a timestamp is"):
            table.to_arrow()


def test_sparks_dates_past_nanoseconds_are_an_error_in_nanoseconds():
    with pytest.raises(Unsupported, match=r"\.parquet: a: a timestamp is out of the range .*found 9999-12-31T"):
        spark(pa.timestamp("ns")).to_arrow()


def test_sparks_dates_past_microseconds_are_an_error_in_microseconds():
    with pytest.raises(Unsupported, match=r"\.parquet: a: a timestamp is out of the range"):
        spark(pa.timestamp("us", "UTC")).to_arrow()
