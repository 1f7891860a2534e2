"""Writers and care at once: no writer fails, no row is lost or doubled, and files stay few."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

import underlay as ul
from tests.gate import SEED
from tests.maintain.audit import audit
from tests.maintain.care.storm_program import NAME, PROPERTIES, SCHEMA, Steps, append, compact, expected, upsert
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.store import open_store

REPOSITORY = Path(__file__).parents[3]
SECONDS = float(os.environ.get("UNDERLAY_STORM_SECONDS", "120"))
KILLS_PER_SECOND = 0.15


def make(lake: Lake) -> Table:
    return lake.create_table(NAME, SCHEMA, key=["id"], properties=PROPERTIES)


def check(lake: Lake, appends: int, upserts: int) -> None:
    rows = lake.table(NAME).to_arrow()
    found = dict(zip(rows["id"].to_pylist(), rows["step"].to_pylist(), strict=True))
    assert (len(found), rows.num_rows) == (len(expected(appends, upserts)),) * 2
    assert found == expected(appends, upserts)
    assert [one.findings for one in lake.verify(registry=False).tables[0].revisions] == [()]


def test_threads_that_append_upsert_and_compact_lose_no_row_and_leave_few_files():
    lake = ul.connect(open_store(f"memory://{uuid4()}"), registry="none")
    table = make(lake)

    def run(do: Callable[[Table, int], None], count: int) -> None:
        for step in range(count):
            do(lake.table(NAME), step)

    with ThreadPoolExecutor(3) as threads:
        done = [threads.submit(run, do, count) for do, count in ((append, 60), (upsert, 12), (compact, 12))]
    for one in done:
        one.result()
    table.compact()
    check(lake, 60, 12)
    assert table.snapshot().root.file_count == 1


class Process:
    """A process of the storm."""

    def __init__(self, lake: str, role: str, stop: Path) -> None:
        self.command = [sys.executable, "-m", "tests.maintain.care.storm_program", lake, role, str(stop)]
        self.kill_count = 0
        self.start()

    def start(self) -> None:
        self.running = subprocess.Popen(
            self.command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def kill(self) -> None:
        self.running.kill()
        self.running.communicate()
        self.kill_count += 1

    def steps(self) -> Steps:
        """Its steps once it ended; raises if it failed."""
        out, error = self.running.communicate()
        assert self.running.returncode == 0, error
        return [(begun, seconds) for begun, seconds in json.loads(out)]


def p99(seconds: list[float]) -> int:
    """Milliseconds."""
    return round(sorted(seconds)[len(seconds) * 99 // 100] * 1000)


@pytest.mark.storm
@pytest.mark.timeout(SECONDS + 600)
def test_no_writer_fails_while_compactors_and_sweepers_run_and_are_killed(tmp_path: Path):
    chance, stop, url = random.Random(SEED), tmp_path / "stop", str(tmp_path / "lake")
    counts = []
    with ul.connect(url) as lake:
        table = make(lake)
        writers = [Process(url, role, stop) for role in ("append", "upsert")]
        carers: list[Process] = []
        try:
            begun = time.monotonic()
            time.sleep(SECONDS / 4)  # without care, to compare
            cared = time.monotonic()
            carers += [Process(url, role, stop) for role in ("compact", "clean")]
            while time.monotonic() < begun + SECONDS:
                time.sleep(1)
                for one in (*writers, *carers):
                    if one.running.poll() is not None:
                        one.steps()
                counts.append(table.snapshot().root.file_count)
                if chance.random() < KILLS_PER_SECOND:
                    victim = chance.choice(carers)
                    victim.kill()
                    victim.start()
            stop.touch()
            appends, upserts, *cares = [one.steps() for one in (*writers, *carers)]
        finally:
            for one in (*writers, *carers):
                one.kill()
        check(lake, len(appends), len(upserts))
        table.compact()
        check(lake, len(appends), len(upserts))
    assert not audit(open_store(url)).missing
    # Before care began there were as many files as commits; a storm without it would end with far more.
    assert max(counts[len(counts) // 2 :]) < (len(appends) + len(upserts)) / 3
    times = [[seconds for at, seconds in appends if (at >= cared) is after] for after in (False, True)]
    print(
        f"{len(appends)} appends, {len(upserts)} upserts, p99 of appends {p99(times[0])} ms without care, "
        f"{p99(times[1])} ms with; files {counts}; kills {[one.kill_count - 1 for one in carers]}; "
        f"steps of the last carers {[len(one) for one in cares]}"
    )
