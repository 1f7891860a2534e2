"""Records of runs that the registry lacks. Unlike versions they have no order, so the store is asked which it has."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from sqlalchemy import delete, select

from underlay.index.keys import RevisionKeys
from underlay.registry.apply import upsert_rows
from underlay.registry.database import Database
from underlay.registry.failure import patiently
from underlay.registry.fetch import ahead, readers
from underlay.registry.kept import read_runs
from underlay.registry.schema import REVISIONS, RUNS
from underlay.store.store import Store

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
