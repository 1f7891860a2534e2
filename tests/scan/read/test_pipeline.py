from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underlay.scan.read.pipeline import MAX_WORKERS, Task, default_workers, run_in_order
from underlay.store import open_store

WAIT_SECONDS = 240


class Gauge:
    """Counts the bytes of tasks that have begun and whose result was not taken."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.held = self.most = self.begun = 0

    def task(self, number: int, weight: int) -> Task[tuple[int, int]]:
        def run() -> tuple[int, int]:
            with self.lock:
                self.begun += 1
                self.held += weight
                self.most = max(self.most, self.held)
            return number, weight

        return Task(weight, run)

    def taken(self, weight: int) -> None:
        with self.lock:
            self.held -= weight


def numbered(count: int, weight: int = 1) -> Iterator[Task[int]]:
    for number in range(count):
        yield Task(weight, lambda number=number: number)


@given(weights=st.lists(st.integers(0, 12), max_size=30), workers=st.integers(1, 5), budget=st.integers(1, 20))
def test_results_come_in_order_within_the_budget(weights: list[int], workers: int, budget: int):
    gauge = Gauge()
    tasks = (gauge.task(number, weight) for number, weight in enumerate(weights))
    found = []
    for number, weight in run_in_order(tasks, workers=workers, budget_bytes=budget):
        found.append(number)
        gauge.taken(weight)
    assert found == list(range(len(weights)))
    # The result that is being handed over is no longer counted, nor taken yet.
    assert gauge.most <= max([budget, *weights]) + max([0, *weights])


def test_later_tasks_run_while_the_first_one_does():
    is_second_begun = threading.Event()

    def first() -> str:
        assert is_second_begun.wait(WAIT_SECONDS)
        return "first"

    def second() -> str:
        is_second_begun.set()
        return "second"

    assert list(run_in_order([Task(1, first), Task(1, second)], workers=2)) == ["first", "second"]


def test_a_task_larger_than_the_budget_runs_alone():
    running = threading.Semaphore(1)

    def alone() -> bool:
        is_alone = running.acquire(blocking=False)
        running.release()
        return is_alone

    assert list(run_in_order([Task(100, alone) for _ in range(20)], workers=4, budget_bytes=10)) == [True] * 20


@pytest.mark.parametrize(("count", "workers"), [(1, 8), (5, 1)])
def test_one_task_or_one_worker_runs_in_the_callers_thread(count: int, workers: int):
    threads = list(run_in_order([Task(1, threading.get_ident) for _ in range(count)], workers=workers))
    assert threads == [threading.get_ident()] * count


def test_no_task_is_no_result():
    assert list(run_in_order([], workers=2)) == []


def test_tasks_are_asked_for_as_they_are_needed():
    asked = []

    def tasks() -> Iterator[Task[int]]:
        for number in range(1_000):
            asked.append(number)
            yield Task(1, lambda number=number: number)

    results = run_in_order(tasks(), workers=2, budget_bytes=5)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    assert len(asked) <= 3 + 5 + 2
    results.close()


def test_a_caller_that_stops_early_leaves_nothing_running():
    gauge = Gauge()
    results = run_in_order((gauge.task(number, 1) for number in range(1_000)), workers=3, budget_bytes=10)
    next(results)
    results.close()
    begun = gauge.begun
    assert begun <= 12
    assert scan_threads() == []
    assert gauge.begun == begun


def test_an_error_comes_at_its_place_and_ends_everything():
    done: list[int] = []

    def fail() -> int:
        raise ValueError("broken")

    def note(number: int) -> Callable[[], int]:
        def run() -> int:
            done.append(number)
            return number

        return run

    def tasks() -> Iterator[Task[int]]:
        for number in range(100):
            yield Task(1, fail if number == 3 else note(number))

    results = run_in_order(tasks(), workers=2, budget_bytes=6)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="broken"):
        next(results)
    with pytest.raises(StopIteration):
        next(results)
    assert scan_threads() == []
    assert len(done) < 15


def test_an_error_of_the_one_who_gives_tasks_comes_through():
    def tasks() -> Iterator[Task[int]]:
        yield from numbered(3)
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(run_in_order(tasks(), workers=2))
    assert scan_threads() == []


def test_many_callers_at_once_do_not_wait_for_each_other():
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: list(run_in_order(numbered(20), workers=2, budget_bytes=3)), range(16)))
    assert found == [list(range(20))] * 16


def scan_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("underlay-scan")]


def test_a_remote_store_is_read_by_many_threads_and_a_local_one_by_as_many_as_there_are_cores():
    assert default_workers(open_store("s3://bucket/lake", {"region": "us-east-1"})) == MAX_WORKERS
    assert default_workers(open_store("memory://local")) <= (os.cpu_count() or 1) + 1
