"""Runs the checks of `verify`: requests in parallel with a bounded queue, and progress reports."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from underlay.runtime.locks import ProcessLock
from underlay.scan.read.file_stores import FileStores
from underlay.store.store import Store

THREADS = 16
DECODERS = 4
"""The number of files decoded at a time: each holds a block in memory."""
_WAITING = 4
"""The number of results per thread that may wait for the caller."""

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Called with the number of objects examined, and of all found so far."""


@dataclass(slots=True)
class ObjectTally:
    """Counts objects."""

    progress: Progress | None
    _done: int = 0
    _total: int = 0
    _lock: ProcessLock = field(default_factory=ProcessLock)

    def expect(self, count: int) -> None:
        """Expect this many more objects."""
        with self._lock:
            self._total += count

    def tick(self) -> None:
        """Count one more object as done."""
        with self._lock:
            self._done += 1
            if self.progress is not None:
                self.progress(self._done, max(self._total, self._done))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyContext:
    """The stores to check, and the threads and counter to check with."""

    store: Store
    stores: FileStores
    pool: ThreadPoolExecutor
    tally: ObjectTally

    def each(self, look: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """What `look` returns for each item, in order. Each item counts in the tally."""
        found = list(items)
        self.tally.expect(len(found))
        return self._run(look, found, THREADS * _WAITING)

    def decode(self, look: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The same for items that arrive one by one and need much memory: only a few at a time."""

        def counted() -> Iterator[Item]:
            for item in items:
                self.tally.expect(1)
                yield item

        return self._run(look, counted(), DECODERS)

    def _run(self, look: Callable[[Item], Result], items: Iterable[Item], limit: int) -> Iterator[Result]:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(self.pool.submit(look, item))
            if len(waiting) >= limit:
                yield self._taken(waiting)
        while waiting:
            yield self._taken(waiting)

    def _taken(self, waiting: deque[Future[Result]]) -> Result:
        result = waiting.popleft().result()
        self.tally.tick()
        return result
