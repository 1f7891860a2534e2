"""Underlay in a world, without a registry or with one of a kind."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import ClassVar

from bench.systems.ours import Underlay
from bench.systems.world import World
from underlay.api.lake import Lake, connect
from underlay.store.testing import CountingStore

NONE = "none"


class PlacedUnderlay(Underlay):
    """One lake, however it is opened; the modules of its registry are imported with the object."""

    kind: ClassVar[str] = NONE

    def __init__(self, world: World, *, is_counted: bool = False) -> None:
        self._world = world
        self.counting = CountingStore(world.open_store()) if is_counted else None
        if self.kind != NONE:
            _import_registry(self.kind)

    @cached_property
    def lake(self) -> Lake:
        """The open lake."""
        world = self._world
        return connect(self.counting or world.url, registry=world.registry(self.kind), options=world.options)

    def register(self) -> None:
        """See Underlay."""
        self.table.register(f"{self._world.files}/*.parquet")


class WithSqlite(PlacedUnderlay):
    """The registry is a file of this machine."""

    kind = "sqlite"


class WithPostgresql(PlacedUnderlay):
    """The registry is a database of a server."""

    kind = "postgresql"


def _import_registry(kind: str) -> None:
    """Import what opening a lake with a registry of this kind loads, of ours and of others."""
    for name in ("database.database", "mirror.opening", "follow.apply_seen"):
        import_module(f"underlay.registry.{name}")
    import_module(f"sqlalchemy.dialects.{kind}")
    import_module({"sqlite": "sqlite3", "postgresql": "psycopg"}[kind])
