"""One job, lease or record of a run into the registry, as the store has it now."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, delete

from underlay.index.keys import RevisionKeys
from underlay.registry.apply import upsert_rows
from underlay.registry.kept import read_jobs, read_leases, read_runs
from underlay.registry.schema import JOBS, LEASES, RUNS
from underlay.store.store import Store

Write = Callable[[Connection], None]
"""Statements in somebody else's transaction."""


def mirror_job(store: Store, keys: RevisionKeys, revision: str, job: str) -> Write:
    """Reads the job's intent; what is returned writes its row, or deletes it when there is none."""
    rows = read_jobs(store, revision, [keys.intent(job)])

    def write(connection: Connection) -> None:
        upsert_rows(connection, JOBS, rows)
        if not rows:
            connection.execute(delete(JOBS).where(JOBS.c.revision == revision, JOBS.c.job == job))

    return write


def mirror_lease(store: Store, keys: RevisionKeys, revision: str, reader: str) -> Write:
    """The same for a reader's lease."""
    rows = read_leases(store, revision, [keys.lease(reader)])

    def write(connection: Connection) -> None:
        upsert_rows(connection, LEASES, rows)
        if not rows:
            connection.execute(delete(LEASES).where(LEASES.c.revision == revision, LEASES.c.reader == reader))

    return write


def mirror_run(store: Store, keys: RevisionKeys, revision: str, job: str) -> Write:
    """The same for the record of a run."""
    rows = read_runs(store, revision, [keys.record(job)])

    def write(connection: Connection) -> None:
        upsert_rows(connection, RUNS, rows)
        if not rows:
            connection.execute(delete(RUNS).where(RUNS.c.revision == revision, RUNS.c.job == job))

    return write
