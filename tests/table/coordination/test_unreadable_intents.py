"""Intents that a job's owner cannot read are waited for, then replaced."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.table.coordination.owners import (
    JOB,
    LaterStore,
    opened,
    take,
)
from tests.table.coordination.test_job import keys, standing
from underlay.errors import LeaseHeld
from underlay.index.sealed_json import seal
from underlay.store.store import Store
from underlay.table.coordination.intent import Intent, encode_intent, list_intents
from underlay.table.coordination.liveness import UNREADABLE_TTL

ANOTHER = Intent(job="another", owner="a:1", epoch=1, renewed_us=1, ttl_us=1)
UNREADABLE = {
    "empty": b"",
    "text": b"garbage",
    "octets": b"\xff" * 40,
    "of a newer release": encode_intent(replace(ANOTHER, format=2)),
    "without fields": seal(b'{"format":1}'),
    "of another job": encode_intent(ANOTHER),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_intent_that_cannot_be_read_is_waited_for_and_then_replaced(store: Store, kind: str):
    take(opened(store))
    store.put(keys(store).intent(JOB), UNREADABLE[kind])
    with pytest.raises(LeaseHeld, match=r"_index/intents/nightly: the intent is unreadable.*free in 60\d s; take_over"):
        take(opened(LaterStore(store, 0), "b"))
    held = take(opened(LaterStore(store, UNREADABLE_TTL.total_seconds() + 1), "b"))
    assert held.intent.epoch == 2
    held.release()
    assert list_intents(store, keys(store)) == []


def test_an_intent_that_cannot_be_read_is_taken_over_when_asked_for(store: Store):
    first = take(opened(store))
    store.put(keys(store).intent(JOB), b"garbage")
    second = take(opened(store, "b"), take_over=True)
    assert second.intent.epoch == 2
    assert not first.renew()
    [seen] = list_intents(store, keys(store))
    assert seen.record == replace(second.intent, started_us=None)


def test_a_holder_renews_and_releases_over_an_intent_that_cannot_be_read(store: Store):
    held = take(opened(store))
    store.put(keys(store).intent(JOB), b"garbage")
    assert held.renew()
    [seen] = list_intents(store, keys(store))
    assert seen.record == held.intent
    store.put(keys(store).intent(JOB), b"garbage")
    held.release()
    assert list_intents(store, keys(store)) == []


def test_who_was_taken_over_leaves_an_intent_that_cannot_be_read(store: Store):
    first = take(opened(store))
    take(opened(store, "b"), take_over=True)
    store.put(keys(store).intent(JOB), b"garbage")
    first.release()
    assert [seen.record for seen in list_intents(store, keys(store))] == [None]


def test_an_intent_that_cannot_be_read_hides_no_other(store: Store):
    take(opened(store), "one")
    store.put(keys(store).intent("two"), b"garbage")
    first, second = list_intents(store, keys(store))
    assert (first.record, first.found.problem) == (standing(store, "one"), None)
    assert second.record is None
    assert second.found.name == "two"
    assert "_index/intents/two" in str(second.found.problem)
    assert (second.ttl, second.is_alive) == (UNREADABLE_TTL, True)
    assert not list_intents(LaterStore(store, UNREADABLE_TTL.total_seconds() + 2), keys(store))[1].is_alive
