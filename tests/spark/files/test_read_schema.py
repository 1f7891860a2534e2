"""What Spark is asked of files of a layout. That its answers are right is in test_evolved and test_registered."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay as ul
from tests.contract.worlds import rename_column, widen_column
from underlay.spark.files.read_schema import BY_NAME, ReadColumns, reading_of

pytestmark = pytest.mark.local_only

MICROSECONDS = pa.timestamp("us", "UTC")


def reading(folder: Path, schema: pa.Schema, rows: pa.Table, **options: object) -> ReadColumns | None:
    """How a file of these rows, registered in a table of this schema, is read."""
    pq.write_table(rows, folder / "file.parquet", **options)
    table = ul.connect(folder / "lake").create_table("a.b", schema)
    table.register((folder / "file.parquet").as_uri(), ignore_surplus=True)
    snapshot = table.snapshot()
    return reading_of(snapshot.root.layouts[0], snapshot.schema)


def test_renamed_and_widened_columns_are_asked_for_as_they_lie(tmp_path: Path):
    schema = pa.schema([("a", pa.int32()), ("s", pa.struct([("x", pa.int32()), ("y", pa.string())]))])
    table = ul.connect(tmp_path).create_table("a.b", schema)
    table.append(pa.table({"a": [1], "s": [{"x": 1, "y": "y"}]}, schema))
    rename_column(table, "s", "t")
    widen_column(table, "a", "int64")
    snapshot = table.snapshot()
    found = reading_of(snapshot.root.layouts[0], snapshot.schema)
    assert found is not None
    assert found.schema.simpleString() == "struct<a:int,s:struct<x:int,y:string>>"
    assert found.names(snapshot.schema) == {
        ("a",): ("a",),
        ("s",): ("t",),
        ("s", "x"): ("t", "x"),
        ("s", "y"): ("t", "y"),
    }


def test_file_with_the_tables_columns_is_read_by_name(tmp_path: Path):
    rows = pa.table({"a": [1], "l": [["x"]]})
    assert reading(tmp_path, rows.schema, rows) == BY_NAME


def test_parts_that_the_table_does_not_have_are_not_asked_for(tmp_path: Path):
    rows = pa.table({"more": [1], "s": [{"x": 1, "more": 2}]})
    schema = pa.schema([("s", pa.struct([("x", pa.int64())])), ("absent", pa.string())])
    found = reading(tmp_path, schema, rows)
    assert found is not None
    assert found.schema.simpleString() == "struct<s:struct<x:bigint>>"
    assert found.columns[1] is None


@pytest.mark.parametrize("name", ["A", "a "])
def test_names_that_differ_by_case_alone_are_not_left_to_spark(tmp_path: Path, name: str):
    rows = pa.table({"a": pa.array([1], pa.int32()), name: [2]})
    assert (reading(tmp_path, pa.schema([("a", pa.int64())]), rows) is None) == (name == "A")


def test_int96_is_left_to_spark_only_where_it_has_no_nanoseconds(tmp_path: Path):
    rows = pa.table({"at": pa.array([1], MICROSECONDS)})
    assert reading(tmp_path, rows.schema, rows, use_deprecated_int96_timestamps=True) is None


def test_columns_without_any_value_are_not_left_to_spark(tmp_path: Path):
    rows = pa.table({"n": [1], "nothing": pa.nulls(1)})
    assert reading(tmp_path, pa.schema([("n", pa.int64()), ("nothing", pa.string())]), rows) is None
