"""Locks that are free in a forked child, whichever thread of the parent held them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import Lock, RLock
from types import TracebackType
from typing import TypeVar

from underlay.runtime.fork import start_afresh_after_fork

T = TypeVar("T")


class ProcessLock:
    """A lock among the threads of one process. What it guards must be consistent after every statement, or start afresh
    too."""

    __slots__ = ("__weakref__", "_lock", "_make")

    def __init__(self, *, reentrant: bool = False) -> None:
        self._make = RLock if reentrant else Lock
        self.start_afresh()
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Nobody holds it."""
        self._lock = self._make()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


class cached_property(functools.cached_property[T]):  # noqa: N801  # used as a decorator, like the one of functools
    """A property that is computed once. Up to Python 3.11, all objects of a class share a lock for it."""

    def __init__(self, work_out: Callable[..., T]) -> None:
        super().__init__(work_out)
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """No thread is computing it."""
        if hasattr(self, "lock"):
            self.lock = RLock()
