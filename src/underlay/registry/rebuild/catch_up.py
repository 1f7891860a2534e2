"""The registry brought to what the store holds now, for all tables: what a person asks for."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from underlay.registry.database.database import Database
from underlay.registry.database.migration import prepare
from underlay.registry.database.schema import VERSIONS
from underlay.registry.mirror.holders import follow_runs
from underlay.registry.rebuild.restore import OnRevision, catch_up
from underlay.registry.rebuild.status import find_problem
from underlay.store.store import Store


def follow(database: Database, store: Store, progress: OnRevision | None = None) -> int:
    """Apply what the registry lacks; how many versions that were.

    Three requests for each revision of which nothing is new. Raises RegistryRefused for a registry of another history.
    """
    prepare(database)
    problem = find_problem(database, store)
    if problem is not None:
        raise problem
    with database.read() as connection:
        before = _count(connection)
    catch_up(database, store, progress)
    follow_runs(database, store)
    with database.read() as connection:
        return _count(connection) - before


def _count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(VERSIONS)).scalar_one()
