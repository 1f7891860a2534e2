"""Descriptors, threads and cached bytes stay as many as they were, however often a lake is opened or written to."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from tests.gate import sized
from underlay.cache.settings import memory_cache
from underlay.runtime import maps

CONNECTS = sized(80, 5_000)
APPENDS = 50_000
SPARE = 40
"""Connections and threads of some registries, which are closed when they had nothing to do for a while."""


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a table of a few segments, and ids from 0 to 299."""
    root = tmp_path_factory.mktemp("descriptors") / "lake"
    table = underlay.connect(root, registry="none").create_table(NAME, SCHEMA)
    for begin in range(0, 300, 2):
        table.append(rows([begin, begin + 1]))
    return root


@pytest.mark.parametrize("registry", ["none", "sqlite"])
def test_lakes_that_are_opened_and_forgotten_leave_no_descriptor(root: Path, registry: str):
    url = None if registry == "none" else f"sqlite:///{root / '_registry' / 'registry.sqlite'}"
    before, before_threads, most = descriptors(), threads(), 0
    for number in range(CONNECTS):
        table = underlay.connect(root, registry=url or "none").table(NAME)
        table.append(rows([-1 - number]))
        assert table.scan(where=f"id = {number % 300}").to_arrow().num_rows == 1
        most = max(most, descriptors())
    assert most <= before + (SPARE if url else 5)
    assert threads() <= before_threads + SPARE


@pytest.mark.storm
def test_appends_of_one_lake_leave_no_descriptor(tmp_path: Path):
    with underlay.connect(tmp_path / "lake", registry="none") as lake:
        table = lake.create_table(NAME, SCHEMA)
        table.append(rows([0]))
        before = descriptors()
        for number in range(1, APPENDS):
            table.append(rows([number]))
        assert table.count("id >= 0") == APPENDS
        assert descriptors() <= before + maps.MOST_MAPS // 4


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


def test_large_segments_are_mapped_by_few_and_read_by_the_others(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(maps, "MAP_FROM", 1)
    monkeypatch.setattr(maps, "MOST_MAPS", len(maps._living) + 3)
    before = descriptors()
    lakes = [underlay.connect(root, registry="none") for _ in range(10)]
    found = [lake.table(NAME).scan(where="id >= 250 and id < 260") for lake in lakes]
    assert [ids_of(one) for one in found] == [list(range(250, 260))] * 10
    assert before < descriptors() <= before + 3


def ids_of(scan: underlay.Scan) -> list[int]:
    return sorted(scan.to_arrow()["id"].to_pylist())
