"""A table that asks for care gets it beside the commits of its writers, or from a service, by one process at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from uuid import uuid4

import pyarrow as pa
import pytest

from underlay.api.lake import Lake
from underlay.errors import InvalidRequest
from underlay.index.operation import Operation
from underlay.store import Store, open_store
from underlay.store.testing import Fault, FaultyStore
from underlay.table.versions.environment import Surroundings

NAME = "shop.sales"
CARE = {"care.compact_after_files": 4, "care.keep_versions": 2, "care.keep_for": "0s"}


class Later:
    """Background work that waits until it is told to begin."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def __call__(self, work: Callable[[], None]) -> None:
        if "AutoCare" in work.__qualname__:
            self.waiting.append(work)
        else:
            work()

    def run(self) -> int:
        """Do it; how much there was."""
        waiting, self.waiting = self.waiting, []
        for work in waiting:
            work()
        return len(waiting)


@pytest.fixture
def store() -> Store:
    return open_store(f"memory://{uuid4()}")


def rows(number: int) -> pa.Table:
    return pa.table({"id": [number]})


def test_the_writer_compacts_beside_its_commits(store):
    later = Later()
    lake = Lake(store, surroundings=Surroundings(in_background=later))
    table = lake.create_table(NAME, "id bigint", properties={"care.compact_after_files": 4})
    for number in range(3):
        table.append(rows(number))
    assert not later.waiting
    table.append(rows(3))
    table.append(rows(4))
    assert (later.run(), table.snapshot().root.file_count) == (1, 1)
    assert [one.operation for one in table.history()][:2] == [Operation.COMPACT, Operation.JOB]
    assert not later.waiting, "its own commits do not call for more"
    assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]
    for number in range(5, 8):
        table.append(rows(number))
    assert not later.waiting
    table.append(rows(8))
    assert later.run() == 1


def test_versions_expire_by_themselves(tmp_path):
    later = Later()
    lake = Lake(open_store(str(tmp_path / "lake")), surroundings=Surroundings(in_background=later))
    table = lake.create_table(NAME, "id bigint", properties={"care.keep_versions": 2, "care.keep_for": "0s"})
    for number in range(12):
        table.append(rows(number))
    for root in (tmp_path / "lake").rglob("*.root"):
        os.utime(root, (0, 0))  # a job keeps versions of its own second
    assert later.run() == 1
    assert table.snapshot().root.retention.begin == 12
    table.append(rows(13))
    assert not later.waiting


def test_a_table_that_asks_for_nothing_is_left(store):
    later = Later()
    table = Lake(store, surroundings=Surroundings(in_background=later)).create_table(NAME, "id bigint")
    for number in range(6):
        table.append(rows(number))
    assert not later.waiting


def test_care_that_fails_is_logged_and_no_commit_fails(store, caplog):
    faults: list[Fault] = []
    later = Later()
    lake = Lake(
        FaultyStore(store, lambda number, request: faults[0] if faults else None),
        surroundings=Surroundings(in_background=later, sleep=lambda seconds: None, rebase_attempts=2, put_attempts=2),
    )
    table = lake.create_table(NAME, "id bigint", properties=CARE)
    for number in range(4):
        table.append(rows(number))
    faults.append(Fault.LOST_REQUEST)
    later.run()
    faults.clear()
    assert "could not be looked after" in caplog.text
    table.append(rows(9))
    assert later.run() == 1
    assert table.snapshot().root.file_count == 1


def test_a_closed_lake_is_not_looked_after(store):
    later = Later()
    lake = Lake(store, surroundings=Surroundings(in_background=later))
    table = lake.create_table(NAME, "id bigint", properties=CARE)
    for number in range(4):
        table.append(rows(number))
    (work,) = later.waiting
    version = table.version
    lake._context._care._running.clear()  # the work was never begun: nothing to wait for
    lake.close()
    work()
    assert Lake(store).table(NAME).version == version
    with pytest.raises(InvalidRequest):
        table.append(rows(5))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_leaves_it_to_its_parent(tmp_path):
    later = Later()
    store = open_store(str(tmp_path / "lake"))
    lake = Lake(store, surroundings=Surroundings(in_background=later))
    table = lake.create_table(NAME, "id bigint", properties={"care.compact_after_files": 2})
    table.append(rows(0))
    table.append(rows(1))
    assert later.run() == 1
    child = os.fork()
    if not child:
        try:
            for number in range(2, 6):
                table.append(rows(number))
            os._exit(len(later.waiting))
        finally:
            os._exit(99)
    assert os.waitpid(child, 0)[1] == 0
    assert table.count() == 6


def test_one_process_looks_after_a_table_at_a_time(store):
    lakes = [Lake(store, surroundings=Surroundings(in_background=Later())) for _ in range(2)]
    table = lakes[0].create_table(NAME, "id bigint", properties=CARE)
    for number in range(5):
        table.append(rows(number))
    with lakes[1].table(NAME).job("care"):
        (held,) = lakes[0].care(sweep=False).tables
        assert held.is_held
    (done,) = lakes[0].care(sweep=False).tables
    assert done.compacted is not None
    assert done.compacted.files_after == 1


def test_the_service_does_round_after_round_and_goes_on_after_failures(store):
    lake = Lake(store, surroundings=Surroundings(in_background=Later()))
    table = lake.create_table(NAME, "id bigint", properties=CARE)
    lake.create_table("shop.other", "id bigint").append(rows(1))
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        for number in range(5):
            table.append(rows(number))
        return len(waits) == 3

    rounds = list(lake.watch_care(wait, every_seconds=7))
    assert waits == [7, 7, 7]
    assert [[one.table for one in found.tables] for found in rounds] == [[NAME]] * 3
    assert [found.swept is not None for found in rounds] == [True, False, False]
    assert rounds[1].tables[0].compacted is not None
    assert not any(found.failed for found in rounds)
