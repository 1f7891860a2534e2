"""What must be distributed: executors that die, reading, writing, ingesting and streaming beside them, and S3."""

from __future__ import annotations

import pytest

from tests.sessions.run import check_on_cluster
from tests.spark.s3a import S3A

TESTS = ("test_cluster.py", "test_stream_cluster.py", "test_s3a.py")


@pytest.mark.timeout(900)
def test_rows_are_read_written_ingested_and_streamed_on_a_cluster_and_on_s3():
    check_on_cluster(*(f"tests/spark/{name}" for name in TESTS), environment={S3A: "true"})
