"""Entries of files with one block, read number by number: the same as those read with arrays."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underlay.index.entry import ColumnEntry, Flag
from underlay.index.intake.entries import match_footer, written_entry
from underlay.index.intake.one_block import written_columns
from underlay.index.intake.schema_match import Misfit
from underlay.index.intake.statistics import column_entries
from underlay.parquet.bulk.stack import stack_of
from underlay.parquet.write.writer import WriteOptions, WrittenFile, write_files
from underlay.schema.convert.arrow import from_arrow, to_arrow
from underlay.schema.table_schema import TableSchema

FLOATS = st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, math.nan]))
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[object]]] = {
    "flag": (pa.bool_(), st.booleans()),
    "tiny": (pa.int8(), st.integers(-128, 127)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "byte": (pa.uint8(), st.integers(0, 255)),
    "unsigned": (pa.uint32(), st.integers(0, 2**32 - 1)),
    "wide": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float": (pa.float32(), FLOATS),
    "double": (pa.float64(), FLOATS),
    "text": (pa.string(), st.text(max_size=3) | st.sampled_from(["é" * 40, "\U0010ffff" * 20, "a" * 64, "a" * 65])),
    "bytes": (pa.binary(), st.binary(max_size=3) | st.sampled_from([b"\xff" * 70, b"b" * 70])),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "day": (pa.date32(), st.dates(date(1900, 1, 1), date(2100, 1, 1))),
    "clock": (pa.time64("us"), st.times()),
    "moment": (pa.timestamp("us", "UTC"), st.datetimes(datetime(1900, 1, 1), timezones=st.just(UTC))),
    "list": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(0, 9), max_size=2)),
    "part": (pa.struct([("x", pa.float64())]), st.fixed_dictionaries({"x": st.none() | FLOATS})),
}
NEVER_HASHED = ("flag", "float", "double", "list", "part")


def one_file(columns: dict[str, pa.Array], bloom: list[str]) -> tuple[WrittenFile, TableSchema]:
    table = pa.table(columns)
    schema = from_arrow(table.schema)
    arrow = to_arrow(schema)
    (file,) = write_files([table.cast(arrow)], arrow, WriteOptions(bloom=dict.fromkeys(bloom, 0.01)))
    return file, schema


def by_arrays(file: WrittenFile, schema: TableSchema) -> tuple[ColumnEntry, ...]:
    layout = match_footer(file.footer, schema, by="id")
    assert not isinstance(layout, Misfit)
    (columns,) = column_entries(stack_of(file.footer), layout, schema, nan_free=file.nan_free)
    return columns


def by_number(file: WrittenFile, schema: TableSchema) -> tuple[ColumnEntry, ...] | None:
    layout = match_footer(file.footer, schema, by="id")
    assert not isinstance(layout, Misfit)
    return written_columns(file.footer, layout, schema, file.nan_free)


@given(data=st.data())
def test_numbers_one_by_one_are_those_read_with_arrays(data: st.DataObject):
    names = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=6, unique=True))
    row_count = data.draw(st.integers(1, 4))
    columns = {}
    for name in names:
        type_, values = COLUMNS[name]
        rows = st.lists(st.none() | values, min_size=row_count, max_size=row_count)
        columns[name] = pa.array(data.draw(rows), type_)
    file, schema = one_file(columns, [name for name in names if name not in NEVER_HASHED])
    found = by_number(file, schema)
    assert found is not None
    assert found == by_arrays(file, schema)


def test_required_columns_are_those_read_with_arrays():
    table = pa.table(
        {"a": [1, 2], "s": ["x", "y"]},
        pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("s", pa.string(), nullable=False)]),
    )
    schema = from_arrow(table.schema)
    (file,) = write_files([table.cast(to_arrow(schema))], to_arrow(schema), WriteOptions())
    found = by_number(file, schema)
    assert found == by_arrays(file, schema)
    assert found is not None
    assert found[0].flags[0] & Flag.HAS_NULL_COUNT


@pytest.mark.parametrize(
    "values",
    [
        pa.array([Decimal("1.5")], pa.decimal128(30, 2)),
        pa.array([datetime(2020, 1, 1)], pa.timestamp("s")),
        pa.array([time(1, 2)], pa.time32("s")),
    ],
    ids=["wide decimals", "seconds", "seconds of a day"],
)
def test_what_is_converted_on_its_way_is_left_to_arrays(values: pa.Array):
    file, schema = one_file({"a": values}, [])
    assert by_number(file, schema) is None
    assert written_entry(file, schema, "name.parquet")[0].columns == by_arrays(file, schema)


def test_a_file_of_many_blocks_is_left_to_arrays():
    schema = from_arrow(pa.schema([pa.field("a", pa.int64())]))
    rows = pa.table({"a": [3, 1, 2]}).cast(to_arrow(schema))
    (file,) = write_files([rows], to_arrow(schema), WriteOptions(block_rows=2))
    assert by_number(file, schema) is None
    entry, _ = written_entry(file, schema, "name.parquet")
    assert struct.unpack("<2q", entry.columns[0].low) == (1, 2)
