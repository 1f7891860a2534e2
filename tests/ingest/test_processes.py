"""Real processes: racing, killed, and paused until their claims are another's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ingest.worlds import STEPS, ids_in, ingest, new_table, opened, write_source
from tests.leases.owners import LaterStore
from underlay.index.sources import scan_all
from underlay.store import open_store

REPOSITORY = Path(__file__).parents[2]


def start(mode: str, url: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.ingest.process", mode, url, str(folder)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "in"
    place.mkdir()
    return place


def test_four_processes_ingest_each_of_two_hundred_sources_once(tmp_path: Path, folder: Path):
    for number in range(200):
        write_source(folder, number, [number, number + 1000])
    store = open_store(tmp_path / "lake")
    table = new_table(store)
    processes = [start("race", store.url, folder) for _ in range(4)]
    counts = [int(process.communicate(timeout=120)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert sum(counts) == 400
    assert ids_in(table) == [*range(200), *range(1000, 1200)]
    snapshot = table.snapshot(table.head())
    records = list(scan_all(snapshot.root.sources, snapshot.fetch_pages))
    assert [(one.status, one.row_count) for one in records] == [("done", 2)] * 200
    assert ingest(opened(store), [f"{folder}/*"]) == []


def test_a_process_that_is_killed_at_any_step_is_followed_by_one_that_completes_its_work(tmp_path: Path, folder: Path):
    for number in range(5):
        write_source(folder, number, [number, "bad"])
    out, _ = start("die", str(tmp_path / "lakes"), folder).communicate(timeout=120)
    assert out.splitlines() == [f"[0, 1, 2, 3, 4] 5 {step}" for step in STEPS]


def test_a_paused_process_cannot_commit_what_another_took_over(tmp_path: Path, folder: Path):
    for number in range(5):
        write_source(folder, number, [number])
    store = open_store(tmp_path / "lake")
    table = new_table(store)
    process = start("pause", store.url, folder)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        os.kill(process.pid, signal.SIGSTOP)
        assert ingest(opened(store), [f"{folder}/*"]) == []  # it is waited for
        (done,) = ingest(opened(LaterStore(store)), [f"{folder}/*"])
        os.kill(process.pid, signal.SIGCONT)
        assert process.communicate("go on\n", timeout=60)[0].strip() == "ClaimLost"
    finally:
        process.kill()
        process.communicate()
    assert (done.row_count, ids_in(table)) == (5, [0, 1, 2, 3, 4])
