"""Many processes on one local lake: none of their commits is lost or doubled, whether they live or are killed."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from tests.gate import sized
from tests.table.checker import Checker
from tests.table.entries import append, new_table
from underlay.store.local import LocalStore
from underlay.table.versions.environment import Surroundings, wait_for_background
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import Snapshot

REPOSITORY = Path(__file__).parents[2]
COMMITS = sized(15, 50)


def start(root: Path, writer: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.table.committer", str(root), "taxi.trips", writer, str(count)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


def files(revision: Revision) -> list[str]:
    return [file.location for file in Snapshot(revision.store, revision.keys, revision.head()).files()]


def as_new_process(revision: Revision) -> Revision:
    return Revision(revision.store, "taxi/trips", revision.id, Surroundings())


def test_eight_processes_commit_at_once(tmp_path: Path):
    _, revision = new_table(LocalStore(tmp_path))
    writers = [start(tmp_path, f"w{number}", COMMITS) for number in range(8)]
    printed = [writer.communicate(timeout=240)[0].splitlines()[1:] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 8
    found = files(as_new_process(revision))
    assert sorted(found) == [f"w{writer}-{number:04}" for writer in range(8) for number in range(COMMITS)]
    versions = sorted(int(line.split()[1]) for lines in printed for line in lines)
    assert versions == list(range(1, 8 * COMMITS + 1))
    Checker(revision.store).check()


def test_a_killed_process_leaves_every_acknowledged_commit_and_nothing_half_done(tmp_path: Path):
    _, revision = new_table(LocalStore(tmp_path))
    chance = random.Random(7)
    checker = Checker(revision.store)
    acknowledged: set[str] = set()
    for number in range(6):
        writer = start(tmp_path, f"k{number}", 10_000)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        for _ in range(chance.randrange(8)):
            acknowledged.add(writer.stdout.readline().split()[0])
        writer.kill()
        acknowledged |= {line.split()[0] for line in writer.communicate()[0].splitlines() if line.count(" ") == 1}
        checker.check()
    found = files(as_new_process(revision))
    assert acknowledged <= set(found)
    assert len(found) == len(set(found))
    append(as_new_process(revision), "after")
    checker.check()


def test_a_hint_in_the_background_does_not_hold_up_the_end_of_a_process(tmp_path: Path):
    _, revision = new_table(LocalStore(tmp_path))
    writer = start(tmp_path, "w", 9)
    writer.communicate(timeout=240)
    assert writer.returncode == 0
    wait_for_background()
    assert bytes(revision.store.get(revision.keys.hint)[0]) == b'{"number":8}'
