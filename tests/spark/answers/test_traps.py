"""The traps of TRAPS.md on Spark: files of several writers, read by name, against the same rows read in full."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.contract.pruning.test_traps import with_bounds
from tests.contract.pruning.test_traps_of_shape import PARTITION_VALUES, without_bounds
from tests.contract.pruning.traps import by_duckdb, numbered, patched
from tests.contract.worlds import add_column, delete_positions, drop_column, widen_column
from tests.gate import part, some
from tests.index import patching
from tests.parquet.footers import written
from tests.spark.answers.fuzz import asked, in_memory, matching, wrongly_dropped
from tests.spark.answers.trap_rows import COUNT, NAN, VALUES, conditions, wide_rows
from underlay.api.lake import Lake
from underlay.parquet.footer.footer import KeyValue
from underlay.parquet.thrift.encode import I64, ThriftBinary
from underlay.spark.relation.relation import read_table
from underlay.spark.types.spark_types import spark_schema

UNSIGNED = ("t21", "t21_wide")
FLOAT_QUESTIONS = (
    "c > 2",
    "c <> 1",
    "not c < 2",
    "c < 5",
    "c = 1",
    "isnan(c)",
    "c = double('NaN')",
    "c < double('NaN')",
    "c in (1, 7)",
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return ul.connect(tmp_path / "a lake")


def assert_same(spark: SparkSession, lake: Lake, rows: pa.Table, wheres: Sequence[str], name: str = "t.t") -> None:
    """The table holds the rows once, and each condition finds the same of them as in memory.

    `make test` runs some of the conditions, and checks of all that no file is left out that has rows of the answer.
    The three tests of wide rows share their conditions there (`part`).
    """
    expected = dict(zip(wheres, matching(in_memory(spark, rows, lake.table(name)), wheres), strict=True))
    frame = read_table(spark, lake, name)
    frame.createOrReplaceTempView("trap_table")
    assert wrongly_dropped(frame, expected) == {}
    run = some(wheres)
    whole, *found = asked(spark, "trap_table", ("true", *run))
    assert whole == sorted(rows["n"].to_pylist())
    assert {where: rows for where, rows in zip(run, found, strict=True) if rows != expected[where]} == {}


def several(rows: pa.Table, files: int) -> pa.Table:
    """The rows as often as there are files, with numbers that go on."""
    at = rows.column_names.index("n")
    count = rows.num_rows
    parts = [
        rows.set_column(at, "n", pa.array(range(file * count, (file + 1) * count), pa.int64())) for file in range(files)
    ]
    return pa.concat_tables(parts)


def test_files_of_underlay(spark: SparkSession, lake: Lake):
    rows = wide_rows()
    table = lake.create_table("t.t", rows.schema, properties={"block_rows": 2})
    whole = several(rows, 2)
    table.append(whole.slice(0, COUNT))
    for at in range(COUNT, 2 * COUNT):
        table.append(whole.slice(at, 1))
    assert_same(spark, lake, whole, part(conditions(), 0))


def test_files_of_pyarrow_and_duckdb(spark: SparkSession, lake: Lake, tmp_path: Path):
    whole = several(wide_rows(), 3)
    blooms = {name: {"ndv": 10} for name in ("t5", "t1", "t9", "t24", "t22")}
    made = [
        written(whole.slice(0, COUNT), bloom_filter_options=blooms, write_page_index=True),
        written(whole.slice(COUNT, COUNT), row_group_size=1, use_dictionary=False),
        by_duckdb(whole.slice(2 * COUNT, COUNT)),
    ]
    register(lake.create_table("t.t", whole.schema), tmp_path, *made)
    assert_same(spark, lake, whole, part(conditions(), 1))


def test_files_of_spark(spark: SparkSession, lake: Lake, tmp_path: Path):
    """With timestamps as microseconds, as the session writes them, and as INT96, as Spark does by default."""
    columns = tuple(name for name in VALUES if name not in (*UNSIGNED, "t13_ms"))
    whole = several(wide_rows(columns), 2)
    table = lake.create_table("t.t", whole.schema)
    schema = spark_schema(table.snapshot().schema)
    for file, kind in enumerate(("TIMESTAMP_MICROS", "INT96")):
        rows = spark.createDataFrame(whole.slice(file * COUNT, COUNT), schema).coalesce(1)
        spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
        try:
            rows.write.parquet(str(tmp_path / kind))
        finally:
            spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        table.register(str(tmp_path / kind / "*.parquet"))
    assert_same(spark, lake, whole, part(conditions(columns), 2))


def register(table: ul.Table, folder: Path, *files: bytes) -> None:
    for number, data in enumerate(files):
        path = folder / f"{number}.parquet"
        path.write_bytes(data)
        table.register(str(path), ignore_surplus=True)


def damaged(rows: pa.Table, *patches: Callable[..., object]) -> list[bytes]:
    """A file of the rows for each way to patch its footer."""
    whole = several(rows, len(patches))
    count = rows.num_rows
    return [patched(written(whole.slice(at * count, count)), patch) for at, patch in enumerate(patches)]


def test_statistics_that_are_not_to_be_believed(spark: SparkSession, lake: Lake, tmp_path: Path):
    """T2, T4: floats. T23, T24, T26: whole numbers. T19, T20: text."""
    nan, one = struct.pack("<d", NAN), struct.pack("<d", 1.0)
    doubles = [with_bounds(one, nan), with_bounds(nan, nan), with_bounds(nan, one)]
    doubles += [lambda footer, order=order: patching.ordered(footer, order) for order in (2, 9)]
    inverted = with_bounds(struct.pack("<q", 900), struct.pack("<q", 100))
    numbers = [inverted, lambda footer: without_bounds(footer, 0)]
    numbers += [
        lambda footer, count=count: patching.with_statistics(footer, 0, {patching.NULLS: count})
        for count in (None, I64(-1), I64(9))
    ]
    wrong = with_bounds("aé".encode(), b"b")
    old = {patching.MIN_VALUE: None, patching.MAX_VALUE: None}
    old |= {patching.MIN: ThriftBinary("aé".encode()), patching.MAX: ThriftBinary(b"b")}
    text = [
        lambda footer: patching.ordered(patching.with_statistics(footer, 0, old), None),
        lambda footer: patching.ordered(wrong(footer), None),
        lambda footer: patching.written_by(wrong(footer), "parquet-mr version 1.8.0 (build x)"),
    ]
    cases = {
        "t.doubles": (pa.array([1.0, NAN]), doubles, FLOAT_QUESTIONS),
        "t.numbers": (
            pa.array([100, None, 900], pa.int64()),
            numbers,
            ("c < 500", "c = 100", "c > 500", "c <> 100", "c is null", "not (c <=> 100)", "c is not null"),
        ),
        "t.text": (pa.array(["aé", "az", "b"]), text, ("c = 'az'", "c < 'aé'", "c > 'b'", "c >= 'az'")),
    }
    for name, (values, patches, wheres) in cases.items():
        rows = numbered(values)
        table = lake.create_table(name, rows.schema)
        folder = tmp_path / name
        folder.mkdir()
        register(table, folder, *damaged(rows, *patches))
        assert_same(spark, lake, several(rows, len(patches)), wheres, name)


def test_columns_that_were_changed(spark: SparkSession, lake: Lake):
    """T7, T8: widened types. T32: a default of old files. T33: a name used again."""
    old = pa.table(
        {
            "i": pa.array([7, 9], pa.int32()),
            "f": pa.array([0.1, NAN], pa.float32()),
            "d": pa.array([Decimal("-1.50"), Decimal("12.34")], pa.decimal128(9, 2)),
            "again": pa.array([9, 10], pa.int64()),
            "n": pa.array([0, 1], pa.int64()),
        }
    )
    table = lake.create_table("t.t", old.schema, key=["i"])
    table.append(old)
    widen_column(table, "i", "int64")
    widen_column(table, "f", "float64")
    widen_column(table, "d", "decimal(22, 4)")
    drop_column(table, "again")
    add_column(table, "again", "int64")
    add_column(table, "late", "int64", "42")
    kinds = {"i": pa.int64(), "f": pa.float64(), "d": pa.decimal128(22, 4)}
    widened = old.drop_columns("again").cast(
        pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in old.drop_columns("again").schema])
    )
    widened = widened.append_column("again", pa.nulls(2, pa.int64())).append_column("late", pa.array([42, 42]))
    new = pa.table(
        {
            "i": pa.array([4294967303], pa.int64()),
            "f": pa.array([0.1]),
            "d": pa.array([Decimal("12.3450")], pa.decimal128(22, 4)),
            "n": pa.array([2], pa.int64()),
            "again": pa.array([9], pa.int64()),
            "late": pa.array([None], pa.int64()),
        }
    )
    table.append(new)
    wheres = (
        "i = 7", "i = 4294967303", "i in (9, 4294967305)", "i < 8", "f > 0.1D", "f = 0.1D", "f = float('0.1')",
        "f > 5", "isnan(f)", "d = 12.34", "d > 12.3399", "d = 12.3450", "d < -1.4999", "again = 9", "again = 10",
        "again is null", "late = 42", "late is null", "late <> 42", "late < 42", "late is not null",
    )  # fmt: skip
    assert_same(spark, lake, pa.concat_tables([widened, new]), wheres)


def test_dates_of_the_old_calendar_are_as_in_process(spark: SparkSession, lake: Lake, tmp_path: Path):
    """T16: what the file says is not what the writer meant, and all engines take it alike."""
    rows = numbered(pa.array([-171595, 10], pa.int32()).cast(pa.date32()))
    legacy = KeyValue(b"org.apache.spark.legacyDateTime", b"")
    table = lake.create_table("t.t", rows.schema)
    register(table, tmp_path, patched(written(rows), lambda footer: patching.with_keys(footer, legacy)))
    known = {number: day for day, number in zip(*table.to_arrow().select(["c", "n"]).to_pydict().values(), strict=True)}
    found = read_table(spark, lake, "t.t")
    assert {row.n: row.c for row in found.collect()} == known
    assert [found.where(found.c == day).count() for day in known.values()] == [1, 1]


def test_deleted_rows_are_in_no_answer(spark: SparkSession, lake: Lake):
    """T34."""
    rows = numbered(pa.array([1, 5, 6, 100], pa.int64()))
    table = lake.create_table("t.t", rows.schema)
    table.append(rows)
    delete_positions(table, {0: [0, 3]})
    assert_same(spark, lake, rows.slice(1, 2), ("c >= 0", "c = 1", "c <= 100", "c > 5", "c = 100"))
    assert spark.sql("select min(c), max(c), count(*) from trap_table").collect() == [(5, 6, 2)]


PARTITION_QUESTIONS = {
    "text": ("c = ''", "c is null", "c = 'a/b'", "c = '%2F'", "c > 'a'", "c <> ''", "c like '__HIVE%'"),
    "floats": ("c = 0", "c = -0.0D", "isnan(c)", "c > 0", "c <> 0", "c is null", "c < 1", "c >= 1"),
    "days": ("c = date '1969-12-31'", "c < date '1970-01-01'", "c >= date '1970-01-01'"),
    "years": ("c >= date '1969-06-01'", "c < date '1969-06-01'", "c = date '1969-01-01'", "c > date '1969-12-30'"),
    "negative": ("c = -1", "c < -10", "c >= -10", "c between -11 and -1", "c > -1"),
}


def test_partition_values(spark: SparkSession, lake: Lake):
    """T35."""
    assert PARTITION_QUESTIONS.keys() == PARTITION_VALUES.keys()
    for values, (kind, column, by) in PARTITION_VALUES.items():
        rows = numbered(pa.array(column, kind))
        lake.create_table(f"t.{values}", rows.schema, partition_by=[by]).append(rows)
        assert_same(spark, lake, rows, PARTITION_QUESTIONS[values], f"t.{values}")


def test_rows_in_other_orders(spark: SparkSession, lake: Lake, tmp_path: Path):
    """T36."""
    rows = numbered(pa.array([None, 9, 5, None, 4, 1], pa.int64()))
    whole = several(rows, 2)
    table = lake.create_table("t.t", rows.schema, sort_by=["-c"], properties={"block_rows": 2})
    table.append(whole.slice(0, 6))
    register(table, tmp_path, written(whole.slice(6).sort_by([("c", "descending")]), row_group_size=2))
    assert_same(spark, lake, whole, ("c = 5", "c < 5", "c is null", "c >= 9", "c <> 9"))


@pytest.fixture
def kolkata(spark: SparkSession) -> Iterator[None]:
    known = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    yield
    spark.conf.set("spark.sql.session.timeZone", known)


@pytest.mark.usefixtures("kolkata")
def test_zone_of_the_session_binds_literals(spark: SparkSession, lake: Lake):
    """T15, T17."""
    moments = [datetime(2021, 10, 31, hour, 30) for hour in (0, 1, 18, 19, 23)] + [datetime(1850, 6, 1)]
    rows = numbered(pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC")), "c": pa.array(moments)}))
    table = lake.create_table("t.t", rows.schema, partition_by=["day(at)"])
    for at in range(rows.num_rows):
        table.append(rows.slice(at, 1))
    wheres = (
        "at = timestamp '2021-10-31 06:00:00'", "at < timestamp '2021-11-01'", "at >= '2021-11-01 00:00:00'",
        "at = timestamp '2021-10-31 02:30:00 Europe/Warsaw'", "to_date(at) = date '2021-11-01'", "at > c",
        "c = timestamp_ntz '2021-10-31 18:30:00'", "c = timestamp '2021-10-31 18:30:00'", "c < date '2021-10-31'",
        "at = timestamp '1850-06-01 05:53:28'", "at < '1850-06-01 05:53:29'", "at < date '2021-11-01'",
    )  # fmt: skip
    assert_same(spark, lake, rows, wheres)
