"""Questions to a registry that may be down, locked or slow: an answer soon, or none, and then not asked for a while."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from underlay.errors import Inconsistent, RegistryRefused, UnderlayError
from underlay.runtime.fork import start_afresh_after_fork

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from underlay.registry.database.database import Database

T = TypeVar("T")
LOG = logging.getLogger("underlay.registry")
ANSWER_SECONDS = 0.5
"""How long an answer is waited for."""
REST_SECONDS = 30.0
"""How long a registry that did not answer is left alone."""
IDLE_SECONDS = 5.0
"""How long a thread is kept that has nothing to do."""


class _Question(Generic[T]):
    """A question, and what came of it."""

    def __init__(self, database: Database, question: Callable[[Connection], T]) -> None:
        self._database = database
        self._question = question
        self.answer: T | None = None
        self.trouble: UnderlayError | None = None
        self.done = Event()

    def run(self) -> None:
        try:
            with self._database.read() as connection:
                self.answer = self._question(connection)
        except UnderlayError as error:
            self.trouble = error
        finally:
            self.done.set()


class _AskThreads:
    """Threads that are kept from question to question, and end when there was none for a while.

    A question gets a new thread when all others are busy: one that hangs in the driver must not be in the way of the
    next question, nor, as those of ThreadPoolExecutor would, keep the process from ending.
    """

    def __init__(self) -> None:
        self.start_afresh()
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Start with no thread: none outlives a fork."""
        self._lock = Lock()
        self._idle = 0
        """Threads that wait and that no work in the queue is meant for."""
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def start(self, work: Callable[[], None]) -> bool:
        """Have a thread do it; False while the interpreter ends, when no thread can be started."""
        with self._lock:
            is_idle = self._idle > 0
            self._idle -= is_idle
        if not is_idle:
            try:
                Thread(target=self._run, args=(self._queue,), daemon=True, name="underlay-registry-ask").start()
            except RuntimeError:
                return False
        self._queue.put(work)
        return True

    def end_idle(self) -> None:
        """End the threads that have nothing to do."""
        with self._lock:
            count, self._idle = self._idle, 0
        for _ in range(count):
            self._queue.put(None)

    def _run(self, queue: SimpleQueue[Callable[[], None] | None]) -> None:
        while True:
            try:
                work = queue.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._idle:
                        self._idle -= 1
                        return
                continue  # work for this thread is about to come
            if work is None:
                return
            work()
            with self._lock:
                self._idle += 1


class Asking:
    """Asks one database. Safe for many threads. What goes wrong is logged once."""

    def __init__(self, database: Callable[[], Database], clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._is_closed = False
        self._threads = _AskThreads()
        self.start_afresh()
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Ask again at once, as after a fork."""
        self._lock = Lock()
        self._rests_until = float("-inf")
        self._was_said = False
        self._is_refused = False

    @property
    def is_refused(self) -> bool:
        """Whether nothing of the registry is believed any more."""
        return self._is_refused

    @property
    def is_resting(self) -> bool:
        """Whether the registry did not answer, and is left alone for now."""
        return self._clock() < self._rests_until

    def ask(self, question: Callable[[Connection], T]) -> T | None:
        """The answer; None when there is none in time, or the registry did not answer a moment ago."""
        if self._is_closed or self._is_refused or self.is_resting:
            return None
        try:
            database = self._database()  # the first time loads libraries, for which a registry is not to blame
        except UnderlayError as error:
            self.refuse(error)
            return None
        asked = _Question(database, question)
        if not self._threads.start(asked.run):
            return None
        if not asked.done.wait(ANSWER_SECONDS):
            self.rest(f"no answer within {ANSWER_SECONDS} s")
            return None
        if isinstance(asked.trouble, RegistryRefused):
            self.refuse(asked.trouble)
        elif asked.trouble is not None and not isinstance(asked.trouble, Inconsistent):
            self.rest(str(asked.trouble))
        # Inconsistent: its tables are not there yet; who makes them says what is wrong.
        return asked.answer

    def rest(self, problem: str) -> None:
        """Leave the registry alone for a while."""
        self._say(f"the registry is not used for now, and nothing depends on it: {problem}")
        self._rests_until = self._clock() + REST_SECONDS  # last: who waits for the registry may end then

    def wake(self) -> None:
        """It answers again."""
        self._rests_until = float("-inf")
        self._was_said = False

    def refuse(self, error: UnderlayError) -> None:
        """Never ask again: what it says is not so."""
        self._say(f"the registry is not used: {error}")
        self._is_refused = True  # last: who waits for the registry may end then

    def close(self) -> None:
        """Answer no question any longer."""
        self._is_closed = True
        self._threads.end_idle()

    def accept(self) -> None:
        """It was rebuilt."""
        self._is_refused = False
        self.wake()

    def _say(self, message: str) -> None:
        with self._lock:
            if self._was_said:
                return
            self._was_said = True
        LOG.warning(message)
