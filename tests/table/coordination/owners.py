"""Processes that want the same job, each with its own view of one store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from tests.table.entries import LAYOUT, entry, key_of, new_table, surroundings
from underlay.index.operation import Operation
from underlay.index.root import Root
from underlay.store.store import Store, StoredObject
from underlay.store.testing.wrapper import Request, StoreWrapper
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.commit.commit import commit
from underlay.table.coordination.heartbeat import Heartbeat
from underlay.table.coordination.intent import decode_intent
from underlay.table.coordination.job import Job, acquire
from underlay.table.open_table import OpenTable

T = TypeVar("T")

TTL = 60.0
JOB = "nightly"
GONE = "gone"
"""A process that is heard of no more."""


class LaterStore(StoreWrapper):
    """The same store, later: its clock is ahead by `ahead_seconds`."""

    def __init__(self, inner: Store, ahead_seconds: float = 10 * TTL) -> None:
        super().__init__(inner)
        self.ahead_seconds = ahead_seconds

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        return call()

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead_seconds)


class StoppedStore(LaterStore):
    """The same store at one moment, however long a test takes."""

    def __init__(self, inner: Store, now: datetime) -> None:
        super().__init__(inner)
        self._now = now

    def now(self) -> datetime:
        return self._now


class AheadStore(LaterStore):
    """The same store, later, after the owner GONE was last heard of: what others put is stamped by the later clock."""

    def get(self, key: str, *, if_match: str | None = None) -> tuple[memoryview, StoredObject]:
        data, found = super().get(key, if_match=if_match)
        is_old = "/intents/" not in key or decode_intent(data).owner.startswith(f"{GONE}:")
        ahead = timedelta(seconds=0 if is_old else self.ahead_seconds)
        return data, replace(found, modified=found.modified + ahead)


def no_thread() -> Heartbeat:
    """A heartbeat that beats when a test says so."""
    return Heartbeat(start=lambda run: None)


def opened(store: Store, writer: str = "a", **given: object) -> OpenTable:
    """The table as a process of this name sees it."""
    return OpenTable(LakeCatalog(store, surroundings(writer, **given)), "taxi.trips")


def take(table: OpenTable, job: str = JOB, **given: object) -> Job:
    """Take the job, with no thread that renews it."""
    given = {"ttl_seconds": TTL, "heartbeat": no_thread()} | given
    return acquire(table, job, lambda held: held, **given)  # type: ignore[arg-type]  # of many types


def forgetful(held: Job) -> OpenTable:
    """The table of the job's holder, who does not know that it released it."""
    assert held.table.held is not None
    return held.table.holding(held.table.head().revision, *held.table.held)


def write(held: Job | OpenTable, location: str) -> Root:
    """Commit a made-up file under the job."""
    table = held.table if isinstance(held, Job) else held
    head = table.head()
    transaction = table.begin(head, Operation.APPEND)
    transaction.add_file(entry(location), LAYOUT)
    transaction.objects[key_of(head.revision.keys, location)] = location.encode()
    return commit(transaction)


def files(store: Store) -> list[str]:
    """What the table has."""
    table = opened(store, "reader")
    return [file.location for file in table.snapshot(table.head()).files()]


def check_writers(store: Store, job: str = JOB) -> None:
    """Every file was committed while the job had the epoch that the file is named after: `<owner>-<epoch>-…`."""
    revision = opened(store, "checker").head().revision
    for version in range(revision.head().version + 1):
        root = revision.root(version)
        for file in root.tail[len(root.tail) - root.delta.added_in_tail :]:
            assert int(file.location.split("-")[1]) == root.fences[job], f"{file.location} at epoch {root.fences[job]}"


def free() -> Store:
    """A store with a table whose job nobody has."""
    return new_table()[1].store


def expired() -> Store:
    """A store with a table whose job somebody took and left."""
    store = free()
    take(opened(store, GONE))
    return store
