from __future__ import annotations

import pytest

from tests.end_to_end.lakes import NAME, SCHEMA, memory, quick
from underlay.store import Store
from underlay.table.coordination.heartbeat import Heartbeat
from underlay.table.coordination.intent import list_intents
from underlay.table.coordination.upload_intent import announce, upload, withdraw
from underlay.table.versions.revision import Revision


@pytest.fixture
def store() -> Store:
    return memory()


@pytest.fixture
def revision(store: Store) -> Revision:
    return quick(store).create_table(NAME, SCHEMA).read_head().revision


def silent() -> Heartbeat:
    return Heartbeat(start=lambda _: None)


def test_an_upload_is_a_live_intent_until_it_is_released(store: Store, revision: Revision):
    with upload(revision, note="an append", heartbeat=silent()) as held:
        (seen,) = list_intents(store, revision.keys)
        assert (seen.record and seen.record.job, seen.is_alive) == (held.intent.job, True)
        assert revision.head().version == 0
    assert list_intents(store, revision.keys) == []


def test_a_renewed_upload_keeps_its_beginning(store: Store, revision: Revision):
    with upload(revision, heartbeat=silent()) as held:
        began = held.intent.started_us
        assert held.renew()
        (seen,) = list_intents(store, revision.keys)
        assert seen.record is not None
        assert seen.record.started_us == began is not None


def test_uploads_at_the_same_time_do_not_wait_for_each_other(store: Store, revision: Revision):
    with upload(revision, heartbeat=silent()), upload(revision, heartbeat=silent()):
        assert len(list_intents(store, revision.keys)) == 2


def test_what_was_announced_is_withdrawn_by_its_name(store: Store, revision: Revision):
    kept, gone = announce(revision, ttl_seconds=3600), announce(revision, ttl_seconds=3600)
    withdraw(revision, gone.job)
    (seen,) = list_intents(store, revision.keys)
    assert seen.record == kept
