"""Files whose constants come from their paths: their rows in Spark are those of a scan."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import SparkSession

import underlay as ul
from tests.change.register.test_hive import put, put_many
from tests.contract.worlds import delete_positions
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.spark.files import file_groups
from underlay.spark.files.file_groups import FileGroups
from underlay.spark.ranged.frame import RangedReadWarning
from underlay.spark.relation.relation import read_table

COLUMNS = """id bigint, year int, zone string, day date, rate double, flag boolean, price decimal(30, 2), at timestamp,
    raw binary"""
CONDITIONS = {
    "year = 2021": "year = 2021",
    "zone is null and id > 3": "zone is null and id > 3",
    "cast(year as string) like '%4' and rate >= 0": "year = 2024 and rate >= 0",
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = ul.connect(tmp_path / "lake")
    table = lake.create_table("h.t", COLUMNS)
    put_many(tmp_path / "data", 6)
    put(tmp_path, "data/at=2024-01-02 03%3A04%3A05/raw=ab/x.parquet", range(100, 102))
    table.register(tmp_path / "data")
    delete_positions(table, {0: [1]})
    return table


def rows_of(spark: SparkSession, lake: Lake, where: str | None = None) -> list[str]:
    frame = read_table(spark, lake, "h.t")
    found = (frame if where is None else frame.where(where)).toArrow().sort_by("id")
    return [str(row) for row in found.to_pylist()]


def scanned(table: Table, where: str | None = None) -> list[str]:
    return [str(row) for row in table.scan(where=where).to_arrow().sort_by("id").to_pylist()]


def test_spark_reads_constants_by_itself(spark: SparkSession, table: Table, tmp_path: Path):
    lake = ul.connect(tmp_path / "lake")
    assert all(group.reading is not None for group in FileGroups(table.snapshot(), lambda _: True).size_bytes)
    for path in (tmp_path / "data").rglob("*.parquet"):
        os.utime(path, ns=(1, 1))
    assert rows_of(spark, lake) == scanned(table)
    for where, ours in CONDITIONS.items():
        assert rows_of(spark, lake, where) == scanned(table, ours), where


def test_many_constants_are_read_by_the_ranged_reader(
    spark: SparkSession, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(file_groups, "_MOST_CONSTANTS", 1)
    lake = ul.connect(tmp_path / "lake")
    with pytest.warns(RangedReadWarning):
        assert rows_of(spark, lake) == scanned(table)
    where = "year = 2021 or zone is null"
    assert rows_of(spark, lake, where) == scanned(table, where)


def test_a_file_with_other_bytes_is_refused(spark: SparkSession, table: Table, tmp_path: Path):
    put(tmp_path, "data/at=2024-01-02 03%3A04%3A05/raw=ab/x.parquet", range(100, 103))
    with pytest.raises(SparkRuntimeException, match="replaced since it was registered"):
        rows_of(spark, ul.connect(tmp_path / "lake"))
