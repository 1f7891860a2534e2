"""Registries to test on: a SQLite file, and a database of the session's PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from tests.registry.workload import Workload
from underlay.registry.database.database import Database, open_database
from underlay.registry.database.schema import METADATA, REVISIONS
from underlay.registry.mirror.apply_catalog import apply_catalog
from underlay.registry.mirror.catch_up import catch_up_revision


def empty_registry(url: str) -> Database:
    """A database with the registry's tables, and nothing in them."""
    database = open_database(url)
    with database.write() as connection:
        METADATA.create_all(connection)
    return database


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Database]:
    database = empty_registry(f"sqlite:///{tmp_path / 'registry.sqlite'}")
    yield database
    database.close()


@pytest.fixture(params=["on_sqlite", "on_postgresql"])
def registry(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param == "on_sqlite":
        yield request.getfixturevalue("on_sqlite")
        return
    database = empty_registry(request.getfixturevalue("postgres").create_database())
    yield database
    database.close()


def follow(database: Database, workload: Workload) -> None:
    """Roll everything forward that the catalog names."""
    with database.write() as connection:
        apply_catalog(connection, workload.lake.catalog(), workload.store.url)
        rows = connection.execute(select(REVISIONS.c.folder, REVISIONS.c.revision)).all()
    for folder, revision in rows:
        catch_up_revision(database, workload.store, folder, revision)
