from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.spark.relation.test_relation import planned
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.index.deletion_vectors import pack
from underlay.index.operation import Operation
from underlay.spark.api.session import forget, refresh
from underlay.spark.relation.relation import read_table
from underlay.spark.relation.row_numbers import deleted_numbers
from underlay.table.commit.commit import commit


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = ul.connect(tmp_path)
    table = found.create_table("del.rows", pa.schema([("id", pa.int64()), ("_metadata", pa.string())]))
    for file in range(4):
        table.append(pa.table({"id": range(file * 100, file * 100 + 10), "_metadata": ["x"] * 10}))
    return found


def delete(table: Table, file: int, positions: list[int]) -> None:
    opened = table._opened
    head = opened.head()
    transaction = opened.begin(head, Operation.DELETE)
    transaction.delete_rows([file.location for file in table.snapshot().files()][file], positions)
    commit(transaction)


def test_deleted_rows_are_not_read(spark: SparkSession, lake: Lake):
    table = lake.table("del.rows")
    delete(table, 1, [0, 9])
    delete(table, 3, [5])
    found = read_table(spark, lake, "del.rows")
    assert sorted(row.id for row in found.collect()) == table.to_arrow().column("id").to_pylist()
    assert found.columns == ["id", "_metadata"]
    assert found.where("id in (100, 101, 305, 306)").count() == 2
    assert read_table(spark, lake, "del.rows", version=4).count() == 40


def test_a_selective_filter_still_finds_the_right_positions(spark: SparkSession, lake: Lake):
    table = lake.table("del.rows")
    for file in range(4):
        delete(table, file, [file])
    found = read_table(spark, lake, "del.rows")
    assert [found.where(f"id = {file * 101}").count() for file in range(4)] == [0, 0, 0, 0]
    assert [found.where(f"id = {file * 100 + 7}").count() for file in range(4)] == [1, 1, 1, 1]


def test_only_files_with_deletions_are_joined_and_both_scans_are_native(spark: SparkSession, lake: Lake):
    delete(lake.table("del.rows"), 2, [1])
    plan = planned(read_table(spark, lake, "del.rows").where("id > 5"))
    assert plan.count("FileScan parquet") == 2
    assert plan.count("Batched: true") == 2
    assert plan.count("BroadcastHashJoin") == 1
    assert plan.count("GreaterThan(id,5)") == 2


def test_table_with_deletions_has_its_name_and_joins_itself(spark: SparkSession, lake: Lake):
    delete(lake.table("del.rows"), 0, list(range(10)))
    delete(lake.table("del.rows"), 1, [0])
    refresh(spark, lake)
    assert spark.sql("select count(*) from del.rows a join del.rows b on a.id = b.id").collect()[0][0] == 29
    forget(spark, lake)


def test_column_of_the_name_that_positions_have_is_read_as_it_is(spark: SparkSession, tmp_path: Path):
    lake = ul.connect(tmp_path / "other")
    table = lake.create_table("del.keys", "__underlay_row bigint, __Underlay_Row_ string")
    for number in range(2):
        table.append(pa.table({"__underlay_row": [number, number + 10], "__Underlay_Row_": ["x", "y"]}))
    delete(table, 0, [0])
    assert sorted(read_table(spark, lake, "del.keys").collect()) == [(1, "x"), (10, "y"), (11, "y")]
    delete(table, 1, [1])
    assert sorted(read_table(spark, lake, "del.keys").collect()) == [(1, "x"), (10, "y")]


def test_keys_tell_files_apart():
    assert deleted_numbers([pack([1, 5]), pack([]), pack([2**32 - 1])]).tolist() == [1, 5, 3 * 2**32 - 1]
    assert deleted_numbers([]).tolist() == []
