"""What a sidecar's columns mean: the traps of statistics, and QuestDB's own files."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pm.convert.test_infer_type import crafted
from tests.pm.prune.conftest import Written
from underlay.parquet.thrift.encode import Bool, Struct
from underlay.pm.format.sidecar import decode
from underlay.pm.format.types import NANOSECONDS, Tag, tag_of
from underlay.pm.format.values import SidecarColumn
from underlay.pm.prune.bounds import show_bounds
from underlay.pm.prune.domains import column_domain
from underlay.pm.prune.prune import prune
from underlay.prune import And, Cause, Compare, Op, Unordered
from underlay.prune.parse.sql import parse_where
from underlay.values.physical import PhysicalType

NAN = float("nan")


STAT_FLAGS, MIN, MAX = 2, 48, 56


def test_a_nan_that_bounds_leave_out_is_found(write):
    file = write([1.0, NAN], type=pa.float64())
    for where in ("c > 2", "c >= 2", "c = CAST('NaN' AS DOUBLE)", "c IN (7, CAST('NaN' AS DOUBLE))", "c > 1e300"):
        assert file.kept_both(where) == [0], where
    assert file.kept_both("c < 1") == file.kept_both("c = 7") == file.kept_both("c BETWEEN 2 AND 3") == []


def test_a_nan_in_a_bound_is_no_bound(write, fixtures: Path):
    file = write([1.0, 5.0], type=pa.float64()).with_field(0, MAX, "d", NAN)
    assert file.kept_both("c = 9") == file.kept_both("c < 9") == [0]
    assert file.kept_both("c < 1") == []
    stored = Written.read(fixtures / "parquet-testing" / "data" / "nan_in_stats.parquet")
    assert stored.kept_both("x < 1e9") == stored.kept_both("x = 1") == stored.kept_both("x > 1e9") == [0]


def test_a_row_group_of_nan_or_null_is_not_empty(write):
    file = write([NAN, NAN], [NAN, None], [None, None], type=pa.float64())
    assert file.kept_both("c > 2") == file.kept_both("c = CAST('NaN' AS DOUBLE)") == [0, 1]
    assert file.kept_both("c < 2") == [0, 1]  # without bounds nothing says that all values are NaN
    assert file.kept_both("c IS NULL") == [1, 2]
    assert file.kept_both("c IS NOT NULL") == [0, 1]


def test_the_two_zeros_are_one(write):
    file = write([-0.0], [0.0], [-0.0, 5.0], [1.0], type=pa.float64())
    for bounds in (file, file.with_field(0, MIN, "d", 0.0), file.with_field(1, MAX, "d", -0.0)):
        for where in ("c = 0", "c = -0.0", "c <= -0.0", "c <= 0"):
            assert bounds.kept_both(where) == [0, 1, 2], where
        assert bounds.kept_both("c >= 0.0") == bounds.kept_both("c >= -0.0") == [0, 1, 2, 3]
        assert bounds.kept_both("c < 0") == bounds.kept_both("c < -0.0") == []


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()], ids=str)
def test_a_bloom_filter_of_floats_is_asked_for_both_zeros_and_never_for_nan(write, type_: pa.DataType):
    file = write([-0.0, 5.0, 9.0], [0.0, 5.0, 9.0], [1.0, 5.0, -3.0], [NAN, 1.0], type=type_, bloom=True)
    assert file.sidecar.header.bloom_columns.tolist() == [0]
    assert file.kept_both("c = 0.0") == file.kept_both("c = -0.0") == file.kept_both("c = 0") == [0, 1]
    assert file.causes("c = 0")[2] == Cause.BLOOM
    assert file.kept_both("c = CAST('NaN' AS DOUBLE)") == [0, 1, 2, 3]
    assert file.kept_both("c = 2") == []


def test_duckdbs_own_bloom_filter_does_not_hide_its_zeros(write_duckdb):
    file = write_duckdb("SELECT (CASE WHEN i % 2 = 0 THEN '-0.0' ELSE '5' END)::DOUBLE AS c FROM range(10000) t(i)")
    assert file.sidecar.header.bloom_columns.tolist() == [0]
    assert file.kept_both("c = 0.0") == file.kept_both("c = -0.0") == [0]
    assert file.causes("c = 3") == [Cause.BLOOM]


def test_a_bloom_filter_is_asked_in_the_type_of_the_file(write):
    file = write([7, 1000], [8, 1000], type=pa.int32(), bloom=True)
    assert file.kept_both("c = 7") == file.kept_both("c = 7.0") == file.kept_both("c = 7e0") == [0]
    assert file.causes("c = 9") == [Cause.BLOOM, Cause.BLOOM]
    assert file.causes("c = 4294967303") == [Cause.NEVER, Cause.NEVER]  # 7 in its lower 32 bits
    assert file.kept_alone("c = 4294967303") == []


def test_a_single_is_not_the_double_of_the_same_digits(write):
    file = write([0.1], type=pa.float32())
    for where in ("c > 1e-1", "c > 0.1", "c = 0.1", "c >= 0.1", "c = 0.10000000149011612"):
        assert file.kept_both(where) == [0], where
    assert file.kept_both("c = 0.2") == file.kept_both("c < 0.09") == []


LONG = {
    "cut": "b" * 100,
    "last code point": "\U0010ffff" * 40,
    "before the surrogates": "\ud7ff" * 40,
    "inside a character": "a" * 63 + "é" * 20,
    "digits": "A123456789",
}


@pytest.mark.parametrize("value", LONG.values(), ids=LONG)
def test_text_longer_than_its_bound_is_found(write, write_duckdb, value: str):
    for file in (write([value], type=pa.string()), write_duckdb(f"SELECT '{value}' AS c FROM range(3)")):
        for where in (f"c = '{value}'", f"c > '{value[:-1]}'", f"c >= '{value}'", f"c <= '{value}'", f"c < '{value}a'"):
            assert file.kept_both(where) == [0]
        assert file.kept_both("c = 'A'") == []


def test_bytes_longer_than_their_bound_are_found(write, write_duckdb):
    value = b"\xff" * 40
    for file in (write([value], type=pa.binary()), write_duckdb(f"SELECT unhex('{value.hex()}') AS c FROM range(3)")):
        for where in (f"c = X'{value.hex()}'", f"c > X'{value[:-1].hex()}'", f"c >= X'{value.hex()}'"):
            assert file.kept_both(where) == [0]
        assert file.kept_both("c < X'FE'") == []


def test_values_under_truncated_bounds_are_found_in_a_file_of_arrow_rs(fixtures: Path):
    path = fixtures / "parquet-testing" / "data" / "binary_truncated_min_max.parquet"
    file, table = Written.read(path), pq.read_table(path)
    for name in table.column_names:
        for value in table.column(name).to_pylist():
            literal = value if isinstance(value, str | bytes) else bytes(value)
            for op in (Op.EQ, Op.LE, Op.GE):
                assert prune(file.sidecar, And((Compare((name,), op, literal),)), file.schema).kept.all()
                assert prune(file.sidecar, And((Compare((name,), op, literal),))).kept.all()


def test_a_literal_finer_than_the_unit_is_not_rounded(write):
    moment = datetime(2020, 1, 1, 0, 0, 0, 123456)
    file = write([moment], type=pa.timestamp("us"))
    for where in ("c > TIMESTAMP '2020-01-01 00:00:00.123'", "c = TIMESTAMP '2020-01-01 00:00:00.123456'"):
        assert file.kept_both(where) == [0]
    coarse = write([datetime(2020, 1, 1, 0, 0, 0, 123000)], type=pa.timestamp("ms"))
    assert coarse.kept_both("c < TIMESTAMP '2020-01-01 00:00:00.123456'") == [0]
    assert coarse.kept_both("c >= TIMESTAMP '2020-01-01 00:00:00.123456'") == []
    assert coarse.kept_both("c = TIMESTAMP '2020-01-01 00:00:00.123456'") == []


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_the_same_instant_is_found_in_every_unit_up_to_the_edges_of_nanoseconds(write, unit: str):
    edges = [datetime(1677, 9, 21, 0, 12, 44), datetime(1970, 1, 1), datetime(2262, 4, 11, 23, 47, 16)]
    file = write(*([edge] for edge in edges), type=pa.timestamp(unit))
    for index, edge in enumerate(edges):
        assert file.kept_both(f"c = TIMESTAMP '{edge}'") == [index]
        assert file.kept_both(f"c > TIMESTAMP '{edge - timedelta(seconds=1)}'") == list(range(index, 3))
    assert file.kept_both("c < TIMESTAMP '9999-12-31'") == [0, 1, 2]
    assert file.kept_both("c > TIMESTAMP '9999-12-31'") == []


def test_int96_is_never_compared(write, fixtures: Path):
    file = write([datetime(2020, 1, 1)], [None], type=pa.timestamp("ns"), use_deprecated_int96_timestamps=True)
    assert file.sidecar.columns[0].physical_type == 3
    for where in ("c > TIMESTAMP '2300-01-01'", "c = TIMESTAMP '2019-01-01'", "c < DATE '1600-01-01'"):
        assert file.kept_both(where) == [0, 1]  # there are not even null counts
    spark = Written.read(fixtures / "parquet-testing" / "data" / "int96_from_spark.parquet")
    assert spark.kept_both("a = TIMESTAMP '2000-01-01'") == [0]


@pytest.mark.parametrize("bits", [32, 64])
def test_unsigned_integers_above_the_signed_range_are_found(write, bits: int):
    half = 1 << bits - 1
    type_ = pa.uint32() if bits == 32 else pa.uint64()
    file = write([1, half + 5], [half + 1, half + 9], [3, 4], [2 * half - 1], type=type_)
    expected = {
        f"c > {half - 1}": [0, 1, 3],
        "c < 2": [0],
        f"c = {half + 5}": [0, 1],
        f"c = {2 * half - 1}": [3],
        f"c >= {half + 9}": [1, 3],
        "c = 4": [0, 2],
        f"c > {2 * half - 1}": [],
        "c = -1": [],
    }
    for where, groups in expected.items():
        assert file.kept(where) == groups, where
        assert set(file.kept_alone(where)) >= set(groups), where
    assert file.kept_alone("c = 4") == [0, 2]
    assert file.kept_alone("c < 2") == [0, 1, 3]  # groups that may as well hold negative numbers
    assert file.kept_alone(f"c = {half + 7}") == [1]


def test_small_unsigned_integers_need_no_schema(write):
    file = write([0, 9], [200, 255], type=pa.uint8())
    assert file.kept_both("c = 5") == [0]
    assert file.kept_both("c > 100") == [1]
    assert file.kept_both("c < 0") == []


@pytest.mark.parametrize(("precision", "integer"), [(5, True), (5, False), (16, True), (20, False), (38, False)])
def test_decimals_are_compared_as_numbers_in_every_storage(write, precision: int, integer: bool):
    values = [Decimal("-1.00"), Decimal("1.00")]
    type_ = pa.decimal128(precision, 2)
    file = write(values, [Decimal("2.50")], [Decimal("-7.01")], type=type_, store_decimal_as_integer=integer)
    assert file.kept_both("c = -1") == file.kept_both("c = 1.000") == file.kept_both("c = -0.99") == [0]
    assert file.kept_both("c < -0.995") == [0, 2]
    assert file.kept_both("c = -0.995") == []
    assert file.kept_both("c > 1") == file.kept_both("c > 1.00000001") == [1]
    assert file.kept_both("c < -1.000001") == [2]
    assert file.kept_both("c BETWEEN -7.01 AND -7") == [2]


def test_decimals_in_byte_arrays_are_found(fixtures: Path):
    path = fixtures / "parquet-testing" / "data" / "byte_array_decimal.parquet"
    file = Written.read(path)
    for value in pq.read_table(path).column("value").to_pylist():
        assert file.kept_both(f"value = {value}") == [0]


def test_decimals_in_byte_arrays_are_extended_by_their_sign(fixtures: Path):
    file = Written.read(fixtures / "parquet-testing" / "data" / "byte_array_decimal.parquet")
    both = 0b00011011
    file = file.with_field(0, STAT_FLAGS, "H", both | 0x21 << 8)  # -1 in one byte, 0x0080 in two: -0.01 to 1.28
    file = file.with_field(0, MIN, "Q", 0xFF).with_field(0, MAX, "Q", int.from_bytes(b"\x00\x80", "little"))
    assert file.kept_both("value = 1.28") == file.kept_both("value = -0.01") == file.kept_both("value > 1.27") == [0]
    assert file.kept_both("value = 1.29") == file.kept_both("value < -0.01") == []


def test_inverted_bounds_are_not_used(write):
    file = write([100, 900], [100, 900], type=pa.int64()).with_field(0, MIN, "q", 901)
    for where in ("c = 500", "c < 100", "c > 950"):
        assert 0 in file.kept_both(where)
    assert file.kept("c > 950") == [0]


def test_nulls_count_only_where_they_are_counted(write):
    file = write([5, None, 5], [5, 5], [None, None], type=pa.int64())
    assert file.kept_both("c IS NULL") == [0, 2]
    assert file.kept_both("c IS NOT NULL") == file.kept_both("c = 5") == file.kept_both("c IN (5, NULL)") == [0, 1]
    assert file.kept_both("c = NULL") == file.kept_both("c IN (NULL)") == []
    for group in range(3):
        flags = int(file.sidecar.column_chunks(0)["stat_flags"][group])
        unknown = file.with_field(group, STAT_FLAGS, "B", flags & ~128)
        assert group in unknown.kept_both("c IS NULL")
        assert group in unknown.kept_both("c IS NOT NULL")


def test_text_is_ordered_by_its_bytes(write):
    groups = ["\uffff"], ["\U00010000"], ["e\u0301"], ["é"], ["a"], ["A"], ["a "], ["a\x00"]
    file = write(*groups, type=pa.string())
    for index, (value,) in enumerate(groups):
        assert file.kept_both(f"c = '{value}'") == [index]
    assert file.kept_both("c > '\uffff'") == [1]
    assert file.kept_both("c < 'a'") == [5]
    assert file.kept_both("c BETWEEN 'a' AND 'a '") == [4, 6, 7]


@pytest.mark.parametrize("type_", [pa.time32("ms"), pa.time64("us"), pa.time64("ns")], ids=str)
def test_times_of_day_are_told_by_the_schema(write, type_: pa.DataType):
    file = write([time(0), time(11)], [time(12), None], [time(12, 0, 0, 1_000), time(23, 59)], type=type_)
    assert file.kept("c = TIME '12:00'") == [1]
    assert file.kept("c > TIME '12:00'") == file.kept("c >= '12:00:00.001'") == [2]
    assert file.kept("c < TIME '11:00'") == [0]
    assert file.kept("c IS NULL") == [1]


def test_a_time_of_day_of_another_width_has_no_order_we_know():
    for physical, unit in ((PhysicalType.INT64, 1), (PhysicalType.INT32, 2), (PhysicalType.INT32, 3)):
        leaf = crafted(physical, logical=Struct({7: Struct({1: Bool(True), 2: Struct({unit: Struct({})})})}))
        column = SidecarColumn(name="c", physical_type=physical, type=Tag.LONG)
        assert isinstance(column_domain(column, leaf), Unordered)


def test_types_without_an_order_are_never_compared(write, write_duckdb):
    half = write([np.float16(1)], [np.float16(2)], type=pa.float16())
    assert half.kept_both("c = 2") == half.kept_both("c = 99") == [0, 1]
    interval = write_duckdb("SELECT INTERVAL 1 DAY AS c")
    assert interval.kept_both("c = 5") == interval.kept_both("c > 'x'") == [0]


def test_an_empty_string_that_the_format_cannot_store_as_a_minimum_is_found(write):
    file = write(["", "b"], ["", ""], ["a"], type=pa.string())
    assert file.kept_both("c = ''") == file.kept_both("c <= ''") == [0, 1]
    assert file.kept_both("c < ''") == []
    assert file.kept_both("c > 'b'") == [1]  # its maximum is lost as well


def test_a_date_is_days_or_milliseconds_by_its_storage(write):
    days = write([datetime(2020, 1, 1).date()], [datetime(2020, 1, 3).date()], type=pa.date32())
    millis = write([datetime(2020, 1, 1)], [datetime(2020, 1, 3)], type=pa.timestamp("ms"))
    for file in (days, millis):
        assert tag_of(file.sidecar.columns[0].type) is Tag.DATE
        assert file.kept_both("c = DATE '2020-01-01'") == [0]
        assert file.kept_both("c > TIMESTAMP '2020-01-01 00:00:00.001'") == [1]
        assert file.kept_both("c < DATE '2020-01-01'") == []
        assert show_bounds(file.sidecar, 0)[0][0] in ("2020-01-01", "2020-01-01 00:00:00")


def test_bounds_are_shown_as_people_read_them(fixtures: Path):
    sidecar = decode((fixtures / "questdb" / "10.0.0" / "edges" / "_pm").read_bytes())
    shown = {column.name: show_bounds(sidecar, i) for i, column in enumerate(sidecar.columns)}
    assert shown["ip"][1] == ["255.255.255.254"]
    assert shown["l"][1] == ["9223372036854775807"]
    assert shown["by"][1] == ["127"]
    assert shown["tm"][0] == ["1950-01-01 00:00:00"]
    assert shown["dt"][0] == ["1960-01-01 00:00:00"]


def test_nanoseconds_are_told_by_the_type_code(fixtures: Path):
    sidecar = decode((fixtures / "questdb" / "10.0.0" / "nanos" / "_pm").read_bytes())
    assert sidecar.columns[1].type & NANOSECONDS
    assert (
        prune(sidecar, parse_where("ts >= TIMESTAMP '2023-02-11'")).kept.tolist() == [False] * sidecar.row_group_count
    )
    assert prune(sidecar, parse_where("ts >= TIMESTAMP '2023-02-10'")).kept.all()
