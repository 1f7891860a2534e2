from __future__ import annotations

import os

import pytest

from tests.table.entries import memory, surroundings
from underlay.errors import CommitUnknown, Damaged, Malformed, Unavailable
from underlay.store.local import LocalStore
from underlay.store.store import Data, Outcome, Store
from underlay.store.testing.faulty import Fault, FaultyStore, on, script
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.versions.publish import Lost, Published, publish


def read_id(data: memoryview) -> str:
    if not data:
        raise Malformed("empty")
    return bytes(data).decode().split()[0]


def put(store: Store, text: str = "mine data") -> Published | Lost:
    return publish(store, "chain/1", text.encode(), text.split()[0], read_id, surroundings())


def test_what_nobody_created_is_published():
    store = memory()
    assert put(store) == Published()
    assert bytes(store.get("chain/1")[0]) == b"mine data"


def test_what_another_created_is_lost():
    store = memory()
    put(store, "theirs data")
    lost = put(store)
    assert isinstance(lost, Lost)
    assert bytes(lost.winner) == b"theirs data"


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE, Fault.OWN_REFUSAL, Fault.LATE])
def test_an_unclear_answer_is_cleared_up(fault: Fault):
    store = FaultyStore(memory(), on(StoreMethod.CREATE, fault))
    assert put(store) == Published()
    store.release()
    assert bytes(store.get("chain/1")[0]) == b"mine data"


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LATE])
def test_an_unclear_answer_may_turn_out_a_loss(fault: Fault):
    inner = memory()
    inner.create("chain/1", b"theirs data")
    store = FaultyStore(inner, on(StoreMethod.CREATE, fault))
    assert isinstance(put(store), Lost)
    store.release()
    assert bytes(store.get("chain/1")[0]) == b"theirs data"


def test_a_read_that_fails_is_tried_again():
    store = FaultyStore(memory(), script({0: Fault.OWN_REFUSAL, 1: Fault.LOST_REQUEST}))
    assert put(store) == Published()


def test_a_store_that_never_answers_leaves_the_commit_unknown():
    store = FaultyStore(memory(), on(StoreMethod.CREATE, Fault.LOST_RESPONSE, times=100))
    with pytest.raises(CommitUnknown, match="mine") as raised:
        put(store)
    assert raised.value.commit_id == "mine"
    assert store.inner.head("chain/1") is not None


class DeniedLater(FaultyStore):
    """The first create is unclear, all others are refused access."""

    def create(self, key: str, data: Data) -> Outcome:
        if self.request_count:
            raise Unavailable("access denied")
        return super().create(key, data)


def test_a_final_answer_after_an_unclear_one_leaves_the_commit_unknown():
    with pytest.raises(CommitUnknown):
        put(DeniedLater(memory(), on(StoreMethod.CREATE, Fault.LATE)))


def test_what_cannot_be_read_stands_in_the_way():
    store = memory()
    store.create("chain/1", b"")
    with pytest.raises(Damaged):
        put(store)


def test_a_failed_sync_of_a_local_folder_is_repeated_before_the_object_is_believed(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
):
    store = LocalStore(str(tmp_path))
    store.put("chain/0", b"before")
    genuine, syncs = os.fsync, []

    def fsync(descriptor: int) -> None:
        syncs.append(descriptor)
        if len(syncs) == 2:
            raise OSError(5, "Input/output error")
        genuine(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    assert put(store) == Published()
    assert len(syncs) == 3
