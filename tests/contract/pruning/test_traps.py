"""The traps of pruning by statistics, by their numbers in TRAPS.md: numbers, text and time."""

from __future__ import annotations

import io
import math
import struct
from datetime import date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests import genuine
from tests.contract.pruning.traps import (
    assert_safe,
    by_duckdb,
    by_scan,
    by_sql,
    fresh,
    full,
    numbered,
    own,
    patched,
    registered,
    tables,
)
from tests.contract.worlds import widen_column
from tests.index import patching
from tests.parquet.footers import written
from underlay import col
from underlay.parquet.footer.footer import KeyValue
from underlay.parquet.thrift.encode import ThriftBinary

NAN = math.nan
FLOAT_QUESTIONS = (
    "c > 2",
    "c >= 1",
    "c <> 1",
    "NOT c < 2",
    "c NOT IN (1)",
    "c < 2",
    "c = 1",
    "isnan(c)",
    "NOT isnan(c)",
    "c = CAST('NaN' AS DOUBLE)",
    "c < CAST('NaN' AS DOUBLE)",
    "c IS NULL",
    "c IS NOT DISTINCT FROM 1",
)


def doubles(*values):
    return numbered(pa.array(values, pa.float64()))


def with_bounds(low: bytes | None, high: bytes | None):
    def patch(footer):
        changes = {patching.MIN_VALUE: low, patching.MAX_VALUE: high, patching.MIN: None, patching.MAX: None}
        return patching.with_statistics(
            footer, 0, {field: None if value is None else ThriftBinary(value) for field, value in changes.items()}
        )

    return patch


def from_testing(name):
    return (genuine.fixtures() / "parquet-testing" / "data" / f"{name}.parquet").read_bytes()


def whole(data: bytes, column: str, cast: pa.DataType | None = None) -> pa.Table:
    """A column of a genuine file, all rows."""
    values = pq.read_table(io.BytesIO(data), columns=[column])[column].combine_chunks()
    return numbered(values if cast is None else values.cast(cast))


def genuine_table(data: bytes, column: str, rows: pa.Table, schema: pa.Schema | None = None):
    """A table of one column `c` over a genuine file, which has no row numbers: values are compared."""
    world = fresh()
    table = world.create(schema or pa.schema([(column, rows["c"].type)]))
    table.register(world.put_parquet(data), ignore_surplus=True)
    return table


def assert_genuine(name: str, column: str, *wheres: str, cast: pa.DataType | None = None):
    """The values that a pruned scan of a genuine file finds are those of all rows; `{}` stands for the column."""
    data = from_testing(name)
    rows = whole(data, column, cast)
    table = genuine_table(data, column, rows)
    assert repr(table.to_arrow()[column].to_pylist()) == repr(rows["c"].to_pylist())
    for where, numbers in zip(wheres, full(rows, [w.format("c") for w in wheres]), strict=True):
        found = table.scan(where=where.format(f'"{column}"')).to_arrow()[column].to_pylist()
        assert repr(found) == repr(rows["c"].take(pa.array(numbers, pa.int64())).to_pylist()), where


def test_t1_nan_is_not_in_the_bounds():
    assert_safe(doubles(1.0, NAN), *FLOAT_QUESTIONS)
    assert_safe(doubles(1.0, NAN, 1.0, 1.0, None, 3.0), *FLOAT_QUESTIONS)


def test_t1_other_readers_are_safe_with_our_files(tmp_path):
    data = doubles(1.0, NAN)
    world = fresh()
    world.create(data.schema).append(data)
    (key,) = world.keys(".parquet")
    file = bytes(world.store.get(key)[0])
    metadata = pq.read_metadata(io.BytesIO(file)).row_group(0).column(0)
    assert metadata.statistics is None or not metadata.statistics.has_min_max
    assert "RLE_DICTIONARY" not in metadata.encodings
    assert metadata.bloom_filter_offset is None
    path = tmp_path / "ours.parquet"
    path.write_bytes(file)
    assert ds.dataset(path).to_table(filter=pc.field("c") != 1)["n"].to_pylist() == [1]
    wheres = ["c > 2", "c <> 1", "NOT c < 2", "isnan(c)"]
    with duckdb.connect() as connection:
        found = [connection.sql(f"select n from '{path}' where {where} order by n").fetchall() for where in wheres]
    assert [[number for (number,) in rows] for rows in found] == full(data, wheres)


def test_t2_nan_as_a_bound():
    data = doubles(1.0, NAN)
    nan = struct.pack("<d", NAN)
    for low, high in ((struct.pack("<d", 1.0), nan), (nan, nan), (nan, struct.pack("<d", 1.0))):
        table = registered(data.schema, patched(written(data), with_bounds(low, high)))
        assert_safe(data, *FLOAT_QUESTIONS, "c < 5", given=[table])
    assert_genuine("nan_in_stats", "x", "{} < 5", "{} > 2", "isnan({})", "{} <> 1")


@pytest.mark.parametrize("values", [(NAN, NAN), (NAN, None), (None, None), (None, NAN, None)])
def test_t3_no_bounds_are_not_no_rows(values):
    assert_safe(doubles(*values), *FLOAT_QUESTIONS)


def test_t4_an_order_that_is_not_known():
    data = doubles(1.0, -5.0, NAN)
    for order in (2, 9):
        table = registered(data.schema, patched(written(data), lambda f, order=order: patching.ordered(f, order)))
        assert_safe(data, *FLOAT_QUESTIONS, given=[table])
    for column in ("float_ieee754", "float_typedef", "double_ieee754", "double_typedef"):
        assert_genuine("floating_orders_nan_count", column, "{} > 1", "{} < 0", "isnan({})", "{} = 0", "{} <> 2")


@pytest.mark.parametrize("values", [(-0.0,), (0.0,), (-0.0, 5.0), (-5.0, 0.0), (0.0, -0.0)])
@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_t5_both_zeros(values, type_):
    data = numbered(pa.array(values, type_))
    code = "<f" if type_ == pa.float32() else "<d"
    wheres = ["c = 0.0", "c = -0.0", "c < 0", "c >= 0", "c <= -0.0", "c <> 0", "c IN (0.0)", "c > -0.0"]
    assert_safe(data, *wheres)
    narrow = patched(written(data), with_bounds(struct.pack(code, 0.0), struct.pack(code, max(values) or -0.0)))
    if min(values) >= 0:
        assert_safe(data, *wheres, given=[registered(data.schema, narrow)])


def test_t6_blooms_and_dictionaries_of_floats():
    data = doubles(*([-0.0] * 50 + [5.0] * 50))
    options = {"bloom_filter_options": {"c": {"ndv": 10}}, "use_dictionary": True}
    given = [
        own(data, block_rows=1000),
        registered(
            data.schema,
            written(data, **options),
        ),
    ]
    assert_safe(data, "c = 0.0", "c = 5", "c = -0.0", given=given)
    file = by_duckdb(data)
    assert_safe(data, "c = 0.0", given=[registered(data.schema, file)])


def test_t7_blooms_after_a_type_change():
    narrow = numbered(pa.array([7, 9], pa.int32()))
    data = numbered(pa.array([7, 9], pa.int64()))
    options = {"bloom_filter_options": {"c": {"ndv": 10}}}
    table = own(narrow, key=["c"], schema=narrow.schema)
    widen_column(table, "c", "int64")
    given = [table, registered(data.schema, written(narrow, **options))]
    assert_safe(data, "c = 7", "c = 8", "c = 4294967303", "c IN (9, 4294967305)", given=given)


def test_t8_bounds_after_a_type_change():
    single = numbered(pa.array([0.1, 3.0], pa.float32()))
    double = single.cast(pa.schema([("c", pa.float64()), ("n", pa.int64())]))
    table = own(single)
    widen_column(table, "c", "float64")
    questions = ["c > CAST('0.1' AS DOUBLE)", "c = CAST('0.1' AS DOUBLE)", "c < CAST('0.1' AS DOUBLE)", "c >= 3"]
    assert_safe(double, *questions, given=[table, registered(double.schema, written(single))])
    old = numbered(pa.array([Decimal("-1.50"), Decimal("12.34")], pa.decimal128(9, 2)))
    wide = old.cast(pa.schema([("c", pa.decimal128(22, 4)), ("n", pa.int64())]))
    table = own(old)
    widen_column(table, "c", "decimal(20, 2)")
    widen_column(table, "c", "decimal(22, 4)")
    questions = ["c = 12.34", "c = 12.3400", "c < -1.4999", "c > 12.3399", "c = 1234"]
    assert_safe(wide, *questions, given=[table, registered(wide.schema, written(old))])


def test_t9_bounds_that_were_cut():
    data = numbered(pa.array(["b" * 100, "b" * 99 + "c", "a"]))
    wheres = [f"c > '{'b' * 60}'", f"c = '{'b' * 100}'", f"c > '{'b' * 100}'", f"c <= '{'b' * 64}'", "c > 'b'"]
    assert_safe(data, *wheres)


@pytest.mark.parametrize(
    "text",
    ["\U0010ffff" * 40, "\ud7ff" * 40, "é" * 33, "a" * 63 + "é" * 5],
    ids=["last character", "before surrogates", "two bytes", "cut inside a character"],
)
def test_t10_bounds_rounded_up_at_the_edges(text):
    data = numbered(pa.array([text, "a", text + "z"]))
    assert_safe(data, f"c = '{text}'", f"c > '{text}'", f"c >= '{text}'", f"c < '{text}'", f"starts_with(c, '{text}')")


def test_t10_bytes_without_a_successor():
    data = numbered(pa.array([b"\xff" * 100, b"a", b"\xff" * 101], pa.binary()))
    for table in tables(data):
        for value in (b"\xff" * 100, b"\xff" * 101, b"a"):
            assert table.scan(["n"], col("c") == value).count() == 1
        assert table.count(col("c") > b"\xff" * 100) == 1
        assert table.count(col("c").starts_with(b"\xff" * 70)) == 2


def test_t11_a_cut_bound_is_no_value():
    long = ["a" * 200, "b" * 200]
    for table in tables(numbered(pa.array(long))):
        for found, true in ((table.plan().minimum("c"), long[0]), (table.plan().maximum("c"), long[1])):
            assert found is None or found.as_py() == true
    data = from_testing("binary_truncated_min_max")
    for column in ("utf8_full_truncation", "utf8_partial_truncation", "utf8_no_truncation"):
        rows = whole(data, column)
        plan = genuine_table(data, column, rows).plan()
        for found, true in ((plan.minimum(column), pc.min), (plan.maximum(column), pc.max)):
            assert found is None or found.as_py() == true(rows["c"]).as_py()
        assert_genuine("binary_truncated_min_max", column, "{} >= 'Kf'", "{} = 'Kevin Bacon'", "{} < 'Al'")


def test_t12_cut_bounds_that_were_merged():
    data = numbered(pa.array(["a" * 66] * 3 + ["a" * 67] * 3))
    assert_safe(data, f"c > '{'a' * 66}'", f"c = '{'a' * 67}'", f"c < '{'a' * 67}'")


def test_t13_timestamps_finer_than_milliseconds():
    moment = datetime(2020, 1, 1, 0, 0, 0, 123456)
    data = numbered(pa.array([moment], pa.timestamp("us")))
    wheres = [f"c {op} TIMESTAMP '2020-01-01 00:00:00.{end}'" for op in ("=", ">", "<") for end in ("123", "123456")]
    assert_safe(data, *wheres)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_t14_one_instant_in_several_units(unit):
    moments = [datetime(2020, 1, 1, 0, 0, 0, 123000), datetime(1969, 12, 31, 23, 59, 59, 999000)]
    data = numbered(pa.array(moments, pa.timestamp(unit)))
    wheres = [
        "c = TIMESTAMP '2020-01-01 00:00:00.123'",
        "c > TIMESTAMP '2020-01-01 00:00:00.122999'",
        "c < TIMESTAMP '1970-01-01'",
        "c >= TIMESTAMP '1969-12-31 23:59:59.999001'",
    ]
    coarse = data.cast(pa.schema([("c", pa.timestamp("ms")), ("n", pa.int64())]))
    given = [own(data), registered(data.schema, written(data)), registered(data.schema, written(coarse))]
    assert_safe(data, *wheres, given=given)


def test_t14_the_edges_of_nanoseconds():
    far = numbered(pa.array([-(2**63) // 1000 - 5, 2**63 // 1000 + 5, 0], pa.int64()).cast(pa.timestamp("us")))
    wheres = ["c < TIMESTAMP '1677-09-21 00:12:43'", "c > TIMESTAMP '2262-04-11 23:47:16.854775'", "c = '1970-01-01'"]
    assert_safe(far, *wheres, given=[own(far), registered(far.schema, written(far))])


def test_t15_with_and_without_a_zone():
    moments = [datetime(2021, 10, 31, 0, 30), datetime(2021, 10, 31, 1, 30), datetime(2021, 3, 1, 18, 30)]
    data = numbered(pa.array(moments, pa.timestamp("us", "Europe/Warsaw")))
    wheres = [
        "c = TIMESTAMPTZ '2021-10-31 02:30:00+02:00'",
        "c = TIMESTAMPTZ '2021-10-31 02:30:00+01:00'",
        "c < TIMESTAMPTZ '2021-03-02 00:00:00+05:30'",
        "c >= TIMESTAMPTZ '2021-03-02 00:00:00+05:30'",
    ]
    table = own(data, partition_by=["day(c)"])
    expected = full(data, wheres)
    assert by_scan(table, wheres) == expected
    assert by_scan(registered(data.schema, written(data)), wheres) == expected
    assert by_sql(table, wheres) == expected


def test_t16_dates_of_the_old_calendar():
    data = numbered(pa.array([-171595, 10], pa.int32()).cast(pa.date32()))
    legacy = KeyValue(b"org.apache.spark.legacyDateTime", b"")
    file = patched(written(data, row_group_size=1), lambda footer: patching.with_keys(footer, legacy))
    table = registered(data.schema, file)
    assert table.plan(where=col("c") == date(1500, 3, 1)).kept.blocks >= 1
    assert table.plan(where="c > DATE '1960-01-01'").kept.blocks >= 1
    assert by_scan(table, ["c > DATE '1960-01-01'"]) == [[1]]


def test_t17_instants_are_integers():
    data = numbered(
        pa.array([-3774000000 + 3208], pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp("us", "Europe/Stockholm"))
    )
    exact = "1850-05-30 01:13:28+00:00"
    wheres = [
        f"c {op} TIMESTAMPTZ '{moment}'" for op in ("=", ">", "<") for moment in (exact, "1850-05-30 01:13:59+00:00")
    ]
    expected = full(data, wheres)
    for table in (own(data), registered(data.schema, written(data))):
        assert by_scan(table, wheres) == expected


def test_t18_int96():
    data = numbered(pa.array([1, 10**18], pa.int64()).cast(pa.timestamp("ns")))
    file = written(data, use_deprecated_int96_timestamps=True)
    wheres = ["c > TIMESTAMP '2000-01-01'", "c < TIMESTAMP '1970-01-01 00:00:01'", "c IS NULL"]
    assert_safe(data, *wheres, given=[registered(data.schema, file)])
    assert_safe(data, *wheres, given=[own(data)])


def test_t18_we_never_write_int96():
    data = numbered(pa.array([1], pa.int64()).cast(pa.timestamp("ns")))
    world = fresh()
    world.create(data.schema).append(data)
    (key,) = world.keys(".parquet")
    assert pq.read_metadata(io.BytesIO(bytes(world.store.get(key)[0]))).schema.column(0).physical_type == "INT64"


def test_t19_deprecated_bounds_of_text():
    data = numbered(pa.array(["aé", "az", "b"]))

    def aged(footer):
        gone = {patching.MIN_VALUE: None, patching.MAX_VALUE: None}
        changes = {**gone, patching.MIN: ThriftBinary("aé".encode()), patching.MAX: ThriftBinary(b"b")}
        return patching.ordered(patching.with_statistics(footer, 0, changes), None)

    table = registered(data.schema, patched(written(data), aged))
    assert_safe(data, "c = 'az'", "c < 'aé'", "c > 'b'", "c >= 'az'", given=[table])


def test_t20_writers_that_are_not_believed():
    data = numbered(pa.array(["aé", "az", "b"]))
    wrong = with_bounds("aé".encode(), b"b")
    for patch in (
        lambda footer: patching.ordered(footer, None),
        lambda footer: patching.written_by(footer, "parquet-mr version 1.8.0 (build x)"),
    ):
        table = registered(data.schema, patched(written(data), wrong, patch))
        assert_safe(data, "c = 'az'", "c < 'aé'", "c > 'b'", given=[table])
