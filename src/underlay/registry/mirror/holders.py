"""Mirrors jobs' intents, readers' leases and runs' records as rows of the registry, in their current state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import msgspec
from sqlalchemy import Connection, Table, delete, select

from underlay.index.keys import RevisionKeys
from underlay.registry.database.database import Database
from underlay.registry.database.database_errors import patiently
from underlay.registry.database.schema import JOBS, LEASES, REVISIONS, RUNS
from underlay.registry.mirror.apply import upsert_rows
from underlay.registry.mirror.fold import Row
from underlay.registry.mirror.read_versions import Listing, ahead, readers
from underlay.runtime.threads import side_by_side
from underlay.store.store import Store
from underlay.table.coordination.intent import Intent, decode_intent
from underlay.table.coordination.lease import LeaseRecord, decode_lease
from underlay.table.coordination.liveness import KeptAlive, find_kept
from underlay.table.coordination.run_record import RunRecord, decode_record

T = TypeVar("T", bound=KeptAlive)
Write = Callable[[Connection], None]
"""Statements to run in the caller's transaction."""
_NOT_MIRRORED = ("format", "ttl_us")
_COPIED = tuple(name for name in RunRecord.__struct_fields__ if name not in _NOT_MIRRORED)
_WATCHING = "watching"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror(Generic[T]):
    """A kind of object that is mirrored one by one, and its table, whose key is (revision, name)."""

    table: Table
    key: Callable[[RevisionKeys, str], str]
    decode: Callable[[memoryview], T]
    row: Callable[[str, T], Row]

    def read(self, store: Store, revision: str, keys: Sequence[str]) -> list[Row]:
        """The rows of those objects that exist and can be read. One request for each, in parallel."""
        found = side_by_side(lambda key: find_kept(store, key, self.decode), keys, readers(store))
        return [self.row(revision, one.record) for one in found if one is not None and one.record is not None]

    def follow(self, store: Store, keys: RevisionKeys, revision: str, name: str) -> Write:
        """Read one object. Returns a function that writes its row, or deletes the row if the object is gone."""
        return partial(self._write, self.read(store, revision, [self.key(keys, name)]), revision, name)

    def _write(self, rows: Sequence[Row], revision: str, name: str, connection: Connection) -> None:
        upsert_rows(connection, self.table, rows)
        if not rows:
            of_revision, of_name = self.table.primary_key
            connection.execute(delete(self.table).where(of_revision == revision, of_name == name))


def job_row(revision: str, intent: Intent) -> Row:
    """The row of an intent. Like the object, it is named after the job that it locks."""
    return {
        "revision": revision,
        "job": intent.lock,
        "owner": intent.owner,
        "epoch": intent.epoch,
        "started_us": intent.renewed_us if intent.started_us is None else intent.started_us,
        "renewed_us": intent.renewed_us,
        "ttl_us": intent.ttl_us,
    }


def lease_row(revision: str, lease: LeaseRecord) -> Row:
    """The row of a lease."""
    return {
        "revision": revision,
        "reader": lease.reader,
        "owner": lease.owner,
        "version": lease.version,
        "started_us": lease.started_us,
        "renewed_us": lease.renewed_us,
        "ttl_us": lease.ttl_us,
    }


def run_row(revision: str, record: RunRecord) -> Row:
    """The row of a record."""
    copied = {name: getattr(record, name) for name in _COPIED}
    return {"revision": revision, **copied, "versions": msgspec.json.encode(record.versions).decode()}


JOB_MIRROR = Mirror(table=JOBS, key=RevisionKeys.intent, decode=decode_intent, row=job_row)
LEASE_MIRROR = Mirror(table=LEASES, key=RevisionKeys.lease, decode=decode_lease, row=lease_row)
RUN_MIRROR = Mirror(table=RUNS, key=RevisionKeys.record, decode=decode_record, row=run_row)


def read_listed(store: Store, revision: str, listing: Listing) -> Iterator[tuple[Table, list[Row]]]:
    """The rows of all objects in a listing of the revision, by table."""
    yield JOBS, JOB_MIRROR.read(store, revision, listing.intents)
    yield LEASES, LEASE_MIRROR.read(store, revision, listing.leases)
    yield RUNS, RUN_MIRROR.read(store, revision, listing.records)


def follow_runs(database: Database, store: Store) -> None:
    """Mirror the records of every revision: new ones, and those of running watches.

    One listing for each revision, and one request for each such record.
    """
    with database.read() as connection:
        places = connection.execute(select(REVISIONS.c.revision, REVISIONS.c.folder)).all()
    keys = [RevisionKeys.of(folder, revision) for revision, folder in places]
    with ThreadPoolExecutor(readers(store)) as pool:
        listings = ahead(pool, [partial(_list, store, one) for one in keys])
        for (revision, _), one, names in zip(places, keys, listings, strict=True):
            patiently(partial(_follow, database, store, revision, one, names))


def _list(store: Store, keys: RevisionKeys) -> list[str]:
    found = (keys.recorded_job_of(found.key) for found in store.list_objects(keys.records))
    return [job for job in found if job is not None]


def _follow(database: Database, store: Store, revision: str, keys: RevisionKeys, jobs: Sequence[str]) -> None:
    with database.read() as connection:
        asked = select(RUNS.c.job, RUNS.c.state).where(RUNS.c.revision == revision)
        known = {row.job: row.state for row in connection.execute(asked)}
    wanted = [keys.record(job) for job in jobs if known.get(job, _WATCHING) == _WATCHING]
    gone = known.keys() - set(jobs)
    rows = RUN_MIRROR.read(store, revision, wanted)
    if rows or gone:
        with database.write() as connection:
            upsert_rows(connection, RUNS, rows)
            connection.execute(delete(RUNS).where(RUNS.c.revision == revision, RUNS.c.job.in_(gone)))
