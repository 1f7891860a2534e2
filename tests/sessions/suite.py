"""All tests of Spark once more, on a cluster: `make test-cluster`."""

from __future__ import annotations

import pytest

from tests.sessions.run import check_on_cluster


@pytest.mark.timeout(2400)
def test_tests_of_spark_pass_on_a_cluster():
    check_on_cluster("tests/spark")
