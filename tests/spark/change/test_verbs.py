"""Verbs on Spark: few rows are changed by the driver, many by tasks, and the table is the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from underlay.errors import InvalidRequest
from underlay.spark.change.merge import merge_frames
from underlay.spark.change.merge_join import MergeClause
from underlay.spark.change.update_and_delete import delete_where, update_where
from underlay.spark.tasks import collect

NAME = "changed.rows"


@pytest.fixture
def table(tmp_path: Path) -> ul.Table:
    """Files of five blocks, one of which has deleted rows."""
    schema = "id bigint not null, value int, name string, inner struct<a: bigint, b: string>"
    found = ul.connect(tmp_path).create_table(NAME, schema, key=["id"], properties={"block_rows": 10})
    for first in (0, 50):
        numbers = range(first, first + 50)
        inner = [{"a": number, "b": "x"} for number in numbers]
        found.append(
            pa.table({"id": numbers, "value": [1] * 50, "name": [f"n{n}" for n in numbers], "inner": inner}).cast(
                found.schema
            )
        )
    found.delete("id = 3")
    return found


@pytest.fixture(params=["by the driver", "by tasks"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "by tasks":
        monkeypatch.setattr(collect, "SMALL_ROWS", 0)
    return request.param


def rows_of(table: ul.Table) -> dict[int, tuple[object, ...]]:
    return {row["id"]: (row["value"], row["name"], row["inner"]["b"]) for row in table.to_arrow().to_pylist()}


def test_rows_are_deleted_and_updated_by_what_spark_says_of_a_condition(spark: SparkSession, table: ul.Table, by: str):
    expected = {n: (1, f"n{n}", "x") for n in range(100) if n != 3 and n % 10 != 4}
    deleted = delete_where(spark, None, table, "pmod(id, 10) = 4 or id = 3")
    assert (deleted.rows_deleted, rows_of(table)) == (10, expected)
    updates = {"value": "cast(id as string)", "inner.b": "upper(name)", "name": "if(value > 0, name, null)"}
    updated = update_where(spark, None, table, updates, "id between 90 and 95 and name is not null")
    for n in (90, 91, 92, 93, 95):
        expected[n] = (n, f"n{n}", f"N{n}")
    assert (updated.rows_updated, updated.rows_deleted, rows_of(table)) == (5, 0, expected)
    assert delete_where(spark, None, table, "id > 1000").version == updated.version


def test_a_merge_updates_deletes_and_inserts_in_one_version(spark: SparkSession, table: ul.Table, by: str):
    before = table.version
    source = spark.createDataFrame(
        [(n, n * 2, f"s{n}") for n in (3, 5, 6, 7, 200, 201)], "id int, value bigint, name string"
    )
    clauses = [
        MergeClause(kind="matched", action="delete", predicate="s.id = 5"),
        MergeClause(
            kind="matched", action="update", predicate="s.id < 7", assignments={"t.value": "s.value + t.value"}
        ),
        MergeClause(
            kind="not matched", action="insert", predicate="id <> 201", assignments={"id": "id", "name": "name"}
        ),
        MergeClause(kind="not matched by source", action="delete", predicate="id between 10 and 20"),
    ]
    done = merge_frames(spark, None, table, source, "t.id = s.id", clauses, source_alias="s", target_alias="t")
    expected = {n: (1, f"n{n}", "x") for n in range(100) if n not in (3, 5) and not 10 <= n <= 20}
    expected[6] = (13, "n6", "x")
    found = table.to_arrow().to_pylist()
    inserted = {row["id"]: (row["value"], row["name"], row["inner"]) for row in found if row["id"] in (3, 200)}
    assert inserted == {3: (None, "s3", None), 200: (None, "s200", None)}
    assert rows_of_known(found) == expected
    assert (done.version, done.rows_updated, done.rows_deleted, done.rows_inserted) == (before + 1, 1, 12, 2)


def rows_of_known(found: list[dict[str, object]]) -> dict[object, tuple[object, ...]]:
    return {row["id"]: (row["value"], row["name"], row["inner"]["b"]) for row in found if row["inner"] is not None}


def test_a_row_that_two_rows_of_the_source_would_change_is_refused(spark: SparkSession, table: ul.Table, by: str):
    before = table.version
    source = spark.createDataFrame([(7, 1), (7, 2)], "id bigint, value int")
    update = [MergeClause(kind="matched", action="update", assignments={"value": "source.value"})]
    with pytest.raises(InvalidRequest, match="more than one row of the source"):
        merge_frames(spark, None, table, source, "target.id = source.id", update)
    assert table.version == before
    delete = [MergeClause(kind="matched", action="delete")]
    assert merge_frames(spark, None, table, source, "target.id = source.id", delete).rows_deleted == 1
