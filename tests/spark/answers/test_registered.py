"""Files of other writers: their rows in Spark are those of a scan, whatever their statistics say."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession

import underlay as ul
from tests.contract.pruning.traps import by_duckdb, numbered, patched
from tests.contract.worlds import delete_positions, rename_column
from tests.index import patching
from tests.parquet.footers import written
from tests.spark.relation.test_relation import found_by, planned
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.parquet.thrift.encode import ThriftBinary
from underlay.spark.ranged.frame import RangedReadWarning
from underlay.spark.relation.relation import read_table

NAN = math.nan
FLOATS = {
    "c > 2": "c > 2",
    "c <> 1": "c <> 1",
    "not (c < 2)": "not c < 2",
    "c not in (1)": "c not in (1)",
    "c in (0.0D, 7)": "c in (0.0, 7)",
    "c < 2": "c < 2",
    "c = double('NaN')": "c = cast('NaN' as double)",
    "isnan(c)": "isnan(c)",
    "c = 0.0D": "c = 0.0",
    "c = -0.0D": "c = -0.0",
    "c >= 0": "c >= 0",
    "c <= -0.0D": "c <= -0.0",
    "c <> 0": "c <> 0",
    "c < 0": "c < 0",
    "c <=> 1": "c is not distinct from 1",
    "c is null": "c is null",
}
"""Conditions as Spark has them, and as a scan has them."""
VALUES = [1.0, NAN, -0.0, 5.0, 5.0, None, 0.0, NAN, -3.0, -0.0, 1.0, 1.0, -0.0, -0.0, NAN, NAN, 1.0, NAN]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return ul.connect(tmp_path / "lake")


def put(folder: Path, name: str, data: bytes) -> str:
    """A file outside of the lake, in a folder whose name has to be quoted; its URL."""
    path = folder / "other 100%" / f"{name}.parquet"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path.as_uri()


def plainly(spark: SparkSession, url: str) -> DataFrame:
    """A file as Spark reads it without us."""
    return spark.read.parquet(unquote(url))


def found(frame: DataFrame, where: str) -> list[int]:
    return sorted(row.n for row in frame.where(where).select("n").collect())


def scanned(table: Table, where: str) -> list[int]:
    return sorted(table.scan(["n"], where).to_arrow()["n"].to_pylist())


def all_rows(data: pa.Table) -> list[str]:
    return sorted(map(str, data.to_pylist()))


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()])
def test_nan_and_both_zeros_are_found_in_files_of_every_writer(
    spark: SparkSession, lake: Lake, tmp_path: Path, type_: pa.DataType
):
    data = numbered(pa.array(VALUES, type_))
    options = {"bloom_filter_options": {"c": {"ndv": 10}}, "write_page_index": True}
    files = {
        "arrow": written(data, row_group_size=2),
        "indexed": written(data, row_group_size=6, data_page_size=1, write_batch_size=2, **options),
        "duckdb": by_duckdb(data),
        "zeros": by_duckdb(numbered(pa.array([-0.0] * 5000 + [5.0] * 5000, type_))),
    }
    folder = tmp_path / "spark"
    spark.createDataFrame(data).coalesce(1).write.parquet(str(folder))
    (by_spark,) = folder.glob("*.parquet")
    table = lake.create_table("reg.floats", data.schema)
    table.register(*(put(tmp_path, name, file) for name, file in files.items()), by_spark.as_uri())
    frame = read_table(spark, lake, "reg.floats")
    for (ours, theirs), rows in zip(FLOATS.items(), found_by(frame, FLOATS, "n"), strict=True):
        assert rows == scanned(table, theirs), ours
    plan = planned(frame.where("c > 2"))
    assert plan.count("FileScan parquet") == plan.count("Batched: true") == 1
    assert found(plainly(spark, put(tmp_path, "arrow", files["arrow"])), "c <> 1") != sorted(
        n for n, value in enumerate(VALUES) if value not in (1.0, None)
    )


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()])
def test_nan_and_both_zeros_are_found_in_our_own_files(spark: SparkSession, lake: Lake, type_: pa.DataType):
    data = numbered(pa.array(VALUES, type_))
    data = data.append_column("s", pa.array([{"c": value} for value in VALUES], pa.struct([("c", type_)])))
    table = lake.create_table("own.floats", data.schema, properties={"block_rows": "2"})
    table.append(data)
    table.append(data.slice(0, 7))
    frame = read_table(spark, lake, "own.floats")
    answers = zip(found_by(frame, FLOATS, "n"), found_by(frame.selectExpr("n", "s.c"), FLOATS, "n"), strict=True)
    for (ours, theirs), (rows, nested) in zip(FLOATS.items(), answers, strict=True):
        assert rows == nested == scanned(table, theirs), ours


def test_bounds_that_lie_hide_no_row(spark: SparkSession, lake: Lake, tmp_path: Path):
    data = numbered(pa.array([100, 500, 900], pa.int64()))
    inverted = {patching.MIN_VALUE: 900, patching.MAX_VALUE: 100, patching.MIN: 900, patching.MAX: 100}
    bounds = {field: ThriftBinary(struct.pack("<q", value)) for field, value in inverted.items()}
    lying = patched(written(data), lambda footer: patching.with_statistics(footer, 0, bounds))
    place = put(tmp_path, "lying", lying)
    lake.create_table("reg.lies", data.schema).register(place)
    frame = read_table(spark, lake, "reg.lies")
    assert found(frame, "c < 600") == [0, 1]
    assert found(frame, "c = 900") == [2]
    assert found(plainly(spark, place), "c < 600") != [0, 1]


def test_columns_are_found_by_name_and_widened(spark: SparkSession, lake: Lake, tmp_path: Path):
    schema = pa.schema(
        [
            ("n", pa.int64()),
            ("f", pa.float64()),
            ("d", pa.decimal128(20, 4)),
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("s", pa.struct([("x", pa.int64()), ("y", pa.string())])),
            ("l", pa.list_(pa.int64())),
            ("u", pa.int64()),
        ]
    )
    narrow = pa.schema(
        [
            ("surplus", pa.string()),
            ("l", pa.list_(pa.int32())),
            ("s", pa.struct([("z", pa.int32()), ("y", pa.string()), ("x", pa.int32())])),
            ("n", pa.int32()),
            ("f", pa.float32()),
            ("d", pa.decimal128(7, 2)),
            ("at", pa.timestamp("ms", "UTC")),
            ("day", pa.date32()),
            ("u", pa.uint32()),
        ]
    )
    rows = [
        {
            "surplus": "x",
            "l": [n, None],
            "s": {"z": 1, "y": "y", "x": n} if n % 2 else None,
            "n": n,
            "f": n / 10,
            "d": Decimal(n) / 4,
            "at": datetime(1850, 1, 1, n, tzinfo=UTC),
            "day": date(1500, 1, 1 + n),
            "u": 2**32 - 1 - n,
        }
        for n in range(4)
    ]
    table = lake.create_table("reg.narrow", schema)
    narrow_rows = pa.Table.from_pylist(rows, narrow)
    table.register(put(tmp_path, "narrow", written(narrow_rows)), ignore_surplus=True)
    table.register(put(tmp_path, "duck", by_duckdb(narrow_rows.drop_columns(["l"]))), ignore_surplus=True)
    table.append(table.to_arrow().slice(0, 1))
    delete_positions(table, {0: [3]})
    rename_column(table, "f", "g")
    frame = read_table(spark, lake, "reg.narrow")
    assert all_rows(frame.toArrow()) == all_rows(table.to_arrow())
    wheres = ("n = 2", "g > 0.1", "d = 0.25", "u = 4294967294", "day < '1500-01-03'", "g = 0.2")
    for where, rows_found in zip(wheres, found_by(frame, wheres, "n"), strict=True):
        assert rows_found == scanned(table, where), where


def test_times_of_older_writers_are_those_of_a_scan(spark: SparkSession, lake: Lake, tmp_path: Path):
    times = [datetime(1, 1, 1, tzinfo=UTC), datetime(1850, 6, 1, 1, 2, 3, 456789, tzinfo=UTC), None]
    data = pa.table({"n": range(3), "at": pa.array(times, pa.timestamp("us", "UTC"))})
    schema = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        spark.createDataFrame(data).coalesce(1).write.parquet(str(tmp_path / "spark"))
    finally:
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    (by_spark,) = (tmp_path / "spark").glob("*.parquet")
    assert pq.read_metadata(by_spark).schema.column(1).physical_type == "INT96"
    table = lake.create_table("reg.times", schema)
    table.register(by_spark.as_uri())
    frame = read_table(spark, lake, "reg.times")
    assert "FileScan parquet" in planned(frame)
    assert all_rows(frame.toArrow()) == all_rows(table.to_arrow())
    assert found(frame, "at < timestamp '1800-01-01 00:00:00Z'") == [0]


def test_what_spark_would_read_otherwise_comes_through_the_ranged_reader(
    spark: SparkSession, lake: Lake, tmp_path: Path
):
    data = pa.table({"n": [1, 2], "at": pa.array([1, 1_000_001], pa.timestamp("us"))})
    table = lake.create_table("reg.ranged", data.schema)
    twins = data.append_column("N", pa.array([8, 9]))
    table.register(put(tmp_path, "twins", written(twins)), ignore_surplus=True)
    int96 = written(data, use_deprecated_int96_timestamps=True)
    table.register(put(tmp_path, "int96", int96))
    table.append(data)
    with pytest.warns(RangedReadWarning, match=r"reg\.ranged"):
        frame = read_table(spark, lake, "reg.ranged")
    assert all_rows(frame.toArrow()) == all_rows(table.to_arrow())
    assert planned(frame).count("FileScan parquet") == 1


@pytest.mark.parametrize("name", ["byte_array_decimal", "variant-case-045"])
def test_forms_at_which_sparks_reader_fails_come_through_the_ranged_reader(
    spark: SparkSession, lake: Lake, fixtures: Path, name: str
):
    path = fixtures / "parquet-testing" / "data" / f"{name}.parquet"
    table = lake.create_table(f"reg.{name.replace('-', '_')}", pq.read_schema(path))
    table.register(str(path))
    with pytest.warns(RangedReadWarning, match="Spark cannot read the format or the store"):
        frame = read_table(spark, lake, table.name)
    assert all_rows(frame.toArrow()) == all_rows(table.to_arrow())


def test_types_that_spark_does_not_have_come_through_the_ranged_reader(spark: SparkSession, lake: Lake):
    table = lake.create_table("reg.types", pa.schema([("n", pa.int64()), ("at", pa.timestamp("ns"))]))
    table.append(pa.table({"n": [1], "at": pa.array([5_000], pa.timestamp("ns"))}))
    with pytest.warns(RangedReadWarning, match=r"timestamp\(ns\)"):
        frame = read_table(spark, lake, "reg.types")
    assert frame.selectExpr("n", "unix_micros(cast(at as timestamp))").collect() == [(1, 5)]


def test_a_registered_file_that_was_replaced_or_deleted_is_refused(spark: SparkSession, lake: Lake, tmp_path: Path):
    """T37."""
    table = lake.create_table("reg.replaced", "n bigint")
    for name, values in (("a", [1, 2]), ("b", [10])):
        table.register(put(tmp_path, name, written(pa.table({"n": values}))))
    frame = read_table(spark, lake, "reg.replaced")
    assert sorted(frame.toArrow()["n"].to_pylist()) == [1, 2, 10]
    put(tmp_path, "a", written(pa.table({"n": [1] * 9})))
    for where in ("true", "n < 5"):
        with pytest.raises(SparkRuntimeException, match="replaced since it was registered"):
            frame.where(where).collect()
    assert frame.where("n = 10").count() == 1  # the file that is as it was
    (tmp_path / "other 100%" / "b.parquet").unlink()
    with pytest.raises(SparkRuntimeException, match="a registered file is missing"):
        frame.where("n = 10").collect()
