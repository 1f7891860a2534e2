"""Work done side by side whose results come in order, with a bound on what is under way or waiting to be taken."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Generic, TypeVar

T = TypeVar("T")

DEFAULT_BUDGET_BYTES = 256 << 20
MAX_WORKERS = 32


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """Something to do, and about how many bytes its result and its inputs take."""

    weight_bytes: int
    run: Callable[[], T]


def default_workers(*, is_far: bool = False) -> int:
    """Threads for decoding: one for each core, and one more that waits for the store; many more for a remote one."""
    return MAX_WORKERS if is_far else min((os.cpu_count() or 1) + 1, MAX_WORKERS)


def run_in_order(
    tasks: Iterable[Task[T]], *, workers: int | None = None, budget_bytes: int = DEFAULT_BUDGET_BYTES
) -> Iterator[T]:
    """The results of `tasks` in their order.

    At most `budget_bytes` are under way or finished and not taken; a task that is larger than that runs alone. One
    task alone, or one worker, runs in the caller's thread. When the caller stops taking, what has not begun is dropped
    and what has is waited for.
    """
    given = iter(tasks)
    first = list(islice(given, 2))
    if len(first) < 2 or workers == 1:
        for task in chain(first, given):
            yield task.run()
        return
    with ThreadPoolExecutor(workers or default_workers(), thread_name_prefix="underlay-scan") as pool:
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
