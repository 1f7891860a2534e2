"""A lake on S3, read and written by Spark with Hadoop's jars: in a process of its own (`tests/sessions`)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.contract.worlds import delete_positions
from tests.spark.answers.sql_suite import FAMILIES, answers
from tests.spark.conftest import FILES, ROWS, SCHEMA, rows_of
from tests.spark.relation.test_relation import planned
from tests.store.servers import S3Server
from underlay.api.lake import Lake
from underlay.spark.api.explain import explain
from underlay.spark.api.session import forget, refresh, session
from underlay.spark.api.write import append, overwrite
from underlay.spark.relation.relation import read_table
from underlay.spark.tasks import collect as small

pytestmark = pytest.mark.s3a_only


@pytest.fixture(scope="module")
def far(spark: SparkSession, seaweedfs: S3Server) -> Iterator[Lake]:
    """A lake with the rows of `plain`, once in files as they are, and once among deleted ones."""
    options = {name: str(value) for name, value in seaweedfs.options.items()}
    lake = ul.connect(f"s3://lake/my lake%20é/{os.urandom(6).hex()}", options=options)
    for name in ("far.items", "far.deleted"):
        table = lake.create_table(name, SCHEMA, properties={"block_rows": 20})
        for file in range(FILES):
            table.append(rows_of(file))
    table.append(rows_of(0))
    delete_positions(table, {FILES: range(ROWS)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # tables that the ranged reader reads are warned of
        session(lake, spark)
    yield lake
    forget(spark, lake)


@pytest.mark.parametrize("family", ["floats", "nested fields", "joins"])
def test_answers_are_those_of_plain_spark(spark: SparkSession, far: Lake, plain: str, family: str):
    expected = answers(spark, plain, FAMILIES[family])
    assert answers(spark, "far.items", FAMILIES[family]) == expected
    assert answers(spark, "far.deleted", FAMILIES[family]) == expected


def test_scans_are_native_and_only_files_that_may_match_are_read(spark: SparkSession, far: Lake):
    query = spark.sql("select inner.deep.text from far.items where id = 3 and price > -1")
    plan = planned(query)
    assert plan.count("FileScan parquet") == plan.count("Batched: true") == 1, plan
    assert "struct<id:bigint,price:decimal(12,2),inner:struct<deep:struct<text:string>>>" in plan, plan
    assert {path.partition("lake/")[0] for path in query.inputFiles()} == {"s3a://"}
    assert f"handed to Spark: 1 of {FILES} files" in explain(query)


def test_registered_file_with_an_odd_name_is_read_by_spark_itself(spark: SparkSession, far: Lake, seaweedfs: S3Server):
    folder, sink = f"other 100%/{os.urandom(6).hex()}", pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1, 2, 3]}), sink)
    seaweedfs.open(folder).put("a b+%20é=1.parquet", sink.getvalue())
    table = far.create_table("far.registered", pa.schema([("id", pa.int64())]))
    table.register(f"s3://lake/{folder}/*.parquet")
    refresh(spark, far)
    query = spark.sql("select id from far.registered where id >= 2")
    assert sorted(query.collect()) == [(2,), (3,)]
    assert planned(query).count("FileScan parquet") == 1


def test_keys_are_shown_nowhere(spark: SparkSession, far: Lake, seaweedfs: S3Server):
    query = spark.table("far.items").where("id = 3")
    shown = [planned(query), explain(query), str(spark.sparkContext.getConf().getAll())]
    assert str(seaweedfs.options["secret_access_key"]) not in " ".join(shown)


def test_what_is_written_is_read_at_once(spark: SparkSession, far: Lake, monkeypatch: pytest.MonkeyPatch):
    table = far.create_table("far.numbers", pa.schema([("id", pa.int64())]))
    refresh(spark, far)

    def total() -> tuple[int, int]:
        return spark.sql("select count(*), sum(id) from far.numbers").collect()[0]

    append(spark.range(10), table)
    assert total() == (10, 45)
    spark.range(100).write.format("underlay").mode("append").save("far.numbers")
    assert total() == (110, 4995)
    monkeypatch.setattr(small, "SMALL_BYTES", -1)  # else this process writes them
    append(spark.range(1000), table)
    assert total() == (1110, 504_495)
    overwrite(spark.range(5), table)
    assert total() == (5, 10)
    assert read_table(spark, far, "far.numbers", version=1).count() == 10
