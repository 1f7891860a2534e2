"""Values for $name and ? in where: the same rows as lake.sql, and never a part of the text."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

import underlay
from tests.gate import some
from underlay import col
from underlay.errors import BadPredicate, InvalidRequest

NEW_YEAR = datetime(2024, 1, 1)
COLUMNS = {
    "k": pa.array(range(4), pa.int64()),
    "i": pa.array([1, 5, None, 7], pa.int32()),
    "u": pa.array([2**64 - 1, 0, None, 1], pa.uint64()),
    "f": pa.array([0.1, math.nan, None, -0.0]),
    "r": pa.array([0.1, math.nan, None, 1.5], pa.float32()),
    "s": pa.array(["a", "it's", None, "$z"]),
    "dec": pa.array([Decimal("1.10"), Decimal("0.01"), None, Decimal("-1.00")], pa.decimal128(9, 2)),
    "d": pa.array([date(2024, 1, 1), date(2024, 1, 2), None, date(1969, 1, 1)]),
    "ts": pa.array([NEW_YEAR, NEW_YEAR + timedelta(hours=12), None, datetime(1969, 1, 1)], pa.timestamp("us")),
    "tz": pa.array([NEW_YEAR, NEW_YEAR + timedelta(hours=12), None, datetime(1969, 1, 1)], pa.timestamp("us", "UTC")),
    "t": pa.array([time(1), time(12, 30), None, time(0)], pa.time64("us")),
    "b": pa.array([True, False, None, True]),
    "bin": pa.array([b"\1", b"\xff", None, b""]),
    "id": pa.array([bytes(16), b"\xff" * 16, None, b"a" * 16], pa.uuid()),
}
VALUES = [
    1, -1, 0, 2**63, 1.0, 0.1, 1.5, -0.0, math.nan, math.inf, Decimal("1.1"), Decimal("0.010"), Decimal("-1"), True,
    False, None, "a", "it's", "$z", "1", "2024-01-01", "12:30:00", date(2024, 1, 1), NEW_YEAR,
    NEW_YEAR + timedelta(hours=12), NEW_YEAR.replace(tzinfo=UTC),
    datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), time(12, 30), b"\1", b"", UUID(int=0),
    UUID(bytes=b"a" * 16), np.int64(5), np.float32(0.1),
]  # fmt: skip


@pytest.fixture(scope="module")
def lake():
    lake = underlay.connect("memory://parameters", registry="none")
    rows = pa.table(COLUMNS)
    lake.create_table("a.p", rows.schema, properties={"block_rows": "1"}).append(rows)
    return lake


@pytest.fixture(scope="module")
def table(lake):
    return lake.table("a.p")


@pytest.mark.parametrize("column", [name for name in COLUMNS if name != "k"])
def test_every_value_means_what_it_means_in_sql(column, lake, table):
    for value in some(VALUES, 4):
        for shape in ("{} = $v", "k < 9 and {} >= ?", "{} in ($v)", "coalesce({0}, {0}) <> $v"):
            where = shape.format(column)
            given = [value] if "?" in where else {"v": value}
            try:
                rows = lake.sql(f"select k from a.p where {where} order by k", given).fetchall()
            except InvalidRequest:
                continue  # the value has no meaning for the column
            found = table.scan(["k"], where, params=given).to_arrow()["k"].to_pylist()
            assert found == [key for (key,) in rows], (where, value)


def test_parameters_prune(table):
    assert table.plan(None, "i = $v", params={"v": 5}).kept.blocks == 1
    assert table.plan(None, "i + 0 = ?", params=[5]).kept.blocks == 1
    assert table.plan(None, "year(ts) = $y and i < $y", params={"y": 2024}).kept.blocks == 2
    assert table.plan(None, "ts >= ? - interval 1 day", params=[NEW_YEAR]).kept.blocks == 2
    assert table.plan(None, "i = any($l)", params={"l": [5, 6]}).count() in (None, 1)
    assert table.count("i = any($l)", params={"l": [5, 6]}) == 1


def test_names_are_alike_in_any_case_and_may_come_twice(table):
    assert table.count("i >= $Low and i <= $high and k >= $low - 5", params={"low": 1, "HIGH": 5}) == 2


def test_another_value_is_another_question(table):
    for shape in ("i = ?", "i + 0 = ?"):
        assert [table.count(shape, params=[value]) for value in (1, 5, 6, 1.0, True, "7")] == [1, 1, 0, 1, 1, 1]


def test_text_that_looks_like_sql_stays_text(table):
    assert table.count("s = $v", params={"v": "' or 1 = 1 --"}) == 0
    assert table.count("lower(s) = $v or s = '$v'", params={"v": "it's"}) == 1


@pytest.mark.parametrize(
    ("where", "params", "message"),
    [
        ("i = $v", None, r"no value is given \(found \$v\)"),
        ("i = $v", {}, "no value is given"),
        ("i = $v", {"w": 1}, "no value is given"),
        ("i = $v", {"v": 1, "w": 2}, r"some given values are not used \(found \$w\)"),
        ("i = ? or i = ?", [1], r"no value is given \(found \$2\)"),
        ("i = ?", [1, 2], "some given values are not used"),
        ("i = 1", [1], "some given values are not used"),
        ("i = ? and k = $k", {"k": 1}, "cannot be mixed"),
        ("i + 0 = $v", {}, "no value is given"),
    ],
)
def test_a_value_too_few_or_too_many_is_refused(where, params, message, table):
    with pytest.raises(BadPredicate, match=message):
        table.scan(where=where, params=params)


@pytest.mark.parametrize("params", ["a", 1, b"x", {1: 2}])
def test_parameters_are_a_list_or_values_by_name(params, table):
    with pytest.raises(InvalidRequest):
        table.count("i = ?", params=params)


def test_parameters_go_with_text_only(table):
    with pytest.raises(InvalidRequest, match="condition that is text"):
        table.scan(where=col("i") == 1, params={"v": 1})
    with pytest.raises(InvalidRequest, match="condition that is text"):
        table.scan(params=[1])


def test_a_value_that_nobody_knows_is_refused(table):
    with pytest.raises(InvalidRequest):
        table.count("i = $v", params={"v": object()})


def test_arrays_that_print_alike_are_different_values(table):
    where = "list_contains($all, k * 1.0::double)"
    assert table.scan(["k"], where, params={"all": np.array([1 - 1e-12])}).to_arrow().num_rows == 0
    assert table.scan(["k"], where, params={"all": np.array([1.0])}).to_arrow()["k"].to_pylist() == [1]


def test_a_list_that_changes_after_it_was_given_changes_no_scan(table):
    where, values = "list_contains($all, k * 1.0::double)", [1.0]
    scan = table.scan(["k"], where, params={"all": values})
    values[:] = [2.0]
    assert scan.to_arrow()["k"].to_pylist() == [1]
    assert table.scan(["k"], where, params={"all": [1.0]}).to_arrow()["k"].to_pylist() == [1]
