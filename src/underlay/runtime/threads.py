"""Threads that run requests in parallel. Some are kept alive: starting one takes longer than a small request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from underlay.runtime.fork import start_afresh_after_fork

P = ParamSpec("P")
A = TypeVar("A")
T = TypeVar("T")


class Threads:
    """At most `count` threads."""

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self.start_afresh()
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Start with no thread: none outlives a fork."""
        self._pool = ThreadPoolExecutor(self._count, thread_name_prefix=self._name)

    def submit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a thread do it."""
        return self._pool.submit(work, *args, **kwargs)

    def each(self, work: Callable[[A], T], items: Sequence[A]) -> list[T]:
        """The results of `work` for all items, in their order. `work` must not wait for these threads.

        Runs in this thread at interpreter shutdown, when no thread can be started.
        """
        try:
            begun = [self._pool.submit(work, item) for item in items]
        except RuntimeError:
            return [work(item) for item in items]
        return [one.result() for one in begun]


def side_by_side(work: Callable[[A], T], items: Sequence[A], count: int) -> list[T]:
    """The results of `work` for all items, in their order, by at most `count` threads.

    Runs in this thread if one is enough, and at interpreter shutdown, when no thread can be started.
    """
    if min(count, len(items)) > 1:
        with ThreadPoolExecutor(min(count, len(items))) as pool:
            try:
                results = pool.map(work, items)
            except RuntimeError:
                pass
            else:
                return list(results)
    return [work(item) for item in items]


REQUESTS = Threads(32, "underlay-request")
READS = Threads(32, "underlay-read")
"""For requests of scans, of which there may be hundreds: a commit does not wait behind them."""
