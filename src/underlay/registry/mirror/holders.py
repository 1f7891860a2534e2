"""Intents of jobs, leases of readers and records of runs, as rows of the registry: what the objects say, whoever saw
them.

One job, lease or record of a run into the registry, as the store has it now.

Records of runs that the registry lacks. Unlike versions they have no order, so the store is asked which it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec
from sqlalchemy import ColumnElement, Connection, Table, delete, select

from underlay.index.keys import RevisionKeys
from underlay.registry.database.database import Database
from underlay.registry.database.database_errors import patiently
from underlay.registry.database.schema import JOBS, LEASES, REVISIONS, RUNS
from underlay.registry.mirror.apply import upsert_rows
from underlay.registry.mirror.fold import Row
from underlay.registry.mirror.read_versions import ahead, readers
from underlay.runtime.threads import side_by_side
from underlay.store.store import Store
from underlay.table.coordination.intent import Intent, decode_intent
from underlay.table.coordination.lease import LeaseRecord, decode_lease
from underlay.table.coordination.liveness import find_kept
from underlay.table.coordination.run_record import RunRecord, decode_record

_NOT_MIRRORED = ("format", "ttl_us")
_COPIED = tuple(name for name in RunRecord.__struct_fields__ if name not in _NOT_MIRRORED)


def read_jobs(store: Store, revision: str, keys: Iterable[str]) -> list[Row]:
    """The rows of these intents, as far as they are there and can be read. One request for each."""
    found = [find_kept(store, key, decode_intent) for key in keys]
    return [job_row(revision, one.record) for one in found if one is not None and one.record is not None]


def read_leases(store: Store, revision: str, keys: Iterable[str]) -> list[Row]:
    """The rows of these leases, as far as they are there and can be read. One request for each."""
    found = [find_kept(store, key, decode_lease) for key in keys]
    return [lease_row(revision, one.record) for one in found if one is not None and one.record is not None]


def read_runs(store: Store, revision: str, keys: Sequence[str]) -> list[Row]:
    """The rows of these records, as far as they are there and can be read. One request for each, side by side."""
    found = side_by_side(lambda key: find_kept(store, key, decode_record), keys, readers(store)) if keys else []
    return [run_row(revision, one.record) for one in found if one is not None and one.record is not None]


def job_row(revision: str, intent: Intent) -> Row:
    """The row of an intent. It is known by what it locks, as the object is."""
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


Write = Callable[[Connection], None]
"""Statements in somebody else's transaction."""


def mirror_job(store: Store, keys: RevisionKeys, revision: str, job: str) -> Write:
    """Reads the job's intent; what is returned writes its row, or deletes it when there is none."""
    rows = read_jobs(store, revision, [keys.intent(job)])
    return partial(_write, JOBS, rows, (JOBS.c.revision == revision, JOBS.c.job == job))


def mirror_lease(store: Store, keys: RevisionKeys, revision: str, reader: str) -> Write:
    """The same for a reader's lease."""
    rows = read_leases(store, revision, [keys.lease(reader)])
    return partial(_write, LEASES, rows, (LEASES.c.revision == revision, LEASES.c.reader == reader))


def mirror_run(store: Store, keys: RevisionKeys, revision: str, job: str) -> Write:
    """The same for the record of a run."""
    rows = read_runs(store, revision, [keys.record(job)])
    return partial(_write, RUNS, rows, (RUNS.c.revision == revision, RUNS.c.job == job))


def _write(table: Table, rows: Sequence[Row], which: tuple[ColumnElement[bool], ...], connection: Connection) -> None:
    """Write the one row, or delete `which` when there is none."""
    upsert_rows(connection, table, rows)
    if not rows:
        connection.execute(delete(table).where(*which))


_WATCHING = "watching"
_DEPTH = 64


def follow_runs(database: Database, store: Store) -> None:
    """Mirror the records of every revision: those that are new, and those of runs that watch.

    One listing for each revision, and one request for each such record.
    """
    with database.read() as connection:
        places = connection.execute(select(REVISIONS.c.revision, REVISIONS.c.folder)).all()
    keys = [RevisionKeys.of(folder, revision) for revision, folder in places]
    with ThreadPoolExecutor(readers(store)) as pool:
        listings = ahead(pool, [partial(_list, store, one) for one in keys], _DEPTH)
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
    rows = read_runs(store, revision, wanted)
    if rows or gone:
        with database.write() as connection:
            upsert_rows(connection, RUNS, rows)
            connection.execute(delete(RUNS).where(RUNS.c.revision == revision, RUNS.c.job.in_(gone)))
