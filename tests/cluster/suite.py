"""The tests of Spark once more, on a standalone cluster. A process has one session: they run in another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.cluster import MASTER, running_cluster

ROOT = Path(__file__).parents[2]
TESTS = "tests/spark"


def run_pytest(*arguments: str, master: str) -> str:
    """What pytest says of the tests of Spark in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", *arguments, TESTS]
    environment = {**os.environ, MASTER: master}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{ran.stdout[-6000:]}\n{ran.stderr[-2000:]}"
    return ran.stdout


def count_of(word: str, said: str) -> int:
    found = re.search(rf"(\d+)(?:/\d+)? (?:tests? )?{word}", said.splitlines()[-1])
    assert found, said[-500:]
    return int(found[1])


@pytest.mark.timeout(1200)
def test_tests_of_spark_pass_on_a_cluster():
    with running_cluster() as master:
        collected = count_of("collected", run_pytest("--collect-only", master=master))
        said = run_pytest(master=master)
    assert count_of("passed", said) == collected
    assert "skipped" not in said
