"""What it costs to open a table of a remote lake with a registry: statements and requests are counted."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import TypeVar

import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from underlay.cache.settings import memory_cache
from underlay.registry.registry import Registry
from underlay.store.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.wrapper import Request, StoreMethod, StoreWrapper

T = TypeVar("T")


@pytest.fixture
def lake_url(seaweedfs) -> Store:
    return seaweedfs.open()


@pytest.fixture(autouse=True)
def late_reader(monkeypatch) -> None:
    """What was only read is applied when a test waits for it, not while it counts."""
    monkeypatch.setattr("underlay.registry.follow.follower.READER_DELAY_SECONDS", 3600.0)


@pytest.fixture
def cold_cache(tmp_path, monkeypatch) -> None:
    """No bytes of an earlier test on disk or in memory."""
    monkeypatch.setattr("underlay.api.opened.context.disk_cache", lambda: None)
    memory_cache().start_afresh()


def counted(store: Store, url: str) -> tuple[underlay.Lake, CountingStore, Registry]:
    """The lake as a new process sees it, and what it asks for."""
    memory_cache().start_afresh()
    counting = CountingStore(store)
    lake = underlay.connect(counting, registry=url)
    assert lake.registry is not None
    return lake, counting, lake.registry


@pytest.fixture
def filled(lake_url, registry_url, cold_cache) -> tuple[Store, str]:
    """A lake of 20 appends, with a registry that has followed."""
    lake = underlay.connect(lake_url, registry=registry_url)
    table = lake.create_table(NAME, SCHEMA)
    for number in range(20):
        table.append(rows([number]))
    assert lake.registry is not None
    assert lake.registry.wait(120)
    lake.registry.close()
    return lake_url, registry_url


def test_a_cold_open_is_one_statement_and_one_round_trip(filled):
    lake, counting, registry = counted(*filled)
    table = lake.table(NAME)
    assert registry.statement_count == 1
    assert counting.request_count(StoreMethod.LIST_OBJECTS) == 0
    assert counting.request_count(StoreMethod.GET) == 2, "the catalog's entry and the root"
    assert counting.request_count(StoreMethod.HEAD) == 2, "that none is newer"
    assert counting.request_count() == 4
    counting.reset()
    assert table.version == 20
    assert counting.request_count() == 1


class MeetingStore(StoreWrapper):
    """Answers none of the first requests before all of them are there."""

    def __init__(self, inner: Store, count: int) -> None:
        super().__init__(inner)
        self._left = count
        self._all_there = Event()

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        self._left -= 1
        if not self._left:
            self._all_there.set()
        assert self._all_there.wait(240), "a request waits for another one"
        return call()


def test_the_requests_of_a_cold_open_wait_for_each_other_in_no_way(filled):
    store, url = filled
    memory_cache().start_afresh()
    lake = underlay.connect(MeetingStore(store, 4), registry=url)
    assert ids(lake.table(NAME)) == list(range(20))


def test_a_plan_of_a_warm_table_is_one_request_and_no_statement(filled):
    lake, counting, registry = counted(*filled)
    table = lake.table(NAME)
    table.plan(where="id = 3").explain()
    assert registry.wait(120)
    before = registry.statement_count
    counting.reset()
    table.plan(where="id = 3").explain()
    assert counting.request_count() == 1
    assert registry.statement_count == before


def test_tables_are_listed_with_one_statement(filled):
    lake, counting, registry = counted(*filled)
    assert [table.name for table in lake.tables()] == [NAME]
    assert registry.statement_count == 1
    assert counting.request_count() == 2


def test_a_commit_is_one_transaction(filled):
    lake, _, registry = counted(*filled)
    table = lake.table(NAME)
    table.append(rows([100]))
    assert registry.wait(120)
    before = registry.transaction_count
    table.append(rows([101]))
    assert registry.wait(120)
    assert registry.transaction_count == before + 1


def test_what_others_committed_since_is_found_and_applied(filled):
    store, url = filled
    other = underlay.connect(store, registry="none").table(NAME)
    for number in range(20, 25):
        other.append(rows([number]))
    lake, _, registry = counted(store, url)
    assert ids(lake.table(NAME)) == list(range(25))
    assert registry.wait(120)
    assert registry.differences() == []


def test_a_table_that_the_registry_does_not_know_is_opened(filled):
    store, url = filled
    other = underlay.connect(store, registry="none")
    other.create_table("new.table", SCHEMA).append(rows([1]))
    lake, _, _ = counted(store, url)
    assert ids(lake.table("new.table")) == [1]


def test_a_table_that_was_renamed_since_is_not_found_by_its_old_name(filled):
    store, url = filled
    other = underlay.connect(store, registry="none")
    other.rename_table(NAME, "other.name")
    other.create_table(NAME, SCHEMA).append(rows([7]))
    lake, _, _ = counted(store, url)
    assert ids(lake.table(NAME)) == [7]
    assert ids(lake.table("other.name")) == list(range(20))


def test_a_table_that_was_dropped_since_is_gone(filled):
    store, url = filled
    underlay.connect(store, registry="none").drop_table(NAME)
    lake, _, _ = counted(store, url)
    with pytest.raises(underlay.errors.TableNotFound):
        lake.table(NAME)


def test_segments_come_from_the_footer_cache_when_another_machine_read_them(seaweedfs, postgres, cold_cache):
    store, url = seaweedfs.open(), postgres.create_database()
    lake = underlay.connect(store, registry=url)
    table = lake.create_table(NAME, SCHEMA, partition_by=["bucket(128, id)"])
    table.append(rows(range(400)))
    assert lake.registry is not None
    assert lake.registry.wait(120)
    first, first_counting, first_registry = counted(store, url)
    first.table(NAME).plan(where="id = 3").explain()
    assert first_counting.request_count(StoreMethod.GET_RANGES) > 0
    assert first_registry.wait(120)
    second, counting, registry = counted(store, url)
    table = second.table(NAME)
    counting.reset()
    assert "blocks" in str(table.plan(where="id = 3").explain())
    assert counting.request_count() == 1, "the head"
    for one in (lake.registry, first_registry, registry):
        one.close()
