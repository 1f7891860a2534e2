"""upsert, delete, update and merge with DataFrames do what the verbs of a table do in process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import underlay as ul
import underlay.spark
from underlay.errors import InvalidRequest
from underlay.spark.tasks import collect

SCHEMA = "id bigint not null, zone string, fare double, at date"


def rows(ids: list[int], fare: float) -> pa.Table:
    zones = [None if n % 7 == 0 else f"z{n % 3}" for n in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "zone": pa.array(zones, pa.string()), "fare": [fare] * len(ids)})


@pytest.fixture
def lake(tmp_path: Path) -> ul.Lake:
    found = ul.connect(tmp_path)
    for name in ("t.spark", "t.local"):
        table = found.create_table(
            name, SCHEMA, key=["id"], sort_by=["id"], partition_by=["zone"], properties={"block_rows": 8}
        )
        table.append(rows(list(range(40)), 1.0))
        table.append(rows([*range(40, 60), 5], 2.0))  # one key twice
    return found


def content(table: ul.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in table.to_arrow().to_pylist()), key=repr)


@pytest.mark.parametrize("most", [collect.SMALL_ROWS, 0])
def test_an_upsert_and_a_merge_are_those_of_the_table(
    spark: SparkSession, lake: ul.Lake, monkeypatch: pytest.MonkeyPatch, most: int
):
    monkeypatch.setattr(collect, "SMALL_ROWS", most)
    table, local = lake.table("t.spark"), lake.table("t.local")
    given = rows([5, 7, 100], 9.0).drop_columns(["zone"])
    frame = spark.createDataFrame(given)
    done, known = ul.spark.upsert(frame, "t.spark", token="one", lake=lake), local.upsert(given)
    assert content(table) == content(local)
    assert (done.rows_updated, done.rows_inserted) == (known.rows_updated, known.rows_inserted) == (2, 1)
    assert ul.spark.upsert(frame, "t.spark", token="one", lake=lake).is_repeat
    source = rows([1, 2, 3, 300], 4.0).append_column("at", pa.nulls(4, pa.date32()))
    merging = [
        verb("t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_delete("s.id = 2")
        .when_matched_update({"fare": "t.fare + s.fare"}, "s.id = 3")
        .when_matched_update_all(except_cols=["zone"])
        .when_not_matched_insert_all()
        .execute()
        for verb in (
            lambda on, **names: ul.spark.merge(spark.createDataFrame(source), table, on, **names),
            lambda on, **names: local.merge(source, on, **names),
        )
    ]
    assert content(table) == content(local)
    assert len({(one.rows_updated, one.rows_deleted, one.rows_inserted) for one in merging}) == 1


def test_update_and_delete_take_columns_of_spark(spark: SparkSession, lake: ul.Lake):
    table = lake.table("t.spark")
    done = ul.spark.update(table, {"fare": f.col("fare") * 2, "at": f.lit(None)}, f.col("id") < 2, spark=spark)
    fares = {row["id"]: row["fare"] for row in table.to_arrow().to_pylist()}
    assert (done.rows_updated, fares[0], fares[1], fares[2]) == (2, 2.0, 2.0, 1.0)
    with pytest.raises(InvalidRequest, match="true or false"):
        ul.spark.delete(table, "id + 1", spark=spark)
    assert ul.spark.delete(table, spark=spark).rows_deleted == 61
    assert len(table) == 0


def test_a_key_that_is_null_or_comes_twice_is_refused_by_tasks_too(
    spark: SparkSession, lake: ul.Lake, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(collect, "SMALL_ROWS", 0)
    table = lake.table("t.spark")
    with pytest.raises(InvalidRequest, match="the same key"):
        ul.spark.upsert(spark.createDataFrame([(1, 2.0), (1, 3.0)], "id bigint, fare double"), table)
    with pytest.raises(InvalidRequest, match="null"):
        ul.spark.upsert(spark.createDataFrame([(1, None)], "id bigint, zone string"), table, key=["id", "zone"])
    assert table.version == 2
