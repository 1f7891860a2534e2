"""Lakes in odd places, seen by more than one at once."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, as_new_process, ids, rows
from tests.table.checker import Checker
from underlay.errors import TableExists, UnderlayError
from underlay.store.local import LocalStore

THREADS = 8


@pytest.mark.parametrize("name", ["plain", "with space", "100%", "a#b", "a%20b", "ünïcødé", "q?x", "[set]"])
def test_a_lake_may_have_any_name(tmp_path: Path, name: str):
    root = tmp_path / name
    lake = underlay.connect(root)
    table = lake.create_table(NAME, SCHEMA, key=["id"])
    table.append(rows([1, 2]))
    (root / "in").mkdir()
    pq.write_table(rows([3]), root / "in" / "own file.parquet")
    pq.write_table(rows([4]), tmp_path / "other file.parquet")
    table.register(str(tmp_path / "other file.parquet"))
    table.register(str(root / "in" / "own file.parquet"))
    assert ids(table) == [1, 2, 3, 4]
    assert ids(as_new_process(LocalStore(root)), "id = 4") == [4]
    assert ids(underlay.connect(lake.url).table(NAME), "id < 3") == [1, 2]


def test_a_lake_may_be_moved(tmp_path: Path):
    table = underlay.connect(tmp_path / "before").create_table(NAME, SCHEMA, key=["id"])
    table.append(rows([1, 2]))
    (tmp_path / "before" / "in").mkdir()
    pq.write_table(rows([3]), tmp_path / "before" / "in" / "a.parquet")
    table.register(str(tmp_path / "before" / "in"))
    shutil.move(tmp_path / "before", tmp_path / "after")
    moved = as_new_process(LocalStore(tmp_path / "after"))
    assert ids(moved) == [1, 2, 3]
    moved.append(rows([4]))
    assert ids(moved, "id > 2") == [3, 4]


def test_a_name_is_given_to_one_of_many_at_once(tmp_path: Path):
    store = LocalStore(tmp_path)
    underlay.connect(store).initialise()

    def create(_: int) -> bool:
        try:
            underlay.connect(store).create_table(NAME, SCHEMA)
        except TableExists:
            return False
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(create, range(THREADS))).count(True) == 1
    Checker(store).check()


def test_tables_are_made_and_dropped_side_by_side(tmp_path: Path):
    store = LocalStore(tmp_path)
    lake = underlay.connect(store)
    lake.initialise()

    def live(number: int) -> None:
        name = f"some.table_{number}"
        lake.create_table(name, SCHEMA).append(rows([number]))
        lake.rename_table(name, f"{name}_renamed")
        assert ids(lake.table(f"{name}_renamed")) == [number]
        if number % 2:
            lake.drop_table(f"{name}_renamed")

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(live, number) for number in range(THREADS)]:
            done.result()
    assert [table.name for table in lake.tables()] == [f"some.table_{n}_renamed" for n in range(0, THREADS, 2)]
    Checker(store).check()


def test_a_process_that_may_be_behind_sees_its_own_rows_and_never_goes_back(tmp_path: Path):
    store = LocalStore(tmp_path)
    lake = underlay.connect(store, max_staleness_seconds=3600.0)
    table = lake.create_table(NAME, SCHEMA)
    other = underlay.connect(store).table(NAME)
    table.append(rows([1]))
    assert ids(table) == [1]
    other.append(rows([2]))
    assert ids(table) == [1]
    table.append(rows([3]))
    assert ids(table) == [1, 2, 3]
    assert ids(lake.table(NAME)) == [1, 2, 3]


def test_a_table_that_another_process_renamed_is_still_written_by_its_old_handle_or_refused(tmp_path: Path):
    store = LocalStore(tmp_path)
    table = underlay.connect(store).create_table(NAME, SCHEMA)
    underlay.connect(store).rename_table(NAME, "some.renamed")
    try:
        table.append(rows([1]))
    except UnderlayError:
        assert ids(underlay.connect(store).table("some.renamed")) == []
    else:
        assert ids(underlay.connect(store).table("some.renamed")) == [1]
    Checker(store).check()


def test_a_new_table_of_an_old_name_is_another_one(tmp_path: Path):
    store = LocalStore(tmp_path)
    lake = underlay.connect(store)
    old = lake.create_table(NAME, SCHEMA)
    old.append(rows([1]))
    other = underlay.connect(store)
    other.drop_table(NAME)
    other.create_table(NAME, SCHEMA).append(rows([2]))
    assert ids(lake.table(NAME)) == [2]
    assert ids(old) == [2]
    old.append(rows([3]))
    assert ids(other.table(NAME)) == [2, 3]
    Checker(store).check()
