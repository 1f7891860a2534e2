"""One job, lease or record of a run into the registry, as the store has it now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sqlalchemy import ColumnElement, Connection, Table, delete

from underlay.index.keys import RevisionKeys
from underlay.registry.apply import upsert_rows
from underlay.registry.fold import Row
from underlay.registry.kept import read_jobs, read_leases, read_runs
from underlay.registry.schema import JOBS, LEASES, RUNS
from underlay.store.store import Store

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
