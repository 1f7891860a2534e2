"""DuckLake in a world: its catalog in PostgreSQL, the files in a folder or on S3."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import duckdb

from bench.systems.ducklake import DuckLake, find_extension
from bench.systems.servers import ACCESS_KEY, REGION, SECRET_KEY
from bench.systems.world import CATALOG, World

_EXTENSIONS = ("ducklake", "postgres_scanner", "httpfs")


class PlacedDuckLake(DuckLake):
    """The world's files, registered where they are.

    The connection with its extensions is made with the object; connecting to PostgreSQL counts as opening the table.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._folder = Path(world.folder)
        self._pattern = f"{world.files}/*.parquet"
        self._connection = duckdb.connect()
        for name in _EXTENSIONS:
            self._connection.execute(f"load '{find_extension(name)}'")
        if world.endpoint is not None:
            self._connection.execute(
                f"create secret (type s3, key_id '{ACCESS_KEY}', secret '{SECRET_KEY}', region '{REGION}', "
                f"endpoint '{world.endpoint.removeprefix('http://')}', use_ssl false, url_style 'path')"
            )

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection, with the lake attached."""
        place = f"ducklake:postgres:{self._world.conninfo(CATALOG)}"
        self._connection.execute(f"attach '{place}' as lake (data_path '{self._world.url}/ducklake')")
        return self._connection
