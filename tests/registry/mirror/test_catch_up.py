from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock
from typing import TypeVar

from tests.registry.databases import on_sqlite as on_sqlite
from tests.registry.databases import registry as registry
from tests.table.entries import append, name, new_table
from underlay.registry.database.database import Database
from underlay.registry.mirror.catch_up import catch_up_revision
from underlay.store.store import Store
from underlay.store.testing.wrapper import Request, StoreWrapper

T = TypeVar("T")
FOLDER = "taxi/trips"


class FarStore(StoreWrapper):
    """A store over a network, each of whose requests takes a while; `most` is how many there were at once."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.most = self.count = self._now = 0
        self._lock = Lock()

    @property
    def is_remote(self) -> bool:
        return True

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        with self._lock:
            self._now += 1
            self.count += 1
            self.most = max(self.most, self._now)
        Event().wait(0.005)
        try:
            return call()
        finally:
            with self._lock:
                self._now -= 1


def test_a_registry_that_was_down_catches_up_one_request_after_the_other(registry: Database) -> None:
    """Commits go on meanwhile, and theirs must not wait for those of hundreds of versions."""
    _, revision = new_table()
    for _ in range(20):
        append(revision, name())
    store = FarStore(revision.store)
    assert catch_up_revision(registry, store, FOLDER, revision.id, 20) == 20
    assert store.count >= 20
    assert store.most == 1
