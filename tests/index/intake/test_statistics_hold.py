"""Whatever is written, what the index keeps of it is true of the decoded values."""

from __future__ import annotations

import datetime
import io
import math
import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from tests.index.known import Known, entry_of, known_of
from tests.index.patching import opened
from tests.parquet.footers import written
from underlay.index.entry import FileEntry
from underlay.parquet.write.writer import WriteOptions, write_files
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Field, Scalar, TypeKind

COLUMNS: list[tuple[Scalar, st.SearchStrategy[object]]] = [
    (Scalar(TypeKind.INT64), st.integers(-(2**63), 2**63 - 1)),
    (Scalar(TypeKind.INT8), st.integers(-128, 127)),
    (Scalar(TypeKind.UINT32), st.integers(0, 2**32 - 1)),
    (Scalar(TypeKind.UINT64), st.integers(0, 2**64 - 1)),
    (Scalar(TypeKind.FLOAT64), st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5]) | st.floats()),
    (Scalar(TypeKind.FLOAT32), st.sampled_from([0.0, -0.0, math.nan]) | st.floats(width=32)),
    (Scalar(TypeKind.STRING), st.text(st.characters(exclude_categories=["Cs"]), max_size=90)),
    (Scalar(TypeKind.BINARY), st.binary(max_size=90) | st.just(b"\xff" * 80)),
    (Scalar(TypeKind.BOOLEAN), st.booleans()),
    (Scalar(TypeKind.DATE), st.dates()),
    (Scalar(TypeKind.TIMESTAMP, unit="us"), st.datetimes()),
    (Scalar(TypeKind.TIMESTAMP, unit="s"), st.datetimes().map(lambda t: t.replace(microsecond=0))),
    (Scalar(TypeKind.DECIMAL, precision=9, scale=2), st.decimals(-9_999_999, 9_999_999, places=2)),
    (Scalar(TypeKind.DECIMAL, precision=30, scale=3), st.decimals(-(10**20), 10**20, places=3)),
]
TABLE = TableSchema(
    fields=tuple(Field(id=at + 1, name=f"c{at}", type=scalar) for at, (scalar, _) in enumerate(COLUMNS)),
    last_id=len(COLUMNS),
)
EPOCH = datetime.datetime(1970, 1, 1)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 12))
    arrays = []
    for (_, values), field in zip(COLUMNS, to_arrow(TABLE), strict=True):
        drawn = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        arrays.append(pa.array(drawn, field.type))
    return pa.table(arrays, schema=to_arrow(TABLE))


def stored(value: object, scalar: Scalar) -> object:
    """A value as it is ordered in the index."""
    match value:
        case Decimal():
            return int(value.scaleb(scalar.scale))
        case datetime.datetime():
            microseconds = (value - EPOCH) // datetime.timedelta(microseconds=1)
            return microseconds if scalar.unit == "us" else microseconds // 10**6
        case datetime.date():
            return (value - EPOCH.date()).days
        case str():
            return value.encode()
        case bool():
            return int(value)
    return value


def bound(value: object, scalar: Scalar) -> object:
    if scalar.kind is TypeKind.DECIMAL and storage_of(scalar) is Storage.BYTES and isinstance(value, bytes):
        return int.from_bytes(value, "big", signed=True)
    return value


def assert_true(known: Known, leaf: LeafColumn, values: list[object]) -> None:
    there = [stored(value, leaf.type) for value in values if value is not None]
    assert known.nulls == len(values) - len(there)
    is_nan = [isinstance(value, float) and math.isnan(value) for value in there]
    assert known.may_hold_nan or not any(is_nan)
    numbers = [value for value, nan in zip(there, is_nan, strict=True) if not nan]
    low, high = bound(known.low, leaf.type), bound(known.high, leaf.type)
    for value in numbers:
        assert low is None or low <= value
        assert high is None or value <= high
    if known.is_low_exact:
        assert low == min(numbers)
    if known.is_high_exact:
        assert high == max(numbers)
    for side, sign in ((low, -1.0), (high, 1.0)):
        assert side != 0.0 or not isinstance(side, float) or math.copysign(1, side) == sign


def assert_entry_true(entry: FileEntry, data: bytes) -> None:
    file = pq.ParquetFile(io.BytesIO(data))
    rows = struct.unpack(f"<{file.num_row_groups}q", entry.block_rows)
    assert len(entry.columns) == len(COLUMNS)
    for block in range(file.num_row_groups):
        decoded = file.read_row_group(block)
        assert decoded.num_rows == rows[block]
        for column, leaf in zip(entry.columns, TABLE.leaves, strict=True):
            values = decoded.column(column.column).to_pylist()
            assert_true(known_of(column, TABLE, block, file.num_row_groups), leaf, values)


@given(tables(), st.integers(1, 5))
def test_bounds_of_files_that_pyarrow_writes_hold(table, block_rows):
    data = written(table, row_group_size=block_rows)
    assert_entry_true(entry_of(opened(data), TABLE, by="id"), data)


@given(tables(), st.integers(1, 5))
def test_bounds_of_our_own_files_hold_and_nan_is_known_exactly(table, block_rows):
    (file,) = write_files([table], to_arrow(TABLE), WriteOptions(block_rows=block_rows))
    entry = entry_of(file.footer, TABLE, nan_free=file.nan_free, by="id")
    assert_entry_true(entry, file.data())
    for column, leaf in zip(entry.columns, TABLE.leaves, strict=True):
        for block in range(file.footer.row_group_count):
            known = known_of(column, TABLE, block, file.footer.row_group_count)
            values = table.column(column.column).slice(block * block_rows, block_rows).to_pylist()
            holds_nan = any(isinstance(value, float) and math.isnan(value) for value in values)
            assert known.may_hold_nan == holds_nan
            if holds_nan:
                assert (known.low, known.high) == (None, None)
            elif leaf.type.kind is TypeKind.INT64 and any(value is not None for value in values):
                assert known.is_low_exact
                assert known.is_high_exact
