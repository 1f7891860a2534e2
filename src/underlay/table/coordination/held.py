"""An object in the store that a process holds by renewing it, until it is released or lost."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from types import TracebackType
from typing import Self

from underlay.errors import UnderlayError
from underlay.runtime.locks import ProcessLock
from underlay.table.coordination.heartbeat import Heartbeat


class HeldObject(ABC):
    """A job or a lease that is held. Safe for many threads; in a forked child it is neither renewed nor released."""

    def __init__(self, ttl_us: int, heartbeat: Heartbeat) -> None:
        self._ttl_us = ttl_us
        self._heartbeat = heartbeat
        self._lock = ProcessLock()
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
        """Whether another process took it, or may have taken it because a renewal was late. As of the last renewal."""
        return self._is_lost

    def renew(self) -> bool:
        """Renew it in the store now. False when it is no longer held. Raises Unavailable."""
        if self._process != os.getpid():
            return False
        with self._lock:
            if not self._is_over and not self._put_again():
                self._end(is_lost=True)
            return not self._is_over

    def lose(self) -> None:
        """Count it as lost, and stop renewing it. Does nothing after the end."""
        with self._lock:
            if not self._is_over:
                self._end(is_lost=True)

    def release(self) -> None:
        """Delete the object, so that no process waits for it to expire. A second call does nothing."""
        if self._process != os.getpid():
            return
        self._heartbeat.drop(self)
        with self._lock:
            if not self._is_over:
                self._end(is_lost=False)

    def _end(self, *, is_lost: bool) -> None:
        self._is_over, self._is_lost = True, is_lost
        # The object would expire anyway: failing to delete it does not make the work fail.
        with suppress(UnderlayError):
            self._take_away()

    @abstractmethod
    def _put_again(self) -> bool:
        """Put the object again. Returns False, and puts nothing, when it is no longer held."""

    @abstractmethod
    def _take_away(self) -> None:
        """Delete the object, unless it belongs to another process."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
