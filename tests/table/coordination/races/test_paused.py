"""A process that is paused in the middle of its work, and wakes up after its job was taken over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import underlay
from tests.table.coordination.owners import LaterStore
from underlay.errors import LeaseHeld
from underlay.store import Store, open_store

REPOSITORY = Path(__file__).parents[4]


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Store, dict[str, object]]:
    """A store that another process can open, and the options with which it does."""
    if request.param == "local":
        return open_store(tmp_path / "lake"), {}
    server = request.getfixturevalue("seaweedfs")
    return server.open(), server.options


@contextmanager
def holder(store: Store, options: dict[str, object]) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the job and is in the middle of an append."""
    command = [sys.executable, "-m", "tests.table.coordination.races.holder", store.url, json.dumps(options)]
    process = subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def go_on(process: subprocess.Popen[str]) -> str:
    return process.communicate("go on\n", timeout=120)[0].strip()


def test_a_paused_process_cannot_commit_after_its_job_was_taken_over(place: tuple[Store, dict[str, object]]):
    store, options = place
    trips = underlay.connect(store).create_table("taxi.trips", "id bigint")
    with holder(store, options) as process:
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(LeaseHeld):
            trips.job("nightly")
        later = underlay.connect(LaterStore(store)).table("taxi.trips")
        with later.job("nightly") as job:
            assert job.epoch == 2
            job.table.append(pa.table({"id": [10, 20]}))
            os.kill(process.pid, signal.SIGCONT)
            assert go_on(process) == "JobTakenOver 1 False True"
            assert job.renew()
            job.table.append(pa.table({"id": [30]}))
    assert sorted(trips.to_arrow()["id"].to_pylist()) == [10, 20, 30]
    assert process.returncode == 0
    with trips.job("nightly") as job:
        assert job.epoch == 3


def test_a_paused_process_whose_job_nobody_took_goes_on(tmp_path: Path):
    store = open_store(tmp_path / "lake")
    trips = underlay.connect(store).create_table("taxi.trips", "id bigint")
    with holder(store, {}) as process:
        os.kill(process.pid, signal.SIGSTOP)
        trips.append(pa.table({"id": [10]}))
        os.kill(process.pid, signal.SIGCONT)
        assert go_on(process) == "appended 1 True False"
    assert sorted(trips.to_arrow()["id"].to_pylist()) == [1, 2, 3, 10]
