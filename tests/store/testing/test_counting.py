from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from underlay.errors import NotFound
from underlay.store.open import open_store
from underlay.store.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.faulty import FaultyStore
from underlay.store.testing.wrapper import StoreMethod
from underlay.values.ranges import ByteRange


@pytest.fixture
def inner() -> Store:
    return open_store(f"memory://{os.urandom(6).hex()}")


def test_requests_and_bytes_are_counted_by_kind_in_order(inner: Store):
    store = CountingStore(inner)
    store.put("a", bytes(100))
    store.create("b", bytes(10))
    store.get("a")
    store.get_tail("a", 7)
    store.get_ranges("a", [ByteRange(0, 10), ByteRange(15, 20), ByteRange(90, 95)], gap_bytes=5)
    store.head("a")
    list(store.list_objects())
    store.list_folders()
    store.delete(["a", "b"])
    assert [served.request.op for served in store.log] == [
        *(
            StoreMethod.PUT,
            StoreMethod.CREATE,
            StoreMethod.GET,
            StoreMethod.GET_TAIL,
            StoreMethod.GET_RANGES,
            StoreMethod.HEAD,
        ),
        *(StoreMethod.LIST_OBJECTS, StoreMethod.LIST_FOLDERS, StoreMethod.DELETE),
    ]
    assert store.request_count() == 10
    assert store.request_count(StoreMethod.GET_RANGES) == 2
    assert store.sent_bytes() == 110
    assert (store.received_bytes(StoreMethod.GET), store.received_bytes(StoreMethod.GET_TAIL)) == (100, 7)
    assert store.received_bytes(StoreMethod.GET_RANGES) == 25
    assert store.log[-1].request.keys == ("a", "b")


def test_a_reset_forgets(inner: Store):
    store = CountingStore(inner)
    store.put("a", b"x")
    store.reset()
    assert (store.log, store.request_count()) == ((), 0)


def test_a_call_that_fails_counts(inner: Store):
    store = CountingStore(inner)
    with pytest.raises(NotFound):
        store.get("a")
    assert store.request_count(StoreMethod.GET) == 1


def test_puts_one_after_the_other_are_a_chain(inner: Store):
    store = CountingStore(inner)
    for number in range(3):
        store.put(f"{number}", b"x")
    store.get("0")
    assert store.longest_chain() == 3
    assert store.longest_chain(StoreMethod.GET) == 1
    assert store.longest_chain(StoreMethod.HEAD) == 0


def test_puts_side_by_side_are_one_step(inner: Store):
    store = CountingStore(Meeting(inner, Barrier(4)))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: store.put(f"data/{number}", b"x"), range(4)))
    store.create("root", b"x")
    assert len(store.log) == 5
    assert store.longest_chain() == 2


class Meeting(FaultyStore):
    """Puts wait until all of them have begun."""

    def __init__(self, inner: Store, barrier: Barrier) -> None:
        super().__init__(inner, lambda number, request: None)
        self.barrier = barrier

    def put(self, key: str, data: bytes | bytearray | memoryview) -> None:
        self.barrier.wait(120)
        super().put(key, data)
