"""Python workers, which PySpark forks from a process that never used a store."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.store.servers import S3Server
from underlay.api.lake import Lake
from underlay.spark.api.write import append
from underlay.spark.relation.relation import read_table
from underlay.spark.tasks import collect as small

NAME = "far_off.numbers"


@pytest.fixture
def far(moto: S3Server) -> Lake:
    options = {name: str(value) for name, value in moto.options.items()}
    return ul.connect(f"s3://lake/{os.urandom(6).hex()}", options=options)


@pytest.mark.filterwarnings("ignore::underlay.spark.ranged.frame.RangedReadWarning")
def test_forked_workers_write_and_read_a_lake_on_s3_that_the_driver_used(
    spark: SparkSession, far: Lake, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(small, "SMALL_BYTES", -1)  # nothing is written by the driver
    table = far.create_table(NAME, "id bigint not null, worker int not null")
    table.append(pa.table({"id": [-1], "worker": pa.array([os.getpid()], pa.int32())}))
    assert table.count() == 1

    def in_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.append_column("worker", pa.array([os.getpid()] * len(batch), pa.int32()))

    for begin in (0, 100):  # the second job is given workers that wrote before
        frame = spark.range(begin, begin + 100, 1, 4).mapInArrow(in_worker, "id bigint, worker int")
        append(frame, table, lake=far)
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == list(range(-1, 200))
    assert os.getpid() not in table.scan(["worker"], where="id >= 0").to_arrow()["worker"].to_pylist()
    assert sorted(row.id for row in read_table(spark, far, NAME).collect()) == list(range(-1, 200))
