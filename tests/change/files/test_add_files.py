from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, ids, memory, quick, rows
from tests.table.checker import Checker
from underlay.change.files import add_files as module
from underlay.store import Store


@pytest.fixture
def store() -> Store:
    return memory()


def small_files(store: Store, count: int) -> underlay.Table:
    """A table to which so many files of one row each were added at once, in descending order."""
    properties = {"block_rows": "1", "file_bytes": "1"}
    table = quick(store).create_table(NAME, SCHEMA, key=["id"], properties=properties)
    table.append(rows(range(count, 0, -1)))
    return table


@pytest.mark.parametrize(("count", "segments"), [(1, 0), (20, 0), (65, 1), (200, 1)])
def test_few_files_ride_in_the_root_and_many_are_a_segment(store: Store, count: int, segments: int):
    table = small_files(store, count)
    root = table.snapshot().root
    assert (len(root.segments), len(root.tail)) == (segments, 0 if segments else count)
    assert root.counts["files_added"] == count
    assert ids(table) == list(range(1, count + 1))
    Checker(store).check()


def test_long_entries_are_a_segment_however_few(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "TAIL_BYTES", 100)
    assert len(small_files(store, 3).snapshot().root.segments) == 1


def test_segments_are_cut_along_the_order_of_the_table(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MAX_FILES", 40)
    table = small_files(store, 100)
    refs = table.snapshot().root.segments
    assert [ref.file_count for ref in refs] == [40, 40, 20]
    plan = table.plan(where="id <= 40")
    assert len(plan.choices.skipped) == 2
    assert ids(table, "id <= 41") == list(range(1, 42))
    assert ids(table) == list(range(1, 101))
    Checker(store).check()


def test_files_without_a_bound_come_first(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MAX_FILES", 40)
    table = quick(store).create_table(NAME, "id bigint, name string, value double", sort_by=["id"])
    for number in range(70):
        pq.write_table(rows([number]), tmp_path / f"{99 - number}.parquet", write_statistics=number % 7 != 0)
    table.register(f"{tmp_path}/*.parquet")
    refs = table.snapshot().root.segments
    assert [ref.file_count for ref in refs] == [40, 30]
    assert ids(table) == list(range(70))
    assert ids(table, "id = 7") == [7]
    Checker(store).check()
