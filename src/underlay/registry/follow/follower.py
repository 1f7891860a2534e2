"""Applies to the registry what this process saw in the store, in a background thread: nobody waits for a registry.

What cannot be applied now is retried later; what another process applied first counts as done; what is lost when the
process ends is applied by whoever sees the table next. The thread ends, and closes its connections, after some idle
time, when the lake is closed, and when the process ends. A deleted lake is not followed, and nothing is logged about
it.
"""

from __future__ import annotations

import atexit
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from random import random
from threading import Condition, Event, Semaphore, Thread, current_thread
from typing import TYPE_CHECKING

from underlay.errors import Unavailable, UnderlayError
from underlay.index.catalog import Catalog
from underlay.index.root import Root
from underlay.registry.follow.ask import IDLE_SECONDS, Asking
from underlay.runtime.fork import start_afresh_after_fork
from underlay.runtime.pace import paced

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from underlay.registry.follow.apply_seen import Application

Write = Callable[["Connection"], None]
"""Statements to run in the caller's transaction."""
Work = Callable[[], Write]
"""Reads from the store before that transaction begins."""

WRITER_DELAY_SECONDS = 0.1
"""Commits within this time are applied together. A lake in a temporary folder is often deleted before it ends."""
READER_DELAY_SECONDS = 1.0
"""Versions that were only read are applied later than written ones: most reading processes have ended by then."""
LATE_SECONDS = 5.0
"""How long, at most, the writers of older versions have to apply them."""
EXIT_SECONDS = 0.5
"""How long an exiting process waits for its followers."""
_DELETION_SECONDS = 0.2
"""How long the deletion of a whole lake may take after part of it was found missing."""
_FIRST_RETRY_SECONDS = 0.05
_LAST_RETRY_SECONDS = 30.0
_QUIET_FAILURES = 3
"""A transaction may meet another one, or a restarting server, this many times in a row before the problem is
reported."""
_LOOK_SECONDS = 0.1
_MOST_EXTRAS = 1000
_MOST_ROOTS = 32
"""At most this many roots of one revision are kept for applying; earlier ones are read from the store."""
_MOST_CONNECTED = 8
"""At most this many followers of a process keep connections and a thread while idle."""
_living: weakref.WeakSet[Follower] = weakref.WeakSet()


@dataclass(slots=True, kw_only=True)
class SeenRoots:
    """Consecutive roots of one revision."""

    folder: str
    revision: str
    roots: list[Root]
    is_late: bool = False
    """Whether an earlier attempt found that the registry lacks versions before these."""


@dataclass(slots=True, kw_only=True)
class Pending:
    """What was seen and is not applied yet."""

    catalog: Catalog | None = None
    seen: dict[str, SeenRoots] = field(default_factory=dict)
    extras: deque[Work] = field(default_factory=lambda: deque(maxlen=_MOST_EXTRAS))
    due_at: float = inf
    """When to apply it; inf if there is nothing to apply."""
    is_own: bool = False
    """Whether this process committed some of it."""


class _Crowd:
    """The followers that have a thread. A process may open lakes by the thousand, and descriptors are few: in a crowd,
    only some followers work at a time, and idle ones keep no connection open.
    """

    def __init__(self) -> None:
        self.start_afresh()
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Start without followers."""
        self.turn = Semaphore(_MOST_CONNECTED)
        self.members: weakref.WeakSet[Thread] = weakref.WeakSet()

    @property
    def is_large(self) -> bool:
        """Whether there are so many that each closes its connections when idle."""
        return len(self.members) > _MOST_CONNECTED


_crowd = _Crowd()


class Follower:
    """Follows one lake. Thread-safe; a forked child starts with nothing to do."""

    def __init__(
        self,
        application: Callable[[], Application],
        asking: Asking,
        disconnect: Callable[[], None],
        is_gone: Callable[[], bool],
        stop_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application = application
        self._disconnect = disconnect
        self._is_gone = is_gone
        self._stop_seconds = stop_seconds
        self._is_closed = False
        self._asking = asking
        self._clock = clock
        self.start_afresh()
        start_afresh_after_fork(self)
        _living.add(self)

    def start_afresh(self) -> None:
        """Start with nothing seen, and without a thread."""
        self._changed = Condition()
        self._pending = Pending()
        self._thread: Thread | None = None
        self._is_busy = False
        self._is_awaited = Event()
        self._retry_at = -inf
        self._failures = 0

    def saw_catalog(self, catalog: Catalog, *, is_own: bool) -> None:
        """Apply this entry, unless a newer one was seen."""
        with self._changed:
            known = self._pending.catalog
            if known is None or known.number < catalog.number:
                self._pending.catalog = catalog
            self._start(is_own)

    def saw_root(self, folder: str, revision: str, root: Root, *, is_own: bool) -> None:
        """Apply this version of a revision, and earlier ones that the registry lacks."""
        with self._changed:
            known = self._pending.seen.get(revision)
            if known is None:
                self._pending.seen[revision] = SeenRoots(folder=folder, revision=revision, roots=[root])
            elif known.roots[-1].version < root.version:
                is_next = root.parent_id == known.roots[-1].commit_id
                known.roots = [*known.roots[-_MOST_ROOTS:], root] if is_next else [root]
            self._start(is_own and (known is None or not known.is_late))

    def add(self, work: Work) -> None:
        """Do this work in the next transaction. It may be done twice, or never."""
        with self._changed:
            self._pending.extras.append(work)
            self._start(True)

    def wait(self, timeout_seconds: float | None = None, *, also_seen: bool = True, also_resting: bool = True) -> bool:
        """Wait until due work is done, with `also_seen` also work that is due later. Returns whether it was done.

        Without `also_resting`, does not wait for a registry that fails to answer.
        """
        end = inf if timeout_seconds is None else self._clock() + timeout_seconds
        with self._changed:
            while not self._asking.is_refused and self._has_work(also_seen):
                left = end - self._clock()
                if left <= 0 or (self._asking.is_resting and not also_resting):
                    return False
                self._is_awaited.set()
                self._changed.wait(min(left, _LOOK_SECONDS))
            return not self._asking.is_refused

    @property
    def is_idle(self) -> bool:
        """Whether there is no work, due now or later."""
        with self._changed:
            return not self._is_busy and self._pending.due_at == inf

    def stop(self) -> None:
        """Stop applying. Does not wait."""
        with self._changed:
            self._is_closed = True
            self._is_awaited.set()
            self._pending = Pending()
            self._changed.notify_all()

    def close(self) -> None:
        """Stop, wait a little for the thread to end, and close connections."""
        self.stop()
        thread = self._thread
        if thread is not None:
            thread.join(self._stop_seconds)
        self._disconnect()

    def _has_work(self, also_later: bool) -> bool:
        """Whether work is due. What this process wrote becomes due now, with `also_later` also the rest. The caller
        holds the lock.
        """
        if (also_later or self._pending.is_own) and self._pending.due_at < inf:
            self._pending.due_at = -inf
            self._changed.notify_all()
        return self._is_busy or self._pending.due_at <= self._clock()

    def poke(self) -> None:
        """Ensure that there is a thread, which closes unused connections."""
        with self._changed:
            self._start_thread()

    def _start(self, is_own: bool) -> None:
        """Schedule pending work. The caller holds the lock."""
        if self._asking.is_refused or self._is_closed:
            self._pending = Pending()
            return
        due_at = self._clock() + (WRITER_DELAY_SECONDS if is_own else READER_DELAY_SECONDS)
        self._pending.due_at = min(self._pending.due_at, due_at)
        self._pending.is_own |= is_own
        self._start_thread()

    def _start_thread(self) -> None:
        if self._thread is None and not self._is_closed:
            self._thread = Thread(target=self._run, daemon=True, name="underlay-registry")
            _crowd.members.add(self._thread)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        while (taken := self._next()) is not None:
            with _crowd.turn:
                self._apply(taken)
                if _crowd.is_large:
                    self._disconnect()
        self._disconnect()
        _crowd.members.discard(current_thread())

    def _next(self) -> Pending | None:
        """Wait for the next due work. None after some idle time, and once the follower is closed."""
        idle_until = self._clock() + (0.0 if _crowd.is_large else IDLE_SECONDS)
        with self._changed:
            while (wait := max(self._pending.due_at, self._retry_at) - self._clock()) > 0:
                left = idle_until - self._clock()
                if self._is_closed:
                    return None
                if left <= 0 and self._pending.due_at == inf:
                    self._thread = None
                    return None
                self._changed.wait(min(wait, max(left, _LOOK_SECONDS)))
            taken, self._pending = self._pending, Pending()
            self._is_busy = True
            return taken

    def _apply(self, taken: Pending) -> None:
        failed: UnderlayError | None = UnderlayError("a fault in Underlay: see the traceback")
        behind: dict[str, SeenRoots] = {}
        try:
            application = None if self._is_gone() else self._application()  # loads libraries the first time
            if application is not None and not self._is_closed:
                with paced(self._is_awaited.wait):  # a commit of many files has many rows, and queries run meanwhile
                    behind = application.apply(taken)
            failed = None
        except UnderlayError as error:
            failed = None if self._is_lost(error) else error
        finally:
            self._settle(taken, behind, failed)

    def _is_lost(self, error: UnderlayError) -> bool:
        """Whether the error came about because the lake was deleted, or is being deleted."""
        if self._is_closed or self._is_gone():
            return True
        if not isinstance(error, Unavailable):
            time.sleep(_DELETION_SECONDS)
        return self._is_gone()

    def _settle(self, taken: Pending, behind: dict[str, SeenRoots], failed: UnderlayError | None) -> None:
        if failed is None:
            self._asking.wake()
        elif not isinstance(failed, Unavailable):
            self._asking.refuse(failed)
        elif self._failures >= _QUIET_FAILURES:
            self._asking.rest(str(failed))
        with self._changed:
            self._is_busy = False
            if not self._is_closed:
                self._is_awaited.clear()
            self._failures = self._failures + 1 if failed is not None else 0
            if isinstance(failed, Unavailable):
                self._put_back(taken)
                self._retry_at = self._clock() + min(_FIRST_RETRY_SECONDS * 2**self._failures, _LAST_RETRY_SECONDS)
            else:
                self._retry_at = -inf
            if self._asking.is_refused or self._is_closed:
                self._pending = Pending()
            elif behind:
                # Those who committed what the registry lacks are about to apply most of it.
                late = 0.0 if _crowd.is_large else random() * LATE_SECONDS
                self._put_back(Pending(seen=behind, due_at=self._clock() + late))
            self._changed.notify_all()

    def _put_back(self, taken: Pending) -> None:
        """Try again later. The caller holds the lock."""
        newer = self._pending
        self._pending = Pending(
            catalog=newer.catalog or taken.catalog,
            seen=taken.seen | newer.seen,
            due_at=min(taken.due_at, newer.due_at),
            is_own=taken.is_own or newer.is_own,
        )
        self._pending.extras.extend([*taken.extras, *newer.extras])


def _close_all() -> None:
    """Allow a moment for applying what this process wrote, then end all threads."""
    end = time.monotonic() + EXIT_SECONDS
    living = list(_living)
    for follower in living:
        follower.wait(0.0, also_seen=False)  # makes later work due now, for all followers
    for follower in living:
        follower.wait(max(end - time.monotonic(), 0.0), also_seen=False)
    for follower in living:
        follower.stop()
    for follower in living:
        follower.close()


atexit.register(_close_all)
