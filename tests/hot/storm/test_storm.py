"""One writer and many readers in processes of their own, killed writers, and seals under load.

Small in the gate; at full size in `make test-all`.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.gate import SEED, sized
from tests.hot.storm.program import SCHEMA, TABLE, committed, open_lake

REPOSITORY = Path(__file__).parents[3]
PATIENCE = 600.0
_LOCKS = re.compile(r"\bflock\(|F_(?:OFD_)?SETLKW?\b|F_(?:OFD_)?GETLK\b|\blockf\(")


@pytest.fixture
def place(tmp_path: Path) -> tuple[str, str]:
    """A lake with an empty table, and the directory of its hot partitions."""
    lake, hot = str(tmp_path / "lake"), str(tmp_path / "hot")
    with open_lake(lake, hot) as opened:
        opened.initialise()
        opened.create_table(TABLE, SCHEMA, sort_by=["ts"])
    return lake, hot


@contextmanager
def started(*arguments: object, under: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    command = [*under, sys.executable, "-m", "tests.hot.storm.program", *map(str, arguments)]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def count_of(place: tuple[str, str]) -> int:
    with open_lake(*place) as lake:
        return committed(lake.table(TABLE))


def test_readers_see_whole_prefixes_without_a_lock_while_a_writer_commits(tmp_path: Path, place: tuple[str, str]):
    """One of the readers runs under strace, which sees every system call of its threads."""
    commits, readers = sized(40, 12_000), sized(2, 8)
    stop, trace = tmp_path / "stop", tmp_path / "trace"
    watched = ("strace", "-f", "-e", "trace=flock,fcntl", "-o", str(trace)) if shutil.which("strace") else ()
    with started("write", *place, commits, 10, 0) as writer:
        assert line_of(writer) == "open 0"
        watchers = [started("read", *place, stop, under=watched if number == 0 else ()) for number in range(readers)]
        opened = [one.__enter__() for one in watchers]
        try:
            assert [line_of(one) for one in opened] == ["ready"] * readers
            acknowledged = [line_of(writer) for _ in range(commits)]
            assert acknowledged == [str(batch) for batch in range(commits)]
            stop.touch()
            for one in opened:
                found = json.loads(line_of(one) or '"the reader failed"')
                assert found["last"] == commits
                assert found["reads"] > 0
                assert one.wait(PATIENCE) == 0
        finally:
            for watcher in reversed(watchers):
                watcher.__exit__(None, None, None)
        assert writer.wait(PATIENCE) == 0
    if watched:
        lines = trace.read_text().splitlines()
        assert "exited with 0" in lines[-1]
        assert [line for line in lines if _LOCKS.search(line)] == []
    assert count_of(place) == commits


@pytest.mark.parametrize("seal_every", [0, 7], ids=["appends", "appends and seals"])
def test_a_writer_that_is_killed_loses_and_doubles_nothing(place: tuple[str, str], seal_every: int):
    """Killed after a random number of acknowledgements; with seals, while they run and between them."""
    draw = random.Random(SEED + seal_every)
    acknowledged = -1
    for _ in range(sized(1, 100)):
        with started("write", *place, 100_000, 0, seal_every) as writer:
            head, _, first = line_of(writer).partition(" ")
            assert head == "open"
            assert int(first) >= acknowledged + 1
            for _ in range(draw.randrange(1, 30)):
                line = line_of(writer)
                if line.isdigit():
                    acknowledged = int(line)
            os.killpg(writer.pid, signal.SIGKILL)
            assert writer.stdout is not None
            rest = [
                int(line) for line in writer.stdout.read().splitlines(keepends=True) if re.fullmatch(r"\d+\n", line)
            ]
            acknowledged = max([acknowledged, *rest])
        assert count_of(place) in (acknowledged + 1, acknowledged + 2)  # one more may be durable, and not yet said


def test_a_reader_in_a_loop_sees_each_row_once_while_partitions_are_sealed(tmp_path: Path, place: tuple[str, str]):
    """Also across kills of the writer that seals."""
    stop = tmp_path / "stop"
    draw = random.Random(SEED)
    with started("read", *place, stop) as reader:
        assert line_of(reader) == "ready"
        for _ in range(sized(1, 50)):
            with started("write", *place, 100_000, 0, 5) as writer:
                for _ in range(draw.randrange(10, 40)):
                    assert line_of(writer)
        stop.touch()
        found = json.loads(line_of(reader) or '"the reader failed"')
        assert found["last"] == count_of(place)
        assert reader.wait(PATIENCE) == 0
