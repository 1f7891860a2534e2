"""Processes that write real rows to one local lake, and are killed while they do."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, as_new_process, data_keys, ids, named_keys
from tests.end_to_end.writer import Writers
from tests.gate import sized
from tests.table.checker import Checker
from underlay.store.local import LocalStore

PROCESSES, APPENDS = sized((8, 10), (8, 50))
KILLS = sized(5, 15)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """A lake with an empty table."""
    store = LocalStore(tmp_path / "lake")
    underlay.connect(store).create_table(NAME, SCHEMA, key=["id"])
    return store


@pytest.fixture
def writers(store: LocalStore) -> Iterator[Writers]:
    with Writers(store.root) as found:
        yield found


def test_eight_processes_append_at_once(store: LocalStore, writers: Writers):
    for number in range(PROCESSES):
        writers.write(1_000 * number, APPENDS)
    told, failed = writers.rest()
    assert failed == 0
    expected = [1_000 * number + place for number in range(PROCESSES) for place in range(APPENDS)]
    assert sorted(told) == expected
    assert sorted(told.values()) == list(range(1, len(expected) + 1))
    table = as_new_process(store)
    assert ids(table) == expected
    assert [version.version for version in table.history()] == list(range(len(expected), -1, -1))
    assert data_keys(store) == named_keys(table)
    Checker(store).check()


def test_a_killed_process_loses_nothing_that_was_acknowledged(store: LocalStore, writers: Writers):
    chance = random.Random(11)
    checker = Checker(store)
    expected: set[int] = set()
    for number in range(KILLS):
        told = write_and_kill(writers, 10_000 * number, chance.randrange(4), chance.random() * 0.02)
        table = as_new_process(store)
        found = set(ids(table))
        assert expected | told <= found
        assert len(found - expected - told) <= 1, "more than one append that was not acknowledged"
        assert named_keys(table) <= data_keys(store)
        expected = found
        checker.check()
    assert len(expected) > KILLS
    writers.write(-1, 1)
    assert set(writers.rest()[0]) == {-1}
    assert ids(as_new_process(store)) == sorted({-1, *expected})
    assert len(data_keys(store)) <= len(expected) + 1 + KILLS, "more than one file was left behind by a kill"
    checker.check()


def write_and_kill(writers: Writers, first: int, count: int, seconds: float) -> set[int]:
    """The ids that a writer acknowledged; it is killed some time after it acknowledged `count` of them."""
    writers.write(first, 10_000)
    word, process = writers.line()
    assert word == "pid"
    told = {int(writers.line()[0]) for _ in range(count)}
    Timer(seconds, os.kill, (process, signal.SIGKILL)).start()
    rest, failed = writers.rest()
    assert failed == 1
    return told | rest.keys()
