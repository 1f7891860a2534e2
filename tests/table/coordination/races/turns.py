"""Two owners whose requests to the store come in an order that a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Condition, Thread
from typing import TypeVar

from underlay.store.store import Store
from underlay.store.testing.wrapper import Request, StoreWrapper

T = TypeVar("T")
_PATIENCE_SECONDS = 240


class Turns:
    """Owners 0 and 1 take turns: the first makes so many requests, then the other so many, and so on by `counts`;
    after the last count each runs to its end. Requests made before `run` do not count."""

    def __init__(self, first: int, counts: Sequence[int]) -> None:
        self._changed = Condition()
        self._current = first
        self._counts = list(counts)
        self._left = self._counts.pop(0) if self._counts else None
        self._done: set[int] = set()
        self._is_running = False
        self._skip_empty()

    def run(self, programs: Sequence[Callable[[], object]]) -> list[object]:
        """Run one program for each owner; what they gave or raised."""
        results: list[object] = [None] * len(programs)

        def follow(owner: int) -> None:
            try:
                results[owner] = programs[owner]()
            except BaseException as error:  # noqa: BLE001  # handed to the test, which looks at it
                results[owner] = error
            finally:
                self._end(owner)

        self._is_running = True
        threads = [Thread(target=follow, args=(owner,), daemon=True) for owner in range(len(programs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_PATIENCE_SECONDS)
            assert not thread.is_alive(), "nobody's turn"
        return results

    def take(self, owner: int, call: Callable[[], T]) -> T:
        """Make the request when it is this owner's turn."""
        if not self._is_running:
            return call()
        with self._changed:
            assert self._changed.wait_for(lambda: self._current == owner, _PATIENCE_SECONDS)
            try:
                return call()
            finally:
                if self._left is not None:
                    self._left -= 1
                    self._skip_empty()
                    self._changed.notify_all()

    def _skip_empty(self) -> None:
        while self._left == 0:
            self._left = self._counts.pop(0) if self._counts else None
            self._pass_on()

    def _pass_on(self) -> None:
        if 1 - self._current not in self._done:
            self._current = 1 - self._current

    def _end(self, owner: int) -> None:
        with self._changed:
            self._done.add(owner)
            if self._current == owner:
                self._current = 1 - owner
            self._changed.notify_all()


class TurnStore(StoreWrapper):
    """The store as one owner sees it, in its turns."""

    def __init__(self, inner: Store, turns: Turns, owner: int) -> None:
        super().__init__(inner)
        self._turns = turns
        self._owner = owner

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        return self._turns.take(self._owner, call)
