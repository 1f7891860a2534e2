from __future__ import annotations

import os

import pytest

from underlay.errors import Unavailable
from underlay.store.open import open_store
from underlay.store.store import Outcome, Store
from underlay.store.testing.faulty import Crashed, Fault, FaultyStore, at, at_every_request, on, script, seeded
from underlay.store.testing.wrapper import StoreMethod


def memory() -> Store:
    return open_store(f"memory://{os.urandom(6).hex()}")


@pytest.mark.parametrize(
    ("fault", "outcome", "is_there"),
    [
        (Fault.LOST_REQUEST, Outcome.UNKNOWN, False),
        (Fault.LOST_RESPONSE, Outcome.UNKNOWN, True),
        (Fault.OWN_REFUSAL, Outcome.REFUSED, True),
        (Fault.LATE, Outcome.UNKNOWN, False),
    ],
)
def test_a_faulty_create(fault: Fault, outcome: Outcome, is_there: bool):
    store = FaultyStore(memory(), at(0, fault))
    assert store.create("a", b"x") is outcome
    assert (store.inner.head("a") is not None) is is_there


@pytest.mark.parametrize(("fault", "is_there"), [(Fault.LOST_REQUEST, False), (Fault.LOST_RESPONSE, True)])
def test_a_faulty_put_is_unavailable(fault: Fault, is_there: bool):
    store = FaultyStore(memory(), at(0, fault))
    with pytest.raises(Unavailable, match="planned fault"):
        store.put("a", b"x")
    assert (store.inner.head("a") is not None) is is_there


def test_a_faulty_read_is_unavailable():
    store = FaultyStore(memory(), script({1: Fault.LOST_RESPONSE, 2: Fault.LATE}))
    store.put("a", b"x")
    for _ in range(2):
        with pytest.raises(Unavailable):
            store.get("a")
    assert bytes(store.get("a")[0]) == b"x"
    assert store.release() == []


def test_a_late_write_lands_when_it_is_released():
    store = FaultyStore(memory(), script({0: Fault.LATE, 1: Fault.LATE}))
    data = bytearray(b"mine")
    assert store.create("root", data) is Outcome.UNKNOWN
    assert store.create("root", b"again") is Outcome.UNKNOWN
    data[:] = b"xxxx"
    assert store.head("root") is None
    assert store.release() == [Outcome.DONE, Outcome.REFUSED]
    assert bytes(store.get("root")[0]) == b"mine"
    assert store.release() == []


def test_a_late_write_loses_to_one_that_came_before_its_release():
    store = FaultyStore(memory(), at(0, Fault.LATE))
    store.create("root", b"late")
    assert store.create("root", b"early") is Outcome.DONE
    assert store.release() == [Outcome.REFUSED]
    assert bytes(store.get("root")[0]) == b"early"


@pytest.mark.parametrize(("fault", "is_there"), [(Fault.CRASH_BEFORE, False), (Fault.CRASH_AFTER, True)])
def test_after_a_crash_nothing_more_is_done(fault: Fault, is_there: bool):
    store = FaultyStore(memory(), at(0, fault))
    with pytest.raises(Crashed):
        store.create("a", b"x")
    with pytest.raises(Crashed):
        store.delete(["a"])
    assert store.is_crashed
    assert (store.inner.head("a") is not None) is is_there


def test_a_crash_is_not_caught_as_an_error():
    assert not issubclass(Crashed, Exception)


def test_faults_are_chosen_by_method_and_key():
    store = FaultyStore(memory(), on(StoreMethod.CREATE, Fault.LOST_REQUEST, key=".root", skip=1, times=1))
    assert store.create("data", b"x") is Outcome.DONE
    assert store.create("1.root", b"x") is Outcome.DONE
    assert store.create("2.root", b"x") is Outcome.UNKNOWN
    assert store.create("2.root", b"x") is Outcome.DONE
    assert (store.request_count, store.fault_count) == (4, 1)


def outcomes(seed: int) -> list[Outcome]:
    store = FaultyStore(memory(), seeded(seed, 0.5, [Fault.LOST_REQUEST, Fault.OWN_REFUSAL]))
    return [store.create(f"{number}", b"x") for number in range(40)]


def test_a_seed_gives_the_same_faults_again():
    assert outcomes(1) == outcomes(1)
    assert outcomes(1) != outcomes(2)
    assert set(outcomes(1)) == set(Outcome)


def test_every_request_fails_once_for_each_fault():
    died_at = []
    for store in at_every_request(memory, [Fault.CRASH_BEFORE, Fault.CRASH_AFTER]):
        try:
            store.put("data", b"x")
            store.create("root", b"x")
            store.head("root")
        except Crashed:
            pass
        died_at.append((store.request_count, store.is_crashed, len(list(store.inner.list_objects()))))
    before = [(1, True, 0), (2, True, 1), (3, True, 2), (3, False, 2)]
    after = [(1, True, 1), (2, True, 2), (3, True, 2), (3, False, 2)]
    assert died_at == before + after
