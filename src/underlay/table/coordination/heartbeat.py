"""One thread per process, which renews everything that the process holds for as long as it holds anything."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Thread, current_thread
from typing import Protocol

from underlay.errors import Unavailable, UnderlayError
from underlay.runtime.fork import start_afresh_after_fork

_RENEWALS = 3
"""Renewals in one time to live."""
_RETRIES = 12
"""Tries in one time to live, when the store does not answer."""


class Renewed(Protocol):
    """An object that counts as held for `ttl_seconds` after each renewal."""

    @property
    def ttl_seconds(self) -> float:
        """How long it counts as held."""

    def renew(self) -> bool:
        """Renew it. False when it is no longer held. Raises Unavailable."""

    def lose(self) -> None:
        """Mark it as lost."""


@dataclass(slots=True, kw_only=True)
class _Times:
    renewed_at: float
    due_at: float


def start_thread(run: Callable[[], None]) -> Thread:
    """Start a daemon thread."""
    thread = Thread(target=run, daemon=True, name="underlay-heartbeat")
    thread.start()
    return thread


class Heartbeat:
    """Renews each object that it keeps three times in its time to live. Safe for many threads."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        start: Callable[[Callable[[], None]], Thread | None] = start_thread,
    ) -> None:
        self._monotonic = monotonic
        self._start = start
        self.start_afresh()
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Keep nothing: the parent process renews what it holds."""
        self._changed = Condition()
        self._kept: dict[Renewed, _Times] = {}
        self._thread: Thread | None = None

    def keep(self, held: Renewed) -> None:
        """Renew this from now on. It must have been renewed just before."""
        with self._changed:
            now = self._monotonic()
            self._kept[held] = _Times(renewed_at=now, due_at=now + held.ttl_seconds / _RENEWALS)
            if self._thread is None:
                self._thread = self._start(self._run)
            self._changed.notify()

    def drop(self, held: Renewed) -> None:
        """Stop renewing this. A renewal in progress goes on."""
        with self._changed:
            self._kept.pop(held, None)
            self._changed.notify()

    def beat(self) -> None:
        """Renew everything that is due. If the store does not answer, retry until the time to live is over."""
        with self._changed:
            now = self._monotonic()
            due = [(held, times) for held, times in self._kept.items() if times.due_at <= now]
        for held, times in due:
            self._renew(held, times)

    def _renew(self, held: Renewed, times: _Times) -> None:
        begun_at = self._monotonic()
        try:
            is_held = held.renew()
        except Unavailable:
            times.due_at = self._monotonic() + held.ttl_seconds / _RETRIES
            is_held = self._monotonic() < times.renewed_at + held.ttl_seconds
        except UnderlayError:
            is_held = False
        else:
            times.renewed_at, times.due_at = begun_at, begun_at + held.ttl_seconds / _RENEWALS
        if not is_held:
            held.lose()
            self.drop(held)

    def _run(self) -> None:
        try:
            while True:
                self.beat()
                with self._changed:
                    if not self._kept:
                        self._thread = None
                        return
                    soonest = min(times.due_at for times in self._kept.values())
                    self._changed.wait(max(soonest - self._monotonic(), 0))
        finally:
            with self._changed:
                if self._thread is current_thread():
                    self._thread = None


HEARTBEAT = Heartbeat()
"""The one of this process."""
