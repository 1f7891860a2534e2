"""A stream on a cluster, where tasks and the driver share nothing but the store."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.spark.streams import Feed, forget_commit, ids, run, sink_of
from tests.spark.tasks.test_clustering import _executor, _is_first
from underlay.spark.api.data_source import register_source
from underlay.spark.tasks.map_in_arrow import map_in_arrow

pytestmark = pytest.mark.cluster_only


def test_a_stream_from_files_to_a_table_to_another_survives_a_killed_executor(spark: SparkSession, tmp_path: Path):
    lake = ul.connect(tmp_path / "lake")
    table = lake.create_table("some.table", "id bigint, name string")
    copy = lake.create_table("some.copy", "id bigint, name string")
    register_source(spark)
    feed = Feed(tmp_path / "in")
    for begin in (0, 100, 200):
        feed.put(range(begin, begin + 10))
    mark = tmp_path / "killed"

    def kill_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 105 in batch.column("id").to_pylist() and _is_first(mark):
                os.kill(_executor(), signal.SIGKILL)
                signal.pause()
            yield batch

    stream = feed.stream(spark)
    run(sink_of(map_in_arrow(stream, kill_once, stream.schema), table, tmp_path / "checkpoint"))
    assert mark.exists()
    assert (len(ids(table)), table.version) == (30, 3)
    rows = spark.readStream.format("underlay").option("lake", lake.url).load("some.table")
    run(sink_of(rows, copy, tmp_path / "second"))
    forget_commit(tmp_path / "second", 0)
    run(sink_of(rows, copy, tmp_path / "second"))
    assert ids(copy) == ids(table) == [*range(10), *range(100, 110), *range(200, 210)]
