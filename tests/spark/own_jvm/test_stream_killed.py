"""Drivers of streams that are killed; what happens at every write of a commit is in `test_stream_batch`."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.spark.own_jvm.killed_stream import NAME, run_and_kill
from tests.spark.streams import Feed, ids, run, sink_of
from underlay.spark.api.data_source import register_source

pytestmark = [pytest.mark.local_only, pytest.mark.own_jvm]


def test_drivers_that_are_killed_around_a_commit_add_every_row_once(spark: SparkSession, tmp_path: Path):
    table = ul.connect(tmp_path / "lake").create_table(NAME, "id bigint, name string")
    feed = Feed(tmp_path / "in")
    for begin in range(0, 40, 10):
        feed.put(range(begin, begin + 10))
    noted = tmp_path / "checkpoint" / "commits"
    assert run_and_kill(tmp_path, "staged", 1) == -signal.SIGKILL
    assert (ids(table), (noted / "1").exists()) == (list(range(10)), False)
    assert run_and_kill(tmp_path, "committed", 2) == -signal.SIGKILL
    assert (ids(table), (noted / "1").exists(), (noted / "2").exists()) == (list(range(30)), True, False)
    register_source(spark)
    run(sink_of(feed.stream(spark), table, tmp_path / "checkpoint"))
    assert (ids(table), table.version) == (list(range(40)), 4)
