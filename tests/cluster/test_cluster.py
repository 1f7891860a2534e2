"""What must be distributed: executors that die, and reading, writing, ingesting and streaming beside them."""

from __future__ import annotations

import pytest

from tests.cluster.on_cluster import check_on_cluster


@pytest.mark.timeout(900)
def test_rows_are_read_written_ingested_and_streamed_on_a_cluster():
    check_on_cluster("tests/spark/test_cluster.py", "tests/spark/test_stream_cluster.py")
