"""Statistics that are believed, converted or left out, by the numbers of TRAPS.md."""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests import genuine
from tests.index import patching
from tests.index.known import Known, entry_of, known, known_of
from tests.index.patching import opened
from tests.parquet.footers import written
from underlay.parquet.footer.footer import Footer, KeyValue
from underlay.parquet.footer.tail import load_footer
from underlay.parquet.thrift.encode import I64, Bool, ThriftBinary
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, Scalar, TypeKind

TYPE_ORDER, IEEE_ORDER = 1, 2


def footer_of(values: list[object], type_: pa.DataType, **options: object) -> Footer:
    return opened(written(pa.table({"c": pa.array(values, type_)}), **options))


def of(values: list[object], type_: pa.DataType, wanted: pa.DataType | None = None, **options: object) -> Known:
    return known(footer_of(values, type_, **options), wanted or type_)


def bounds(found: Known) -> tuple[object, object]:
    return found.low, found.high


def double(value: float) -> ThriftBinary:
    return ThriftBinary(struct.pack("<d", value))


def with_bounds(footer: Footer, low: ThriftBinary | None, high: ThriftBinary | None) -> Footer:
    changes = {patching.MIN_VALUE: low, patching.MAX_VALUE: high, patching.MIN: None, patching.MAX: None}
    return patching.with_statistics(footer, 0, changes)


def from_testing(name: str) -> Path:
    return genuine.fixtures() / "parquet-testing" / "data" / f"{name}.parquet"


def test_bounds_and_nulls_of_plain_numbers():
    assert of([3, None, 1], pa.int64()) == Known(1, 3, True, True, 1, False, False)


def test_t1_floats_may_hold_nan_unless_a_count_says_none():
    footer = footer_of([1.0, 2.0], pa.float64())
    assert known(footer, pa.float64()).may_hold_nan
    counted = patching.with_statistics(footer, 0, {patching.NANS: I64(0)})
    assert not known(counted, pa.float64()).may_hold_nan
    some = patching.with_statistics(footer, 0, {patching.NANS: I64(1)})
    assert known(some, pa.float64()).may_hold_nan


def test_t1_a_writer_that_looked_is_believed():
    table = from_arrow(pa.schema([pa.field("c", pa.float64())]))
    footer = footer_of([1.0, 2.0], pa.float64())
    entry = entry_of(footer, table, nan_free=np.array([[True]]))
    assert entry.columns[0].flags[0] & 16 == 0


def test_t2_nan_as_a_bound_is_ignored_alone():
    footer = with_bounds(footer_of([1.0, math.nan], pa.float64()), double(1.0), double(math.nan))
    assert bounds(known(footer, pa.float64())) == (1.0, None)


def test_t2_genuine_nan_in_stats():
    footer = load_footer(from_testing("nan_in_stats")).footer
    found = known(footer, pa.float64(), name="x")
    assert found.may_hold_nan
    assert found.low in (None, 1.0)
    assert found.high is None


def test_t3_all_nan_has_no_bounds():
    found = of([math.nan, None], pa.float64())
    assert bounds(found) == (None, None)
    assert found.may_hold_nan
    assert found.nulls == 1


def test_t4_total_order_and_unknown_orders_are_ignored():
    footer = footer_of([1.0, 2.0], pa.float64())
    assert bounds(known(footer, pa.float64())) == (1.0, 2.0)
    assert bounds(known(patching.ordered(footer, IEEE_ORDER), pa.float64())) == (None, None)
    assert bounds(known(patching.ordered(footer, 9), pa.float64())) == (None, None)


def test_t4_genuine_floating_orders():
    footer = load_footer(from_testing("floating_orders_nan_count")).footer
    names = {leaf.path[0]: leaf for leaf in footer.schema.leaves}
    assert footer.column_orders is not None
    for name, leaf in names.items():
        order = footer.column_orders[leaf.index]
        wanted = {2: pa.float16(), 4: pa.float32()}.get(leaf.node.type_length or 0, pa.float64())
        if leaf.physical_type.name == "FLOAT":
            wanted = pa.float32()
        for block in range(footer.row_group_count):
            found = known(footer, wanted, block, name=name)
            if order.name == "IEEE_754":
                assert bounds(found) == (None, None)
            nans = int(footer.chunks.statistics.nan_count[block, leaf.index])
            has = bool(footer.chunks.statistics.has_nan_count[block, leaf.index])
            assert found.may_hold_nan == (not has or nans != 0)


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_t5_zero_bounds_are_of_both_zeros(type_):
    code = "<f" if type_ == pa.float32() else "<d"
    low, high = ThriftBinary(struct.pack(code, 0.0)), ThriftBinary(struct.pack(code, -0.0))
    found = known(with_bounds(footer_of([-0.0, 0.0], type_), low, high), type_)
    assert (math.copysign(1, found.low), math.copysign(1, found.high)) == (-1.0, 1.0)


def test_t8_bounds_are_decoded_in_the_files_type_and_widened_exactly():
    assert bounds(of([0.1], pa.float32(), pa.float64())) == (float(np.float32(0.1)),) * 2
    assert bounds(of([-7, 5], pa.int32(), pa.int64())) == (-7, 5)
    assert bounds(of([-7, 5], pa.int8(), pa.float64())) == (-7.0, 5.0)
    assert bounds(of([2**32 - 1], pa.uint32(), pa.int64())) == (2**32 - 1,) * 2


def test_t9_long_text_is_cut_and_not_exact():
    found = of(["a" * 100, "b" * 100], pa.string())
    assert bounds(found) == (b"a" * 64, b"b" * 63 + b"c")
    assert (found.is_low_exact, found.is_high_exact) == (False, False)


def test_t10_what_cannot_be_rounded_up_has_no_upper_bound():
    assert of(["\U0010ffff" * 40], pa.string()).high is None
    assert of([b"\xff" * 80], pa.binary()).high is None
    above = of(["\ud7ff" * 40], pa.string()).high
    assert isinstance(above, bytes)
    assert above.decode()[-1] == "\ue000"


def test_t11_bounds_of_bytes_are_exact_only_when_the_file_says_so():
    footer = footer_of(["a", "b"], pa.string())
    assert known(footer, pa.string()).is_high_exact
    unsaid = patching.with_statistics(footer, 0, {patching.MAX_EXACT: None, patching.MIN_EXACT: Bool(False)})
    found = known(unsaid, pa.string())
    assert bounds(found) == (b"a", b"b")
    assert (found.is_low_exact, found.is_high_exact) == (False, False)


def test_t11_numbers_are_exact_unless_the_file_denies_it():
    footer = footer_of([1, 2], pa.int64())
    unsaid = patching.with_statistics(footer, 0, {patching.MAX_EXACT: None, patching.MIN_EXACT: Bool(False)})
    found = known(unsaid, pa.int64())
    assert (found.is_low_exact, found.is_high_exact) == (False, True)


def test_t11_genuine_truncated_bounds_are_not_exact():
    footer = load_footer(from_testing("binary_truncated_min_max")).footer
    full = known(footer, pa.string(), name="utf8_full_truncation")
    assert (full.is_low_exact, full.is_high_exact) == (False, False)
    plain = known(footer, pa.string(), name="utf8_no_truncation")
    assert (plain.is_low_exact, plain.is_high_exact) == (True, True)


def test_t13_t14_coarser_units_are_converted_exactly():
    assert bounds(of([1, 2], pa.timestamp("ms"), pa.timestamp("ns"))) == (1_000_000, 2_000_000)
    assert bounds(of([1, 2], pa.time32("ms"), pa.time64("us"))) == (1000, 2000)


def test_t14_a_bound_that_overflows_the_finer_unit_is_none():
    far = 2**62
    assert bounds(of([5, far], pa.timestamp("us"), pa.timestamp("ns"))) == (5000, None)
    assert bounds(of([-far, 5], pa.timestamp("us"), pa.timestamp("ns"))) == (None, 5000)


def test_seconds_of_our_own_are_rounded_outwards():
    table = TableSchema(fields=(Field(id=1, name="c", type=Scalar(TypeKind.TIMESTAMP, unit="s")),), last_id=1)
    field = pa.field("c", pa.timestamp("ms"), metadata={"PARQUET:field_id": "1"})
    footer = opened(written(pa.table([pa.array([-1, 1001], pa.timestamp("ms"))], schema=pa.schema([field]))))
    column = entry_of(footer, table, by="id").columns[0]
    assert struct.unpack("<qq", column.low + column.high) == (-1, 2)
    assert column.flags[0] & 12 == 0


@pytest.mark.parametrize(
    "pair",
    [
        KeyValue(b"org.apache.spark.legacyDateTime", b""),
        KeyValue(b"org.apache.spark.legacyINT96", b""),
        KeyValue(b"org.apache.spark.version", b"2.4.8"),
    ],
)
def test_t16_dates_of_the_old_calendar_have_no_bounds(pair):
    old = footer_of([datetime.date(1500, 3, 1), datetime.date(2000, 1, 1)], pa.date32())
    new = footer_of([datetime.date(1582, 10, 15), datetime.date(2000, 1, 1)], pa.date32())
    assert bounds(known(old, pa.date32())) == (-171605, 10957)
    assert bounds(known(patching.with_keys(old, pair), pa.date32())) == (None, None)
    assert bounds(known(patching.with_keys(new, pair), pa.date32())) == (-141427, 10957)


def test_t16_times_before_1900_of_a_legacy_writer_have_no_bounds():
    key = KeyValue(b"org.apache.spark.legacyDateTime", b"")
    old = footer_of([datetime.datetime(1899, 12, 31)], pa.timestamp("us"))
    assert bounds(known(patching.with_keys(old, key), pa.timestamp("us"))) == (None, None)
    new = footer_of([datetime.datetime(1900, 1, 1)], pa.timestamp("us"))
    assert known(patching.with_keys(new, key), pa.timestamp("us")).low == -2208988800 * 10**6


def test_t16_newer_spark_is_believed():
    footer = footer_of([datetime.date(1500, 3, 1)], pa.date32())
    footer = patching.with_keys(footer, KeyValue(b"org.apache.spark.version", b"3.5.1"))
    assert known(footer, pa.date32()).low == -171605


def test_t18_int96_has_no_bounds():
    footer = footer_of([1, 2], pa.timestamp("ns"), use_deprecated_int96_timestamps=True)
    forged = with_bounds(footer, ThriftBinary(bytes(12)), ThriftBinary(b"\xff" * 12))
    assert bounds(known(forged, pa.timestamp("ns"))) == (None, None)


def test_t18_genuine_int96_from_spark():
    footer = load_footer(from_testing("int96_from_spark")).footer
    assert bounds(known(footer, pa.timestamp("us"), name="a")) == (None, None)


def test_t19_old_fields_count_only_for_signed_numbers():
    def aged(footer: Footer, low: bytes, high: bytes) -> Footer:
        gone = {patching.MIN_VALUE: None, patching.MAX_VALUE: None}
        changes = {**gone, patching.MIN: ThriftBinary(low), patching.MAX: ThriftBinary(high)}
        return patching.ordered(patching.with_statistics(footer, 0, changes), None)

    numbers = aged(footer_of([1, 2], pa.int32()), struct.pack("<i", 1), struct.pack("<i", 2))
    assert bounds(known(numbers, pa.int32())) == (1, 2)
    texts = aged(footer_of(["aé", "az", "b"], pa.string()), "aé".encode(), b"b")
    assert bounds(known(texts, pa.string())) == (None, None)
    unsigned = aged(footer_of([1, 2], pa.uint32()), struct.pack("<I", 1), struct.pack("<I", 2))
    assert bounds(known(unsigned, pa.uint32())) == (None, None)
    wide = pa.decimal128(20, 2)
    decimals = aged(footer_of([Decimal("1.00")], wide), bytes(8) + b"\x64", bytes(8) + b"\x64")
    assert bounds(known_decimal(decimals, 20, 2)) == (None, None)


def test_t20_without_column_orders_the_new_fields_are_ignored():
    footer = patching.ordered(footer_of(["a", "b"], pa.string()), None)
    assert bounds(known(footer, pa.string())) == (None, None)
    numbers = patching.with_statistics(footer_of([1], pa.int64()), 0, {patching.MIN: None, patching.MAX: None})
    assert bounds(known(patching.ordered(numbers, None), pa.int64())) == (None, None)


@pytest.mark.parametrize(
    ("created_by", "is_believed"),
    [
        ("parquet-mr version 1.8.0 (build x)", False),
        ("parquet-mr version 1.9.0", False),
        ("parquet-mr version 1.10.0 (build y)", True),
        ("parquet-mr version 1.13.1", True),
        ("parquet-mr", False),
        ("parquet-cpp version 1.2.0", False),
        ("parquet-cpp-arrow version 1.0.0", True),
        ("", True),
        ("some garbage", True),
        (None, True),
    ],
)
def test_t20_writers_known_for_broken_bounds_of_bytes_are_not_believed(created_by, is_believed):
    texts = patching.written_by(footer_of(["a", "b"], pa.string()), created_by)
    assert (known(texts, pa.string()).low == b"a") == is_believed
    unsigned = patching.written_by(footer_of([1, 2], pa.uint32()), created_by)
    assert (known(unsigned, pa.uint32()).low == 1) == is_believed
    numbers = patching.written_by(footer_of([1, 2], pa.int32()), created_by)
    assert known(numbers, pa.int32()).low == 1


def test_t21_unsigned_numbers_are_unsigned():
    assert bounds(of([1, 2147483653], pa.uint32())) == (1, 2147483653)
    assert bounds(of([1, 9223372036854775813], pa.uint64())) == (1, 9223372036854775813)
    assert bounds(of([1, 255], pa.uint8(), pa.uint64())) == (1, 255)


def known_decimal(footer: Footer, precision: int, scale: int) -> Known:
    scalar = Scalar(TypeKind.DECIMAL, precision=precision, scale=scale)
    table = TableSchema(fields=(Field(id=1, name="c", type=scalar),), last_id=1)
    return known_of(entry_of(footer, table).columns[0], table, 0, footer.row_group_count)


@pytest.mark.parametrize("options", [{}, {"store_decimal_as_integer": True}])
def test_t22_decimals_are_signed_and_scaled_exactly(options):
    values = [Decimal("-1.00"), Decimal("1.00")]
    narrow = footer_of(values, pa.decimal128(9, 2), **options)
    assert bounds(known_decimal(narrow, 9, 2)) == (-100, 100)
    assert bounds(known_decimal(narrow, 18, 4)) == (-10000, 10000)
    low, high = bounds(known_decimal(narrow, 30, 4))
    assert isinstance(low, bytes)
    assert isinstance(high, bytes)
    assert [len(low), len(high)] == [16, 16]
    assert [int.from_bytes(value, "big", signed=True) for value in (low, high)] == [-10000, 10000]


def test_t22_wide_decimals_are_sign_extended():
    low, high = bounds(known_decimal(footer_of([Decimal("-1.00"), Decimal("1.00")], pa.decimal128(20, 2)), 20, 2))
    assert low == b"\xff" * 15 + b"\x9c"
    assert high == bytes(15) + b"\x64"


def test_t22_genuine_decimals_of_variable_length():
    footer = load_footer(from_testing("byte_array_decimal")).footer
    node = footer.schema.leaves[0].node
    scalar = Scalar(TypeKind.DECIMAL, precision=node.logical.precision or 0, scale=node.logical.scale or 0)
    table = TableSchema(fields=(Field(id=1, name=node.name, type=scalar),), last_id=1)
    assert entry_of(footer, table).columns[0].flags[0] & 3 in (0, 3)


def test_t23_inverted_bounds_are_ignored():
    footer = footer_of([100, 900], pa.int64())
    forged = with_bounds(footer, ThriftBinary(struct.pack("<q", 900)), ThriftBinary(struct.pack("<q", 100)))
    assert bounds(known(forged, pa.int64())) == (None, None)
    texts = with_bounds(footer_of(["a", "b"], pa.string()), ThriftBinary(b"b"), ThriftBinary(b"a"))
    assert bounds(known(texts, pa.string())) == (None, None)
    wide = footer_of([Decimal("-1.00"), Decimal("1.00")], pa.decimal128(20, 2))
    forged = with_bounds(wide, ThriftBinary(bytes(8) + b"\x64"), ThriftBinary(b"\xff" * 8 + b"\x9c"))
    assert bounds(known_decimal(forged, 20, 2)) == (None, None)


@pytest.mark.parametrize("count", [None, I64(-1), I64(4)])
def test_t24_an_absent_or_absurd_null_count_is_unknown(count):
    footer = patching.with_statistics(footer_of([5, None, 5], pa.int64()), 0, {patching.NULLS: count})
    assert known(footer, pa.int64()).nulls is None


def test_t24_required_columns_have_no_nulls_whatever_they_say():
    field = pa.field("c", pa.int64(), nullable=False)
    footer = opened(written(pa.table([pa.array([1])], schema=pa.schema([field])), write_statistics=False))
    assert known(footer, pa.int64()).nulls == 0


def test_t24_bounds_of_a_chunk_without_values_are_ignored():
    footer = with_bounds(footer_of([None, None], pa.int64()), ThriftBinary(bytes(8)), ThriftBinary(bytes(8)))
    assert bounds(known(footer, pa.int64())) == (None, None)


def test_t25_leaves_inside_lists_have_places_and_no_statistics():
    values = pa.array([[1, 2], [], None, [None, 9]], pa.list_(pa.int64()))
    footer = opened(written(pa.table({"c": values})))
    table = from_arrow(pa.schema([pa.field("c", pa.list_(pa.int64()))]))
    column = entry_of(footer, table).columns[0]
    assert column.flags[0] == 0
    assert struct.unpack("<q", column.value_counts) == (6,)
    assert struct.unpack("<q", column.sizes)[0] > 0


def test_t25_leaves_of_structs_count_rows_in_which_the_struct_is_null():
    type_ = pa.struct([pa.field("x", pa.int64())])
    footer = opened(written(pa.table({"c": pa.array([{"x": 1}, None, {"x": None}], type_)})))
    assert known(footer, type_).nulls == 2
    assert bounds(known(footer, type_)) == (1, 1)


def test_t38_types_without_order_have_no_bounds():
    assert bounds(of([np.float16(1)], pa.float16())) == (None, None)
    table = from_arrow(pa.schema([pa.field("c", pa.float16())]))
    assert entry_of(footer_of([np.float16(1)], pa.float16()), table).columns[0].low == b""


def test_blooms_are_flagged_but_on_floats():
    table = pa.table({"c": [1, 2], "f": [1.0, 2.0]})
    options = {"bloom_filter_options": {"c": {"ndv": 10}, "f": {"ndv": 10}}}
    footer = opened(written(table, **options))
    assert known(footer, pa.int64()).has_bloom
    assert not known(footer, pa.float64(), name="f").has_bloom


def test_statistics_of_duckdb_are_read(tmp_path):
    path = tmp_path / "x.parquet"
    duckdb.sql(
        "copy (select i::uinteger u, (i - 5)::decimal(25, 3) d, 'x' || i s, [1.5, 'nan'::double][1 + i % 2] f, "
        f"date '2020-01-01' + i::integer e from range(10) t(i)) to '{path}'"
    )
    footer = load_footer(path).footer
    assert bounds(known(footer, pa.uint32(), name="u")) == (0, 9)
    assert bounds(known(footer, pa.string(), name="s")) == (b"x0", b"x9")
    assert bounds(known(footer, pa.date32(), name="e")) == (18262, 18271)
    real = known(footer, pa.float64(), name="f")
    assert real.may_hold_nan
    assert real.high is None
