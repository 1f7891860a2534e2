"""Whole ingests in processes that race, are killed at every request, or sleep until their claims are another's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from tests.gate import sized
from tests.ingest.lakes import ids, lake_at, records, run, write_csv
from tests.table.coordination.owners import LaterStore
from underlay.store import open_store

REPOSITORY = Path(__file__).parents[3]
SOURCES = sized(80, 200)


def start(mode: str, url: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.ingest.run_process", mode, url, str(folder)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "in"
    place.mkdir()
    return place


def test_an_ingest_that_is_killed_at_any_request_is_completed_by_the_next_at_once(tmp_path: Path, folder: Path):
    for number in range(3):
        write_csv(folder, f"{number}.csv", [number, number + 10], [f"bad{number}"] if number else [])
    out, _ = start("die", str(tmp_path / "lakes"), folder).communicate(timeout=300)
    *found, last = out.splitlines()
    assert int(last) > 50
    assert len(found) >= int(last) // sized(3, 1)
    expected = [("1.csv", 4, b"bad1"), ("2.csv", 4, b"bad2")]
    assert set(found) == {f"0 [0, 1, 2, 10, 11, 12] {expected}"}


def test_four_ingests_of_many_sources_bring_each_once(tmp_path: Path, folder: Path):
    for number in range(SOURCES):
        write_csv(folder, f"{number:03}.csv", [number, number + 1000])
    lake = lake_at(open_store(tmp_path / "lake"))
    processes = [start("race", lake.store.url, folder) for _ in range(4)]
    counts = [int(process.communicate(timeout=240)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert sum(counts) == 2 * SOURCES
    assert ids(lake) == [*range(SOURCES), *range(1000, 1000 + SOURCES)]
    assert {(one.status, one.row_count) for one in records(lake).values()} == {("done", 2)}


def test_an_ingest_that_slept_while_another_took_over_adds_nothing(tmp_path: Path, folder: Path):
    for number in range(4):
        write_csv(folder, f"{number}.csv", [number])
    store = open_store(tmp_path / "lake")
    process = start("stop", store.url, folder)
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert run(lake_at(store), f"{folder}/*", waits=False).claimed == 4  # it is waited for
        assert run(lake_at(LaterStore(store)), f"{folder}/*").ingested == 4
        os.kill(process.pid, signal.SIGCONT)
        assert process.communicate(timeout=240)[0].strip() == "0"
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert ids(lake_at(store)) == [0, 1, 2, 3]


def test_a_million_rows_are_ingested_in_bounded_memory(tmp_path: Path, folder: Path):
    for number in range(8):
        every = np.arange(number * 125_000, (number + 1) * 125_000)
        note = pa.array([f"a note of some length, number {at}" for at in range(1000)])
        table = pa.table({"id": every, "fare": every / 4, "note": note.take(pa.array(every % 1000))})
        pyarrow.csv.write_csv(table, folder / f"{number}.csv")
    out, _ = start("much", str(tmp_path / "lake"), folder).communicate(timeout=240)
    rows, grown = map(int, out.split())
    assert rows == 1_000_000
    assert grown < 400 << 20
