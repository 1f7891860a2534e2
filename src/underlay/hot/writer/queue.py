"""What waits to be committed: appends in their order, with a bound on the memory that they take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition, Event

import pyarrow as pa

from underlay.errors import InvalidRequest
from underlay.hot.files.layout import HotLayout, Times
from underlay.runtime.fork import start_afresh_after_fork


@dataclass(eq=False, slots=True)
class PendingAppend:
    """The rows of one append. `is_awaited`: its caller waits for the commit."""

    rows: pa.Table
    times: Times
    layout: HotLayout
    is_awaited: bool
    since: float
    done: Event = field(default_factory=Event)
    version: int = -1
    error: BaseException | None = None

    @property
    def size_bytes(self) -> int:
        """Memory, about."""
        return self.rows.nbytes + 512

    def finish(self, version: int, error: BaseException | None = None) -> None:
        """It was committed in this version, or could not be."""
        self.version, self.error = version, error
        self.done.set()


class HotQueue:
    """Appends of many threads, taken together by one."""

    def __init__(self, most_bytes: int, interval_seconds: float) -> None:
        self._most_bytes = most_bytes
        self._interval_seconds = interval_seconds
        start_afresh_after_fork(self)
        self._changed = Condition()
        self._waiting: deque[PendingAppend] = deque()
        self._bytes = 0
        self._is_closed = False
        self._is_hurried = False
        self._calls: deque[Callable[[], None]] = deque()
        self._held = 0

    def start_afresh(self) -> None:
        """In a forked child, which has no committing thread: nothing waits here, and nothing can be added."""
        self._changed = Condition()
        self._waiting, self._calls = deque(), deque()
        self._is_closed = True

    def put(self, one: PendingAppend) -> None:
        """Add rows. Waits while those that wait already take too much memory. Raises InvalidRequest when closed."""
        size = one.size_bytes
        with self._changed:
            while not self._is_closed and self._bytes and self._bytes + size > self._most_bytes:
                self._is_hurried = True
                self._changed.notify_all()
                self._changed.wait()
            if self._is_closed:
                raise closed_writer()
            self._waiting.append(one)
            self._bytes += size
            self._changed.notify_all()

    def call(self, function: Callable[[], None]) -> None:
        """Have the committing thread run this between two commits."""
        with self._changed:
            if self._is_closed:
                raise closed_writer()
            self._calls.append(function)
            self._changed.notify_all()

    def hurry(self) -> PendingAppend | None:
        """Commit what waits now. Returns the last of it."""
        with self._changed:
            self._is_hurried = True
            self._changed.notify_all()
            return self._waiting[-1] if self._waiting else None

    def wake(self) -> None:
        """Look again: what was blocked may be free."""
        with self._changed:
            self._held = 0
            self._changed.notify_all()

    def close(self) -> None:
        """Refuse more. What waits is still taken."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def take(
        self, is_blocked: Callable[[PendingAppend], bool]
    ) -> tuple[list[PendingAppend], list[Callable[[], None]]] | None:
        """The next appends to commit together, and functions to call; None when it is closed and empty.

        Waits until a caller waits for a commit, or the oldest append is as old as the interval, or half of the memory
        is taken. Appends keep their order: nothing overtakes one that is blocked.
        """
        with self._changed:
            while True:
                if self._calls:
                    calls = list(self._calls)
                    self._calls.clear()
                    return [], calls
                if self._is_due():
                    taken = self._take(is_blocked)
                    if taken:
                        return taken, []
                    self._held = len(self._waiting)
                if self._is_closed and not self._waiting:
                    return None
                self._changed.wait(self._left())

    def _is_due(self) -> bool:
        if not self._waiting or self._held >= len(self._waiting):
            return False
        if self._is_closed or self._is_hurried or self._bytes * 2 >= self._most_bytes:
            return True
        return any(one.is_awaited for one in self._waiting) or (self._left() or 0.0) <= 0.0

    def _left(self) -> float | None:
        """How long until the oldest append is due; None to wait for a change."""
        if not self._waiting or self._held >= len(self._waiting):
            return None
        return max(0.0, self._waiting[0].since + self._interval_seconds - time.monotonic())

    def _take(self, is_blocked: Callable[[PendingAppend], bool]) -> list[PendingAppend]:
        taken = []
        while self._waiting and not is_blocked(self._waiting[0]):
            one = self._waiting.popleft()
            self._bytes -= one.size_bytes
            taken.append(one)
        if not self._waiting:
            self._is_hurried = False
        self._changed.notify_all()
        return taken

    def drain(self) -> list[PendingAppend]:
        """Take all that waits, without an order to commit it."""
        with self._changed:
            taken = list(self._waiting)
            self._waiting.clear()
            self._bytes = 0
            self._changed.notify_all()
            return taken


def closed_writer() -> InvalidRequest:
    """The error for a writer that was closed."""
    return InvalidRequest("the hot writer was closed", hint="Open another one with table.hot().")
