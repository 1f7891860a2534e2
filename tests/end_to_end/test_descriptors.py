"""Descriptors, threads and cached bytes stay as many as they were, however often a lake is opened or written to."""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from tests.gate import sized
from underlay.cache.settings import memory_cache

CONNECTS = sized(80, 5_000)
APPENDS = 50_000
SPARE = 40
"""Connections and threads of some registries, which are closed when they had nothing to do for a while."""
SLACK_MEGABYTES = 200
"""What the allocators keep, and the index of 50,000 files, which a table has in memory."""


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def megabytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


@dataclass
class Held:
    """What the process held of the machine after every hundredth of its work. The first tenth fills its caches."""

    rounds: int
    samples: list[tuple[int, int, int]] = field(default_factory=list)

    def after(self, number: int) -> None:
        if number % max(1, self.rounds // 100) == 0:
            self.samples.append((descriptors(), threads(), megabytes()))

    def check(self, **slack: int) -> None:
        early = len(self.samples) // 10 + 1
        print(f"{self.rounds} rounds, of ten parts each the most (descriptors, threads, megabytes):")
        print([tuple(map(max, *self.samples[at : at + early], (0, 0, 0))) for at in range(0, len(self.samples), early)])
        for at, name in enumerate(("descriptors", "threads", "megabytes")):
            first = max(sample[at] for sample in self.samples[:early])
            last = max(sample[at] for sample in self.samples[early:])
            assert last <= first + slack[name], f"{name}: {first} in the first tenth, {last} later"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a table of a few segments, and ids from 0 to 299."""
    root = tmp_path_factory.mktemp("descriptors") / "lake"
    table = underlay.connect(root, registry="none").create_table(NAME, SCHEMA)
    for begin in range(0, 300, 2):
        table.append(rows([begin, begin + 1]))
    return root


@pytest.mark.timeout(sized(900, 7200))
@pytest.mark.parametrize("registry", ["none", "sqlite"])
def test_lakes_that_are_opened_and_forgotten_leave_no_descriptor(root: Path, registry: str):
    url = None if registry == "none" else f"sqlite:///{root / '_registry' / 'registry.sqlite'}"
    before, before_threads, most = descriptors(), threads(), 0
    held = Held(CONNECTS)
    for number in range(CONNECTS):
        table = underlay.connect(root, registry=url or "none").table(NAME)
        table.append(rows([-1 - number]))
        assert table.scan(where=f"id = {number % 300}").to_arrow().num_rows == 1
        most = max(most, descriptors())
        held.after(number)
    assert most <= before + (SPARE if url else 5)
    assert threads() <= before_threads + SPARE
    held.check(descriptors=SPARE, threads=SPARE, megabytes=SLACK_MEGABYTES)


@pytest.mark.storm
@pytest.mark.timeout(7200)
def test_appends_of_one_lake_leave_no_descriptor(tmp_path: Path):
    with underlay.connect(tmp_path / "lake", registry="none") as lake:
        table = lake.create_table(NAME, SCHEMA)
        table.append(rows([0]))
        before = descriptors()
        held = Held(APPENDS)
        for number in range(1, APPENDS):
            table.append(rows([number]))
            held.after(number)
        held.check(descriptors=SPARE, threads=4, megabytes=SLACK_MEGABYTES)
        assert table.count("id >= 0") == APPENDS
        assert descriptors() <= before + SPARE


def test_nothing_stays_in_memory_of_a_lake_that_is_closed_or_forgotten(root: Path):
    cache = memory_cache()
    gc.collect()
    cache.drop_forgotten()
    before = cache.stats()
    with underlay.connect(root, registry="none") as lake:
        assert len(ids(lake.table(NAME), "id >= 0")) == 300
        assert cache.stats().size_bytes > before.size_bytes
    closed = cache.stats()
    lake = underlay.connect(root, registry="none")
    assert len(ids(lake.table(NAME), "id >= 0")) == 300
    assert cache.stats().entry_count > closed.entry_count
    del lake
    gc.collect()
    cache.drop_forgotten()
    assert cache.stats().entry_count == closed.entry_count
    assert cache.stats().size_bytes <= closed.size_bytes
