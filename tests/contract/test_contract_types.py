"""Every type comes back exactly as it went in, by append and by registration."""

from __future__ import annotations

import math
import struct
from datetime import date
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from underlay.errors import SchemaMismatch

NAN, INF = math.nan, math.inf
BELOW, ABOVE = -(2**63), 2**63 - 1
LIST = pa.list_(pa.int32())
STRUCT = pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])

VALUES: dict[str, tuple[pa.DataType, list[object]]] = {
    "boolean": (pa.bool_(), [True, False, None]),
    **{
        f"{'u' if low == 0 else ''}int{bits}": (
            getattr(pa, f"{'u' if low == 0 else ''}int{bits}")(),
            [low, high, 0, 1, None],
        )
        for bits in (8, 16, 32, 64)
        for low, high in ((-(2 ** (bits - 1)), 2 ** (bits - 1) - 1), (0, 2**bits - 1))
    },
    "half": (pa.float16(), [np.float16(v) for v in (0.0, -0.0, 1.5, NAN, INF, -INF, 65504, 6e-8)] + [None]),
    "float": (pa.float32(), [0.0, -0.0, 1.5, NAN, INF, -INF, 3.4028234663852886e38, 1e-45, None]),
    "double": (pa.float64(), [0.0, -0.0, 0.1, NAN, INF, -INF, 1.7976931348623157e308, 5e-324, None]),
    "decimal4": (pa.decimal128(4, 2), [Decimal("-99.99"), Decimal("0.00"), Decimal("99.99"), None]),
    "decimal18": (pa.decimal128(18, 0), [Decimal(10**18 - 1), Decimal(1 - 10**18), None]),
    "decimal38": (pa.decimal128(38, 10), [Decimal(f"{'9' * 28}.{'9' * 10}"), Decimal("-0.0000000001"), None]),
    "string": (pa.string(), ["", "a\0b", "é", "\U0010ffff", "x" * 300, " ", None]),
    "binary": (pa.binary(), [b"", b"\0", b"\xff" * 40, b"\xc3", None]),
    "fixed": (pa.binary(3), [b"abc", b"\0\0\0", b"\xff\xff\xff", None]),
    "uuid": (pa.uuid(), [UUID(int=0).bytes, UUID(int=2**128 - 1).bytes, None]),
    "date": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), None]),
    "time_s": (pa.time32("s"), [0, 86399, None]),
    "time_ms": (pa.time32("ms"), [0, 86399999, None]),
    "time_us": (pa.time64("us"), [0, 86399999999, None]),
    "time_ns": (pa.time64("ns"), [0, 86399999999999, None]),
    "timestamp_s": (pa.timestamp("s"), [0, -1, 2**40, None]),
    "timestamp_ms": (pa.timestamp("ms"), [BELOW // 1000 + 1, ABOVE // 1000, -1, None]),
    "timestamp_us": (pa.timestamp("us"), [BELOW, ABOVE, -1, None]),
    "timestamp_ns": (pa.timestamp("ns"), [BELOW, ABOVE, -1, None]),
    "timestamp_s_utc": (pa.timestamp("s", "UTC"), [0, -1, None]),
    "timestamp_ms_utc": (pa.timestamp("ms", "UTC"), [BELOW // 1000 + 1, ABOVE // 1000, None]),
    "timestamp_us_kolkata": (pa.timestamp("us", "Asia/Kolkata"), [BELOW, ABOVE, None]),
    "timestamp_ns_utc": (pa.timestamp("ns", "UTC"), [BELOW, ABOVE, None]),
    "list": (LIST, [[], None, [None], [1, 2], [None, 3]]),
    "list_of_lists": (pa.list_(LIST), [[[]], [None], [[1], [], None], [], None]),
    "list_of_structs": (pa.list_(STRUCT), [[{"x": 1, "y": {"z": "a"}}, None], [{"x": None, "y": None}], [], None]),
    "map": (pa.map_(pa.string(), pa.float64()), [[("a", 1.0), ("b", None)], [], None, [("", NAN)]]),
    "map_of_lists": (pa.map_(pa.int32(), LIST), [[(1, [1]), (2, None), (3, [])], None]),
    "struct": (STRUCT, [{"x": 1, "y": {"z": "a"}}, {"x": None, "y": {"z": None}}, {"x": 2, "y": None}, None]),
    "struct_of_lists": (pa.struct([("l", LIST), ("m", pa.map_(pa.int32(), pa.bool_()))]), [
        {"l": [], "m": []}, {"l": None, "m": None}, {"l": [None], "m": [(1, None)]}, None,
    ]),
}  # fmt: skip
STORED_AS_MILLISECONDS = {
    pa.time32("s"): pa.time32("ms"),
    pa.timestamp("s"): pa.timestamp("ms"),
    pa.timestamp("s", "UTC"): pa.timestamp("ms", "UTC"),
}
"""Parquet has no seconds: a file of them is one of milliseconds, to everybody."""


def array_of(name: str) -> pa.Array:
    type_, values = VALUES[name]
    if pa.types.is_time(type_) or pa.types.is_timestamp(type_):
        return pa.array(values, pa.int32() if type_.bit_width == 32 else pa.int64()).cast(type_)
    return pa.array(values, type_)


def exactly(value: object) -> object:
    """A value in which NaN equals itself and zeros have signs."""
    if isinstance(value, float | np.floating):
        return "nan" if math.isnan(value) else struct.pack("<d", float(value))
    if isinstance(value, list | tuple):
        return [exactly(part) for part in value]
    return {name: exactly(part) for name, part in value.items()} if isinstance(value, dict) else value


def plain(column: pa.ChunkedArray) -> object:
    """Values as Python has them; points in time as integers, since Python's years end."""
    if pa.types.is_timestamp(column.type) or pa.types.is_time(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return [exactly(value) for value in column.to_pylist()]


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    assert [field.type for field in found.schema] == [field.type for field in expected.schema]
    for name in expected.schema.names:
        assert plain(found[name]) == plain(expected[name]), name
    found.validate(full=True)


@pytest.mark.parametrize("block_rows", [1, 2, 100])
@pytest.mark.parametrize("name", VALUES)
def test_values_come_back_exactly(memory, name, block_rows):
    data = pa.table({"c": array_of(name), "n": range(len(VALUES[name][1]))})
    table = memory.create(data.schema, block_rows=block_rows)
    table.append(data)
    assert_same(table.to_arrow(), data)
    assert table.count("c is null") == data["c"].null_count
    assert table.count("c is not null") == len(data) - data["c"].null_count
    if block_rows == 1:
        for at in range(len(data)):
            assert_same(table.scan(where=f"n = {at}").to_arrow(), data.slice(at, 1))


@pytest.mark.parametrize("name", VALUES)
def test_values_of_registered_files_come_back_exactly(memory, name):
    data = as_stored(pa.table({"c": array_of(name)}))
    table = memory.create(data.schema)
    table.register(memory.put_parquet(data, row_group_size=2, use_dictionary=False), memory.put_parquet(data))
    assert_same(table.to_arrow(), pa.concat_tables([data, data]))


def as_stored(data: pa.Table) -> pa.Table:
    """The table as a Parquet file has it."""
    return data.cast(
        pa.schema([field.with_type(STORED_AS_MILLISECONDS.get(field.type, field.type)) for field in data.schema])
    )


def all_types() -> pa.Table:
    """A column of each type, short ones repeated."""
    count = max(len(values) for _, values in VALUES.values())
    return pa.table({name: pa.concat_arrays([array_of(name)] * count).slice(0, count) for name in VALUES})


def test_all_types_in_one_table_on_every_store(world):
    data = all_types()
    table = world.create(data.schema, block_rows=3)
    table.append(data)
    table.append(data.slice(0, 0))
    assert_same(world.again().table("shop.sales").to_arrow(), data)
    stored = as_stored(data)
    other = world.create(stored.schema, "some.other")
    other.register(world.put_parquet(data))
    assert_same(other.to_arrow(), stored)


def test_a_file_of_milliseconds_is_no_file_of_seconds(memory):
    table = memory.create("c timestamp(s)")
    with pytest.raises(SchemaMismatch, match=r"timestamp\(ms\) in the file"):
        table.register(memory.put_parquet(pa.table({"c": pa.array([1], pa.timestamp("ms"))})))


@pytest.mark.parametrize("name", VALUES)
def test_a_column_of_nulls_comes_back_as_its_type(memory, name):
    type_ = VALUES[name][0]
    data = pa.table({"c": pa.nulls(4, type_), "n": range(4)})
    table = memory.create(data.schema, block_rows=3)
    table.append(data)
    assert_same(table.to_arrow(), data)
    assert table.plan(where="c is null").count() in (4, None)
    assert table.count("c is null") == 4
    assert table.count("c is not null") == 0
