"""Leases of readers."""

from __future__ import annotations

import pytest

from tests.table.coordination.owners import LaterStore, no_thread, opened
from tests.table.entries import append, new_table
from underlay.errors import InvalidRequest
from underlay.index.keys import RevisionKeys
from underlay.store.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.table.coordination.lease import Lease, list_leases, take_lease
from underlay.table.coordination.liveness import UNREADABLE_TTL
from underlay.table.open_table import OpenTable


@pytest.fixture
def store() -> Store:
    """A lake with one table of two versions."""
    revision = new_table()[1]
    append(revision, "x")
    return revision.store


def keys(store: Store) -> RevisionKeys:
    return opened(store).head().revision.keys


def lease(table: OpenTable, name: str | None = None, ttl_seconds: float = 60) -> Lease:
    return take_lease(table.head(), table, name=name, ttl_seconds=ttl_seconds, heartbeat=no_thread())


def test_a_lease_names_the_version_and_goes_with_its_release(store: Store):
    with lease(opened(store, "host:7")) as held:
        [seen] = list_leases(store, keys(store))
        assert (seen.record.version, seen.record.reader) == (1, held.lease.reader)
        assert seen.record.reader.startswith("host-7-")
        assert seen.record.owner.startswith("host:7:")
    assert list_leases(store, keys(store)) == []
    held.release()


def test_readers_of_one_name_do_not_wait_for_each_other(store: Store):
    first, second = lease(opened(store), "report"), lease(opened(store), "report")
    assert first.lease.reader != second.lease.reader
    second.release()
    assert [seen.record.reader for seen in list_leases(store, keys(store))] == [first.lease.reader]


def test_leases_are_alive_within_their_time_to_live(store: Store):
    lease(opened(store), "short", ttl_seconds=10)
    lease(opened(store), "long", ttl_seconds=100)
    later = LaterStore(store, 50)
    found = [(seen.found.name[:5], seen.is_alive) for seen in list_leases(later, keys(store))]
    assert found == [("long-", True), ("short", False)]


def test_a_renewal_puts_the_lease_again_with_two_requests(store: Store):
    counting = CountingStore(store)
    held = lease(opened(counting))
    before = held.lease.renewed_us
    counting.reset()
    assert held.renew()
    assert counting.request_count() == 2
    [seen] = list_leases(store, keys(store))
    assert seen.record.renewed_us > before
    assert seen.record.started_us == before


def test_a_lease_that_was_deleted_is_lost(store: Store):
    held = lease(opened(store))
    store.delete([keys(store).lease(held.lease.reader)])
    assert not held.renew()
    assert held.is_lost
    assert list_leases(store, keys(store)) == []


def test_a_name_that_is_no_key_is_refused(store: Store):
    with pytest.raises(InvalidRequest, match="not a name for a reader"):
        lease(opened(store), "a/b")


def test_a_lease_that_cannot_be_read_hides_no_other(store: Store):
    held = lease(opened(store), "a")
    store.put(keys(store).lease("x"), b"{}")
    good, bad = list_leases(store, keys(store))
    assert good.record == held.lease
    assert bad.record is None
    assert "_index/leases/x" in str(bad.found.problem)
    assert bad.is_alive
    assert not list_leases(LaterStore(store, UNREADABLE_TTL.total_seconds() + 2), keys(store))[1].is_alive


def test_a_reader_renews_over_a_lease_that_cannot_be_read(store: Store):
    held = lease(opened(store))
    store.put(keys(store).lease(held.lease.reader), b"{}")
    assert held.renew()
    assert [seen.record for seen in list_leases(store, keys(store))] == [held.lease]


class Mirror:
    """A registry that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __getattr__(self, name: str):
        return lambda *given, **named: None

    def saw_reader(self, keys: RevisionKeys, revision: str, reader: str) -> None:
        assert keys.folder.endswith(revision)
        self.told.append(reader)


def test_the_registry_is_told_of_taking_renewing_and_releasing(store: Store):
    mirror = Mirror()
    held = lease(opened(store, registry=mirror), "report")
    held.renew()
    held.release()
    assert mirror.told == [held.lease.reader] * 3
