from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.registry.database.rows import create
from tests.registry.servers import PostgresServer
from underlay.registry.database.database import Database, open_database


@pytest.fixture
def database(registry_url: str) -> Iterator[Database]:
    with closing(open_database(registry_url)) as database:
        create(database)
        yield database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "registry.sqlite"


@pytest.fixture
def file(path: Path) -> Iterator[Database]:
    with closing(open_database(f"sqlite:///{path}")) as database:
        create(database)
        yield database


@pytest.fixture
def server(postgres: PostgresServer) -> Iterator[Database]:
    url = postgres.create_database()
    with closing(open_database(url)) as database:
        create(database)
        yield database
    postgres.drop_database(url)
