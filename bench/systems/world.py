"""A place for tables: a folder of this machine, or a bucket behind a network; with PostgreSQL beside either."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from bench.systems.servers import s3_options
from bench.systems.system import link_files
from underlay.store import Store, open_store

REGISTRY = "registry"
CATALOG = "catalog"
_UPLOADS = 16


class World(msgspec.Struct, frozen=True, kw_only=True):
    """Where all systems keep their tables of the same files. JSON to a process that measures one of them."""

    name: str
    url: str
    """A path, or s3://bucket/path. The files are in `trips` below it."""
    folder: str
    """Of this machine, for what is kept beside the lake: databases and caches."""
    postgresql: str
    """The URL of the server; each world has databases of its own there."""
    endpoint: str | None = None
    """Of S3."""

    @property
    def options(self) -> dict[str, str] | None:
        """How the store is opened."""
        return s3_options(self.endpoint) if self.endpoint else None

    @property
    def files(self) -> str:
        """The folder of the files that all systems register."""
        return f"{self.url}/trips"

    def open_store(self) -> Store:
        """The store of the lake."""
        return open_store(self.url, self.options)

    def conninfo(self, purpose: str) -> str:
        """How libpq connects to the database for REGISTRY or CATALOG."""
        return make_conninfo(self.postgresql, dbname=f"{self.name}_{purpose}")

    def registry(self, kind: str) -> str:
        """The URL of the registry of this kind: `none`, `sqlite`, `postgresql`."""
        if kind == "sqlite":
            return f"sqlite:///{self.folder}/registry.sqlite"
        if kind == "postgresql":
            return self.postgresql.replace("/postgres?", f"/{self.name}_{REGISTRY}?")
        return kind

    def place(self, files: Sequence[Path]) -> None:
        """Get the files to where they are registered, and make the databases."""
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        with psycopg.connect(self.postgresql, autocommit=True) as connection:
            for purpose in (REGISTRY, CATALOG):
                name = sql.Identifier(f"{self.name}_{purpose}")
                connection.execute(sql.SQL("create database {}").format(name))
        if self.endpoint is None:
            link_files(files, Path(self.files))
            return
        store = self.open_store()
        with ThreadPoolExecutor(_UPLOADS) as pool:
            list(pool.map(lambda file: store.put(f"trips/{file.name}", file.read_bytes()), files))
