"""What must be distributed: executors that die, reading, writing, ingesting and streaming beside them, and S3."""

from __future__ import annotations

import pytest

from tests.gate import sized
from tests.sessions.run import check_on_cluster
from tests.spark.own_jvm.s3a import S3A

TESTS = sized(("tasks/test_clustering.py", "own_jvm/test_stream_cluster.py", "own_jvm/test_s3a.py"), ("",))
"""Those that need a cluster, and in `make test-all` every test of Spark that can run on one."""


@pytest.mark.own_jvm
@pytest.mark.timeout(7200)
def test_rows_are_read_written_ingested_and_streamed_on_a_cluster_and_on_s3():
    check_on_cluster(*(f"tests/spark/{name}" for name in TESTS), environment={S3A: "true"})
