"""Count what a piece of work asks of a store: requests, bytes, and round trips in sequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

from underlay.store.store import Store
from underlay.store.testing.wrapper import Request, StoreMethod, StoreWrapper

T = TypeVar("T")

WRITES = (StoreMethod.CREATE, StoreMethod.PUT)
"""What a commit waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One call of a store, after it returned or failed."""

    request: Request
    received_bytes: int
    began: int
    ended: int
    """Both in ticks of one counter: a call that ended before another began has the smaller number."""


class CountingStore(StoreWrapper):
    """Passes everything on and remembers it, in the order in which calls ended."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._lock = Lock()
        self._ticks = 0
        self._log: list[Served] = []

    @property
    def log(self) -> tuple[Served, ...]:
        """Every call since the start or the last reset."""
        with self._lock:
            return tuple(self._log)

    def reset(self) -> None:
        """Forget all calls that have ended."""
        with self._lock:
            self._log.clear()

    def request_count(self, *ops: StoreMethod) -> int:
        """Requests to the store, of these methods or of all."""
        return sum(served.request.request_count for served in self._of(ops))

    def sent_bytes(self, *ops: StoreMethod) -> int:
        """Bytes of objects sent."""
        return sum(served.request.sent_bytes for served in self._of(ops))

    def received_bytes(self, *ops: StoreMethod) -> int:
        """Bytes of objects received, with the gaps between joined ranges; listings and headers do not count."""
        return sum(served.received_bytes for served in self._of(ops))

    def longest_chain(self, *ops: StoreMethod) -> int:
        """The longest run of calls that each began after the one before had ended: round trips in sequence.

        Of these methods, or of `WRITES`.
        """
        chain, last_end = 0, -1
        for served in sorted(self._of(ops or WRITES), key=lambda served: served.ended):
            if served.began > last_end:
                chain, last_end = chain + 1, served.ended
        return chain

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        """Make the call and log it; one that fails counts, with nothing received."""
        began = self._tick()
        received = 0
        try:
            result = call()
            received = received_bytes(result)
            return result
        finally:
            ended = self._tick()
            with self._lock:
                self._log.append(Served(request=request, received_bytes=received, began=began, ended=ended))

    def _of(self, ops: tuple[StoreMethod, ...]) -> list[Served]:
        return [served for served in self.log if not ops or served.request.op in ops]

    def _tick(self) -> int:
        with self._lock:
            self._ticks += 1
            return self._ticks
