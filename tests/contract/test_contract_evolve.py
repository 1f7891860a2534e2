"""Columns that change under files that do not, partitions and order, the same on every store."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.contract.worlds import add_column, drop_column, rename_column, widen_column
from underlay import col
from underlay.errors import SchemaMismatch, UnknownColumn

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "f": pa.array([0.1, None, 2.5], pa.float32())})


def rows(table, where=None, columns=None):
    return table.scan(columns, where).to_arrow().to_pylist()


def test_an_added_column_has_its_default_in_old_files(world):
    table = world.create("id int")
    table.append(ROWS.select(["id"]))
    add_column(table, "c", "int64", "42")
    table.append(pa.table({"id": pa.array([4, 5], pa.int32()), "c": [None, 7]}))
    assert [row["c"] for row in rows(table)] == [42, 42, 42, None, 7]
    assert [row["id"] for row in rows(table, "c = 42")] == [1, 2, 3]
    assert [row["id"] for row in rows(table, "c is null")] == [4]
    assert table.plan(where="c = 42").count() == 3
    assert table.plan(where="c > 42").kept.blocks == 0
    assert table.at(version=1).schema.names == ["id"]


def test_rows_without_an_added_column_get_its_default(world):
    table = world.create("id int")
    add_column(table, "c", "string", "none")
    table.append(ROWS.select(["id"]))
    assert {row["c"] for row in rows(table)} == {"none"}


@pytest.mark.with_postgres
def test_a_column_dropped_and_added_again_is_another(world):
    table = world.create("id int, c bigint")
    table.append(pa.table({"id": pa.array([1], pa.int32()), "c": [9]}))
    drop_column(table, "c")
    assert rows(table) == [{"id": 1}]
    with pytest.raises(UnknownColumn):
        rows(table, "c = 9")
    add_column(table, "c", "int64")
    assert rows(table) == [{"id": 1, "c": None}]
    assert rows(table, "c = 9") == []
    assert table.count("c is null") == 1
    assert rows(table.at(version=1), "c = 9") == [{"id": 1, "c": 9}]


def test_a_renamed_column_keeps_its_values_and_statistics(world):
    table = world.create("id int, f float", block_rows=1)
    table.append(ROWS)
    rename_column(table, "id", "number")
    assert [row["number"] for row in rows(table, "number >= 2")] == [2, 3]
    assert table.plan(where="number = 3").kept.blocks == 1
    with pytest.raises(UnknownColumn):
        rows(table, "id = 1")


def test_two_columns_may_swap_their_names(world):
    table = world.create("a bigint, b bigint")
    table.append(pa.table({"a": [1], "b": [2]}))
    rename_column(table, "a", "c")
    rename_column(table, "b", "a")
    rename_column(table, "c", "b")
    table.append(pa.table({"a": [20], "b": [10]}))
    assert [(row["a"], row["b"]) for row in rows(table)] == [(2, 1), (20, 10)]
    assert table.count("a = 2") == table.count("b = 1") == 1
    assert table.count("a = 1") == 0


def test_widened_columns_keep_exact_values(world):
    table = world.create("id int, f float", block_rows=1)
    table.append(ROWS)
    widen_column(table, "id", "int64")
    widen_column(table, "f", "float64")
    table.append(pa.table({"id": [2**40], "f": [0.1]}))
    single = ROWS["f"][0].as_py()
    assert [row["id"] for row in rows(table)] == [1, 2, 3, 2**40]
    assert [row["f"] for row in rows(table)] == [single, None, 2.5, 0.1]
    assert [row["id"] for row in rows(table, "f > 0.1e0")] == [1, 3]
    assert [row["id"] for row in rows(table, "f = 0.1e0")] == [2**40]
    assert [row["id"] for row in rows(table, "id = 4294967298 or id = 2")] == [2]


def test_a_registered_file_may_be_narrower_than_the_table(world):
    table = world.create("id bigint, f double")
    table.register(world.put_parquet(ROWS))
    assert [row["f"] for row in rows(table, "id < 3")] == [ROWS["f"][0].as_py(), None]


def test_a_wider_registered_file_is_refused(world):
    table = world.create("id int")
    place = world.put_parquet(pa.table({"id": pa.array([1], pa.int64())}))
    with pytest.raises(SchemaMismatch, match=place.rpartition("/")[2]):
        table.register(place)
    assert table.version == 0


DAYS = [date(1969, 12, 31), date(1970, 1, 1), None, date(2024, 2, 29), date(1969, 1, 1)]
TIMES = [datetime(1969, 12, 31, 23, 30, tzinfo=UTC), datetime(2024, 2, 29, 5, 1, tzinfo=UTC), None]
PARTITIONS = {
    "k of integers": (pa.int64(), [1, 2, None, 1]),
    "k of text": (pa.string(), ["", "a/b", "%2F", None, "__HIVE_DEFAULT_PARTITION__", ""]),
    "k of floats": (pa.float64(), [0.0, -0.0, float("nan"), None, 1.5]),
    "k of decimals": (pa.decimal128(38, 2), [Decimal("-1.00"), Decimal("1.00"), None]),
    "year(k)": (pa.date32(), DAYS),
    "month(k)": (pa.date32(), DAYS),
    "day(k)": (pa.timestamp("ns", "UTC"), TIMES),
    "hour(k)": (pa.timestamp("ms", "UTC"), TIMES),
    "bucket(4, k)": (pa.string(), ["a", "b", None, "", "ö"]),
    "truncate(10, k)": (pa.int32(), [-1, 0, 9, 10, -11, None]),
    "truncate(2, k)": (pa.string(), ["éa", "éab", "e", "", None]),
}


@pytest.mark.parametrize("by", PARTITIONS)
def test_a_partitioned_table_finds_each_value(memory, by):
    type_, values = PARTITIONS[by]
    plain = by if "(" in by else "k"
    table = memory.create(pa.schema([("k", type_), ("n", pa.int64())]), partition_by=[plain])
    data = pa.table({"k": pa.array(values, type_), "n": range(len(values))})
    table.append(data)
    assert sorted(table.scan(["n"]).to_arrow()["n"].to_pylist()) == list(range(len(values)))
    for value in values:
        expected = [at for at, other in enumerate(values) if str(other) == str(value) or other == value]
        where = col("k").is_null() if value is None else col("k") == value
        assert sorted(table.scan(["n"], where).to_arrow()["n"].to_pylist()) == expected, value
    assert table.plan(where="k is null").count() == values.count(None)


def test_partitions_keep_files_apart_on_every_store(world):
    table = world.create("at timestamp, n bigint", partition_by=["month(at)", "bucket(2, n)"])
    times = [datetime(2024, month, 1) for month in (1, 2, 2, 3)]
    table.append(pa.table({"at": pa.array(times, pa.timestamp("us")), "n": [1, 2, 3, 4]}))
    plan = table.plan(where="at >= '2024-02-01' and at < '2024-03-01'")
    assert plan.kept.rows == 2
    assert plan.total.files >= 3


def test_a_registered_file_lies_in_one_partition_or_is_refused(world):
    table = world.create("k bigint, n bigint", partition_by=["k"])
    table.register(world.put_parquet(pa.table({"k": [5, 5], "n": [1, 2]})))
    assert table.count("k = 5") == 2
    with pytest.raises(SchemaMismatch, match="one value of k"):
        table.register(world.put_parquet(pa.table({"k": [5, 6], "n": [1, 2]})))
    assert table.version == 1


def test_rows_of_a_file_are_sorted(world):
    table = world.create("a bigint, b string", sort_by=["-a", "b"], block_rows=2)
    table.append(pa.table({"a": [1, 3, None, 3, 2], "b": ["x", "b", "n", "a", "y"]}))
    found = [(row["a"], row["b"]) for row in rows(table)]
    assert [pair for pair in found if pair[0] is not None] == [(3, "a"), (3, "b"), (2, "y"), (1, "x")]
    assert (None, "n") in (found[0], found[-1])
    assert table.plan(where="a = 3").kept.blocks < table.plan().total.blocks
