"""Runs tasks in parallel and yields results in order, with a bound on the memory of running and waiting ones."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Generic, TypeVar

from underlay.store.store import Store

T = TypeVar("T")

DEFAULT_BUDGET_BYTES = 256 << 20
MAX_WORKERS = 32


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """A piece of work, and about how many bytes its result and its inputs take."""

    weight_bytes: int
    run: Callable[[], T]


def default_workers(store: Store) -> int:
    """The number of threads that fetch and decode: one per core and one more for a local store, many for a remote
    one."""
    return MAX_WORKERS if store.is_remote else min((os.cpu_count() or 1) + 1, MAX_WORKERS)


def run_in_order(tasks: Iterable[Task[T]], *, workers: int, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> Iterator[T]:
    """The results of `tasks` in their order.

    At most `budget_bytes` are in progress or finished and not taken; a larger task runs alone. A single task, or a
    single worker, runs in the caller's thread. When the caller stops taking, tasks that have not begun are dropped, and
    the others are awaited.
    """
    given = iter(tasks)
    first = list(islice(given, 2))
    if len(first) < 2 or workers == 1:
        for task in chain(first, given):
            yield task.run()
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="underlay-scan") as pool:
        waiting: deque[tuple[Future[T], int]] = deque()
        held = 0
        try:
            for task in chain(first, given):
                while waiting and held + task.weight_bytes > budget_bytes:
                    future, weight = waiting.popleft()
                    held -= weight
                    yield future.result()
                waiting.append((pool.submit(task.run), task.weight_bytes))
                held += task.weight_bytes
                while waiting and waiting[0][0].done():
                    future, weight = waiting.popleft()
                    held -= weight
                    yield future.result()
            while waiting:
                yield waiting.popleft()[0].result()
        finally:
            for future, _ in waiting:
                future.cancel()
