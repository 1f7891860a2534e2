"""A store that lets something else happen first, at one request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tests.end_to_end.lakes import NAME, quick
from underlay import Table
from underlay.store import Store
from underlay.store.testing.wrapper import Request, StoreMethod, StoreWrapper

T = TypeVar("T")


class InterruptingStore(StoreWrapper):
    """Runs each of `interruptions` once, in turn, before a request of this method whose key contains `key`."""

    def __init__(self, inner: Store, op: StoreMethod, key: str, *interruptions: Callable[[], object]) -> None:
        super().__init__(inner)
        self._op = op
        self._key = key
        self.waiting = list(interruptions)

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        if request.op is self._op and any(self._key in key for key in request.keys) and self.waiting:
            self.waiting.pop(0)()
        return call()


def table_of(store: Store) -> Table:
    return quick(store).table(NAME)


def interrupted(store: Store, *interruptions: Callable[[], object]) -> Table:
    """The table of a process that is overtaken each time it is about to commit."""
    return table_of(InterruptingStore(store, StoreMethod.CREATE, ".root", *interruptions))
