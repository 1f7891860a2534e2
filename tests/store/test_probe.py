from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from threading import Barrier

import pytest

from underlay.errors import Unavailable, Unsupported
from underlay.store.open import open_store
from underlay.store.probe import probe_store
from underlay.store.store import Data, Outcome, Store, StoredObject
from underlay.store.testing.faulty import Fault, FaultyStore, at, on, script
from underlay.store.testing.wrapper import StoreMethod


def memory() -> Store:
    return open_store(f"memory://{os.urandom(6).hex()}")


class Passing(FaultyStore):
    """A memory store that a test makes worse."""

    def __init__(self) -> None:
        super().__init__(memory(), lambda number, request: None)


class Overwrites(Passing):
    def create(self, key: str, data: Data) -> Outcome:
        self.inner.put(key, data)
        return Outcome.DONE


class Boasts(Passing):
    def create(self, key: str, data: Data) -> Outcome:
        self.inner.create(key, data)
        return Outcome.DONE


class Evades(Passing):
    def create(self, key: str, data: Data) -> Outcome:
        outcome = self.inner.create(key, data)
        return Outcome.UNKNOWN if outcome is Outcome.REFUSED else outcome


class ChecksThenWrites(Passing):
    """Eight at once all look before any writes."""

    def __init__(self) -> None:
        super().__init__()
        self.barrier = Barrier(8)
        self.count = 0

    def create(self, key: str, data: Data) -> Outcome:
        self.count += 1
        is_there = self.inner.head(key) is not None
        if self.count > 2:
            self.barrier.wait(120)
        if is_there:
            return Outcome.REFUSED
        self.inner.put(key, data)
        return Outcome.DONE


class Hides(Passing):
    def list_objects(self, folder: str = "", *, after: str | None = None) -> Iterator[StoredObject]:
        return iter(())


class Keeps(Passing):
    def delete(self, keys: Iterable[str]) -> None:
        pass


class NeverCreates(Passing):
    def create(self, key: str, data: Data) -> Outcome:
        return Outcome.REFUSED


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (Overwrites, "overwrote an object"),
        (Boasts, "a key that exists was reported as done"),
        (Evades, "was not refused"),
        (ChecksThenWrites, "8 of 8 creates"),
        (Hides, "not listed"),
        (Keeps, "still there"),
        (NeverCreates, "cannot be created"),
    ],
)
def test_a_store_that_would_lose_commits_is_refused_with_what_it_did(kind: type[Passing], problem: str):
    store = kind()
    with pytest.raises(Unsupported, match=problem) as caught:
        probe_store(store)
    assert caught.value.place == store.url
    if kind is not Keeps:
        assert list(store.inner.list_objects()) == []


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE, Fault.OWN_REFUSAL])
def test_one_lost_message_does_not_condemn_a_good_store(fault: Fault):
    store = FaultyStore(memory(), at(0, fault))
    probe_store(store)
    assert list(store.inner.list_objects()) == []


def test_a_store_that_does_not_answer_is_unavailable_not_unsupported():
    with pytest.raises(Unavailable, match="did not answer"):
        probe_store(FaultyStore(memory(), on(StoreMethod.CREATE, Fault.LOST_REQUEST, times=99)))


def test_an_error_on_the_way_is_the_stores_own():
    with pytest.raises(Unavailable, match="planned fault"):
        probe_store(FaultyStore(memory(), script({2: Fault.LOST_REQUEST})))
