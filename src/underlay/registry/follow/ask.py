"""Asks a registry that may be down, locked or slow: it answers soon, or is left alone for a while."""

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
"""How long to wait for an answer."""
REST_SECONDS = 30.0
"""How long a registry that did not answer is not asked again."""
IDLE_SECONDS = 5.0
"""How long an idle thread is kept."""


class _Question(Generic[T]):
    """A question, and its answer or error."""

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
    """Threads that are kept from question to question, and end after some idle time.

    A question gets a new thread when all others are busy: a thread that hangs in the driver must not block the next
    question, nor keep the process from ending, as one of ThreadPoolExecutor would.
    """

    def __init__(self) -> None:
        self.start_afresh()
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Start without threads: none survives a fork."""
        self._lock = Lock()
        self._idle = 0
        """Waiting threads that are not claimed by queued work."""
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def start(self, work: Callable[[], None]) -> bool:
        """Have a thread do the work. False while the interpreter exits, when no thread can be started."""
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
        """End the idle threads."""
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
                continue  # work for this thread is about to arrive
            if work is None:
                return
            work()
            with self._lock:
                self._idle += 1


class Asking:
    """Asks one database. Thread-safe. Logs problems only once."""

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
        """Whether the registry is no longer trusted."""
        return self._is_refused

    @property
    def is_resting(self) -> bool:
        """Whether the registry failed to answer, and is left alone for now."""
        return self._clock() < self._rests_until

    def ask(self, question: Callable[[Connection], T]) -> T | None:
        """The answer; None when it does not arrive in time, or the registry failed to answer a moment ago."""
        if self._is_closed or self._is_refused or self.is_resting:
            return None
        try:
            database = self._database()  # the first call loads libraries, which must not count as a slow registry
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
        # Inconsistent: its tables do not exist yet. Whoever creates them reports what is wrong.
        return asked.answer

    def rest(self, problem: str) -> None:
        """Leave the registry alone for a while."""
        self._say(f"the registry is not used for now, and nothing depends on it: {problem}")
        self._rests_until = self._clock() + REST_SECONDS  # last: who waits for the registry may end then

    def wake(self) -> None:
        """The registry answers again."""
        self._rests_until = float("-inf")
        self._was_said = False

    def refuse(self, error: UnderlayError) -> None:
        """Never ask again: the registry is wrong."""
        self._say(f"the registry is not used: {error}")
        self._is_refused = True  # last: who waits for the registry may end then

    def close(self) -> None:
        """Stop asking."""
        self._is_closed = True
        self._threads.end_idle()

    def accept(self) -> None:
        """Trust the registry again: it was rebuilt."""
        self._is_refused = False
        self.wake()

    def _say(self, message: str) -> None:
        with self._lock:
            if self._was_said:
                return
            self._was_said = True
        LOG.warning(message)
