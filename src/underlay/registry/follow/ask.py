"""Questions to a registry that may be down, locked or slow: an answer soon, or none, and then not asked for a while."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, TypeVar

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


class Asking:
    """Asks one database. Safe for many threads. What goes wrong is logged once."""

    def __init__(self, database: Callable[[], Database], clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._is_closed = False
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
        answer: list[T] = []
        trouble: list[UnderlayError] = []
        done = Event()

        def read() -> None:
            try:
                with database.read() as connection:
                    answer.append(question(connection))
            except RegistryRefused as error:
                self.refuse(error)
            except Inconsistent:
                pass  # its tables are not there yet; whoever makes them says what is wrong
            except UnderlayError as error:
                trouble.append(error)
            finally:
                done.set()

        # A thread of its own: one that hangs in the driver must not be in the way of the next question.
        Thread(target=read, daemon=True, name="underlay-registry-ask").start()
        if not done.wait(ANSWER_SECONDS):
            self.rest(f"no answer within {ANSWER_SECONDS} s")
            return None
        if trouble:
            self.rest(str(trouble[0]))
            return None
        return answer[0] if answer else None

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
