"""Threads and forks that share a table."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, as_new_process, data_keys, ids, named_keys, rows
from tests.table.checker import Checker
from underlay.errors import CommitConflict
from underlay.store.local import LocalStore

THREADS, APPENDS = 8, 10


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "lake")


@pytest.fixture
def table(store: LocalStore) -> underlay.Table:
    return underlay.connect(store).create_table(NAME, SCHEMA, key=["id"])


def test_threads_that_upsert_and_delete_the_same_keys_lose_and_double_nothing(store: LocalStore, table: underlay.Table):
    table.append(rows(range(40)))

    def work(seed: int) -> int:
        chance, grown = random.Random(seed), 0
        own = underlay.connect(store).table(NAME)
        for _ in range(4):
            chosen = chance.sample(range(60), 6)
            done = own.upsert(rows(chosen)) if chance.random() < 0.7 else own.delete(rows=rows(chosen[:2]))
            grown += done.rows_inserted - done.rows_deleted
        return grown

    with ThreadPoolExecutor(3) as pool:
        grown = sum(pool.map(work, range(3)))
    found = ids(as_new_process(store))
    assert len(found) == len(set(found)) == 40 + grown
    Checker(store).check()


def test_eight_threads_append_and_scan_one_table(store: LocalStore, table: underlay.Table):
    def work(first: int) -> None:
        for number in range(first, first + APPENDS):
            table.append(rows([number]))
            found = ids(table)
            assert number in found, "a thread does not see its own row"
            assert len(found) == len(set(found))

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, 100 * number) for number in range(THREADS)]:
            done.result()
    expected = [100 * number + place for number in range(THREADS) for place in range(APPENDS)]
    assert ids(as_new_process(store)) == expected
    assert table.version == THREADS * APPENDS
    assert data_keys(store) == named_keys(table)
    Checker(store).check()


def test_threads_with_one_token_add_its_rows_once(store: LocalStore, table: underlay.Table):
    def work(_: int) -> bool:
        return table.append(rows([1, 2, 3]), token="once").is_repeat

    with ThreadPoolExecutor(THREADS) as pool:
        repeats = list(pool.map(work, range(THREADS)))
    assert repeats.count(False) == 1
    assert table.version == 1
    assert ids(as_new_process(store)) == [1, 2, 3]
    Checker(store).check()


def test_a_version_reads_the_same_while_others_append_and_roll_back(store: LocalStore, table: underlay.Table):
    table.append(rows(range(10)))
    is_over = Event()

    def write(seed: int) -> None:
        chance = random.Random(seed)
        writer = underlay.connect(store).table(NAME)
        for number in range(12):
            if number % 4 == 3:
                roll_back(writer, chance.randrange(writer.version))
            else:
                writer.append(rows([1_000 * seed + number]))

    def read() -> list[tuple[underlay.Table, pa.Table]]:
        reader = underlay.connect(store).table(NAME)
        seen = []
        while not is_over.is_set() or not seen:
            pinned = reader.at(version=reader.version)
            answer = pinned.to_arrow()
            assert pinned.count() == answer.num_rows
            assert pinned.to_arrow().equals(answer)
            seen.append((pinned, answer))
        return seen

    with ThreadPoolExecutor(4) as pool:
        reading = pool.submit(read)
        try:
            for done in [pool.submit(write, seed) for seed in (1, 2)]:
                done.result()
        finally:
            is_over.set()
        seen = reading.result()
    newest = as_new_process(store)
    for pinned, answer in seen:
        assert pinned.to_arrow().equals(answer)
        assert newest.at(version=pinned.version).to_arrow().equals(answer)
    Checker(store).check()


def roll_back(table: underlay.Table, version: int) -> None:
    """Back to a version, also when others commit meanwhile."""
    while True:
        try:
            table.rollback(version)
        except CommitConflict:
            continue
        return


def test_a_forked_child_reads_and_writes_the_table_of_its_parent(store: LocalStore, table: underlay.Table):
    table.append(rows([1]))
    assert ids(table) == [1]
    child = os.fork()
    if not child:
        code = 1
        try:
            table.append(rows([2]))
            code = 0 if ids(table) == [1, 2] else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    table.append(rows([3]))
    assert ids(table) == [1, 2, 3]
    Checker(store).check()
