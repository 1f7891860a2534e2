"""What a process holds by keeping an object in the store alive, from when it was taken until it is released or lost."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import Self

from underlay.errors import UnderlayError
from underlay.table.coordination.heartbeat import Heartbeat


class HeldObject(ABC):
    """A job or a lease that is held. Safe for many threads; in a forked child it is neither renewed nor released."""

    def __init__(self, ttl_us: int, heartbeat: Heartbeat) -> None:
        self._ttl_us = ttl_us
        self._heartbeat = heartbeat
        self._lock = Lock()
        self._is_over = False
        self._is_lost = False
        self._process = os.getpid()
        heartbeat.keep(self)

    @property
    def ttl_seconds(self) -> float:
        """How long it counts as held after a renewal."""
        return self._ttl_us / 1_000_000

    @property
    def is_lost(self) -> bool:
        """Whether another took it, or may have since it could not be renewed in time. As of the last renewal."""
        return self._is_lost

    def renew(self) -> bool:
        """Say in the store that it is held; False when it is so no more. Raises Unavailable."""
        if self._process != os.getpid():
            return False
        with self._lock:
            if not self._is_over and not self._put_again():
                self._end(is_lost=True)
            return not self._is_over

    def lose(self) -> None:
        """It counts as lost, and is renewed no more. Nothing happens when it is over."""
        with self._lock:
            if not self._is_over:
                self._end(is_lost=True)

    def release(self) -> None:
        """Take the object away, so that nobody waits for its time to live. Nothing happens when it is over."""
        if self._process != os.getpid():
            return
        self._heartbeat.drop(self)
        with self._lock:
            if not self._is_over:
                self._end(is_lost=False)

    def _end(self, *, is_lost: bool) -> None:
        self._is_over, self._is_lost = True, is_lost
        # The object would expire anyway: that it could not be taken away is no failure of the work that was done.
        with suppress(UnderlayError):
            self._take_away()

    @abstractmethod
    def _put_again(self) -> bool:
        """Put the object again; False, and nothing is put, when it is held no more."""

    @abstractmethod
    def _take_away(self) -> None:
        """Delete the object, unless it is another one's."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
