from __future__ import annotations

import pytest

from tests.table.entries import memory, surroundings
from underlay.errors import Inconsistent, VersionNotFound
from underlay.store.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.faulty import Fault, FaultyStore, on
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.versions.chain import NONE, Chain
from underlay.table.versions.links import ChainKeys
from underlay.table.versions.publish import Lost

KEYS = ChainKeys(folder="c", object=lambda number: f"c/{number:020}.root", hint="c/hint")


def chain(store: Store, **given: object) -> Chain:
    return Chain(store, KEYS, surroundings(**given))


def filled(count: int) -> Store:
    store = memory()
    for number in range(count):
        store.create(KEYS.object(number), b"x")
    store.put("c/segments/1.arrow", b"")
    return store


def extend(target: Chain, count: int) -> None:
    for number in range(target.head() + 1, target.head() + 1 + count):
        target.publish(number, f"id{number}".encode(), f"id{number}", lambda data: bytes(data).decode())


def test_an_empty_chain_has_no_head():
    assert chain(memory()).head() == NONE


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 64, 100])
def test_the_head_is_found_without_a_hint(count: int):
    assert chain(filled(count)).head() == count - 1


@pytest.mark.parametrize("hint", [0, 1, 5, 50, 98, 99])
def test_the_head_is_found_from_any_lower_bound(hint: int):
    store = CountingStore(filled(100))
    store.put("c/hint", b'{"number": %d}' % hint)
    assert chain(store).head() == 99
    assert store.request_count(StoreMethod.LIST_OBJECTS) == 0
    assert store.request_count(StoreMethod.HEAD) <= 16


@pytest.mark.parametrize("hint", [b'{"number": 500}', b'{"number": -3}', b"garbage", b"", b'{"number": "x"}', b"[]"])
def test_a_hint_that_is_wrong_misleads_nobody(hint: bytes):
    store = filled(20)
    store.put("c/hint", hint)
    assert chain(store).head() == 19


def test_only_a_lost_hint_needs_a_listing():
    store = CountingStore(memory())
    extend(chain(store), 20)
    store.reset()
    assert chain(store).head() == 19
    assert store.request_count(StoreMethod.LIST_OBJECTS) == 0
    store.delete(["c/hint"])
    assert chain(store).head() == 19
    assert store.request_count(StoreMethod.LIST_OBJECTS) == 1


def test_every_eighth_object_writes_the_hint():
    store = CountingStore(memory())
    extend(chain(store), 20)
    assert store.request_count(StoreMethod.PUT) == 3
    assert bytes(store.get("c/hint")[0]) == b'{"number":16}'


def test_a_hint_that_cannot_be_written_fails_nothing():
    store = FaultyStore(memory(), on(StoreMethod.PUT, Fault.LOST_REQUEST, times=100))
    extend(chain(store), 9)
    assert chain(store).head() == 8


def test_a_known_head_costs_one_request_and_none_while_it_is_fresh():
    clock = [0.0]
    store = CountingStore(filled(10))
    known = chain(store, monotonic=lambda: clock[0])
    known.head()
    store.reset()
    assert known.head() == 9
    assert store.request_count() == 1
    clock[0] += 4
    assert known.head(max_staleness_seconds=5) == 9
    assert store.request_count() == 1
    clock[0] += 2
    known.head(max_staleness_seconds=5)
    assert store.request_count() == 2


def test_a_process_sees_its_own_commits_and_never_goes_backward():
    store = filled(3)
    known = chain(store)
    assert known.head() == 2
    extend(known, 2)
    assert known.head(max_staleness_seconds=1000) == 4
    store.delete([KEYS.object(4)])
    assert known.head() == 4


def test_a_race_that_was_lost_long_ago_does_not_lead_back():
    known = chain(filled(10))
    assert known.head() == 9
    assert isinstance(known.publish(3, b"mine", "mine", lambda data: bytes(data).decode()), Lost)
    assert known.head(max_staleness_seconds=1000) == 9


def test_a_hole_in_a_chain_is_an_error():
    store = filled(10)
    store.delete([KEYS.object(4)])
    with pytest.raises(Inconsistent, match="missing"):
        chain(store).head()


def test_a_number_that_is_not_there():
    with pytest.raises(VersionNotFound):
        chain(filled(2)).get(2)
