"""Tests of Spark in a process whose session is on a standalone cluster: a process has one session."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.spark.cluster import MASTER, running_cluster

ROOT = Path(__file__).parents[2]


def check_on_cluster(*tests: str) -> None:
    """All tests of these files or folders that are for a cluster pass there."""
    with running_cluster() as master:
        collected = _count_of("collected", _run_pytest("--collect-only", *tests, master=master))
        said = _run_pytest(*tests, master=master)
    assert collected
    assert _count_of("passed", said) == collected
    assert "skipped" not in said


def _run_pytest(*arguments: str, master: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", *arguments]
    environment = {**os.environ, MASTER: master}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{ran.stdout[-6000:]}\n{ran.stderr[-2000:]}"
    return ran.stdout


def _count_of(word: str, said: str) -> int:
    found = re.search(rf"(\d+)(?:/\d+)? (?:tests? )?{word}", said.splitlines()[-1])
    assert found, said[-500:]
    return int(found[1])
