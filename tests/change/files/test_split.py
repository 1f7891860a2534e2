from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate import costly
from underlay.change.files.writer import split
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.convert.ddl import parse_ddl
from underlay.schema.partitioning.transform import partition_fields
from underlay.schema.table_schema import TableSchema


def parts(schema: TableSchema, data: pa.Table, *by: str) -> dict[tuple[bytes | None, ...], list[object]]:
    """The first column of each partition's rows, by its values."""
    found: dict[tuple[bytes | None, ...], list[object]] = {}
    for part in split(data, partition_fields(schema, by), schema):
        assert part.values not in found, "a partition came twice"
        found[part.values] = part.rows.column(0).to_pylist()
    return found


def one(type_: str, arrow: pa.DataType, values: list[object], by: str) -> dict[bytes | None, list[object]]:
    """The same for one column."""
    found = parts(parse_ddl(f"a {type_}"), pa.table({"a": pa.array(values, arrow)}), by)
    return {key[0]: value for key, value in found.items()}


def number(value: int) -> bytes:
    return struct.pack("<q", value)


def test_without_partitions_all_rows_are_one():
    schema = parse_ddl("a bigint")
    data = pa.table({"a": [3, 1, 2]})
    assert parts(schema, data) == {(): [3, 1, 2]}


def test_partitions_come_in_the_order_in_which_they_occur_and_rows_keep_theirs():
    found = one("bigint", pa.int64(), [5, 1, 5, None, 1, 5], "a")
    assert list(found.items()) == [(number(5), [5, 5, 5]), (number(1), [1, 1]), (None, [None])]


@pytest.mark.parametrize(
    ("type_", "arrow", "values", "expected"),
    [
        ("string", pa.string(), ["x", "", "x", None], [b"x", b"", None]),
        ("boolean", pa.bool_(), [True, False, True], [number(1), number(0)]),
        ("date", pa.date32(), [date(1970, 1, 2), date(1969, 12, 31)], [number(1), number(-1)]),
        ("decimal(5, 2)", pa.decimal128(5, 2), [Decimal("1.50"), Decimal("-1.50")], [number(150), number(-150)]),
    ],
)
def test_values_are_packed_as_bounds_are(type_: str, arrow: pa.DataType, values: list[object], expected: list[object]):
    assert list(one(type_, arrow, values, "a")) == expected


def test_both_zeros_are_one_partition_and_all_nans_another():
    nan = struct.unpack("<d", b"\x01\x00\x00\x00\x00\x00\xf8\xff")[0]
    found = one("double", pa.float64(), [0.0, math.nan, -0.0, nan, 1.0, None], "a")
    assert [len(values) for values in found.values()] == [2, 2, 1, 1]
    assert math.copysign(1.0, struct.unpack("<d", next(iter(found)) or b"")[0]) == 1.0


MOMENTS = [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(1970, 1, 1, tzinfo=UTC), None]


@pytest.mark.parametrize("by", ["year(a)", "month(a)", "day(a)", "hour(a)"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_moment_before_1970_lies_in_the_period_before(by: str, unit: str):
    arrow = pa.timestamp(unit, "UTC")
    data = pa.table({"a": pa.array(MOMENTS, pa.timestamp("us", "UTC")).cast(arrow, safe=False)})
    if unit in ("s", "ms"):  # an inexact cast rounds towards zero
        data = pa.table({"a": pa.array([-1, 0, None], pa.int64()).cast(arrow)})
    schema = from_arrow(data.schema)
    assert [key[0] for key in parts(schema, data, by)] == [number(-1), number(0), None]


def test_truncated_numbers_round_down():
    found = one("int", pa.int32(), [-1, 0, 9, 10, -10, -11], "truncate(10, a)")
    assert found == {number(-10): [-1, -10], number(0): [0, 9], number(10): [10], number(-20): [-11]}


def test_truncated_text_counts_characters():
    found = one("string", pa.string(), ["äbc", "äbd", "ä", "xyz"], "truncate(2, a)")
    assert found == {"äb".encode(): ["äbc", "äbd"], "ä".encode(): ["ä"], b"xy": ["xyz"]}


@costly
@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=40))
def test_buckets_hold_every_row_once(values: list[int | None]):
    found = one("bigint", pa.int64(), values, "bucket(4, a)")
    assert sorted(map(repr, (value for rows in found.values() for value in rows))) == sorted(map(repr, values))
    assert set(found) <= {None, *(number(bucket) for bucket in range(4))}
    for bucket, rows in found.items():
        assert all((value is None) == (bucket is None) for value in rows)
        for value in rows:
            assert list(one("bigint", pa.int64(), [value], "bucket(4, a)")) == [bucket]


@costly
@given(
    st.lists(
        st.tuples(st.sampled_from(["x", "y", None]), st.integers(0, 2), st.sampled_from([0.0, -0.0, 1.5, None])),
        min_size=1,
        max_size=30,
    )
)
def test_many_partition_fields_are_those_of_each_row(values: list[tuple[str | None, int, float | None]]):
    schema = parse_ddl("n bigint, a string, b bigint, c double")
    columns = [list(column) for column in zip(*values, strict=True)]
    data = pa.table(
        {
            "n": pa.array(range(len(values)), pa.int64()),
            "a": pa.array(columns[0], pa.string()),
            "b": pa.array(columns[1], pa.int64()),
            "c": pa.array(columns[2], pa.float64()),
        }
    )
    found = parts(schema, data, "a", "b", "c")
    expected: dict[tuple[bytes | None, ...], list[int]] = {}
    for place, (text, whole, real) in enumerate(values):
        packed = None if real is None else struct.pack("<d", real + 0.0)
        expected.setdefault((None if text is None else text.encode(), number(whole), packed), []).append(place)
    assert found == expected
    assert list(found) == list(expected)


def test_a_field_of_a_struct_partitions_rows():
    schema = parse_ddl("n bigint, s struct<x: bigint>")
    data = pa.table({"n": [1, 2, 3], "s": pa.array([{"x": 7}, None, {"x": None}], pa.struct([("x", pa.int64())]))})
    assert parts(schema, data, "s.x") == {(number(7),): [1], (None,): [2, 3]}


def test_no_rows_have_no_partition():
    assert one("bigint", pa.int64(), [], "a") == {}


def test_many_fields_with_many_values_do_not_run_into_each_other():
    """Six fields with 2,048 values each have 2^66 combinations."""
    names = "abcdef"
    data = pa.table({name: [*range(2_048), 0 if name == "a" else 5, 512 if name == "a" else 5] for name in names})
    schema = parse_ddl(", ".join(f"{name} bigint" for name in names))
    found = parts(schema, data, *names)
    assert len(found) == 2_050
    assert all(values == [int.from_bytes(key[0] or b"", "little")] for key, values in found.items())
