"""Tests of Spark in a process whose session is on a standalone cluster: a process has one session."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.spark.own_jvm.cluster import MASTER, running_cluster

ROOT = Path(__file__).parents[2]


def check_on_cluster(*tests: str, environment: Mapping[str, str] | None = None) -> None:
    """There are tests in these files or folders that are for a cluster, or such an environment, and all pass on one."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", *tests]
    with running_cluster() as master:
        push = {"UNDERLAY_TESTS": "push"}  # what is at full size here takes hours on a cluster of one machine
        whole = {**os.environ, MASTER: master, **push, **(environment or {})}
        ran = subprocess.run(command, cwd=ROOT, env=whole, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{ran.stdout[-6000:]}\n{ran.stderr[-2000:]}"
    collected = re.search(r"^collected (?:.* / )?(\d+)", ran.stdout, re.MULTILINE)
    passed = re.search(r"(\d+) passed", ran.stdout.splitlines()[-1])
    assert collected, ran.stdout
    assert passed, ran.stdout
    assert passed[1] == collected[1]
