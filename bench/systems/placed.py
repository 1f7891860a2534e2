"""Every system that is measured in a world, by its name, loaded when it is asked for: a cold process imports its own
library only."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from bench.systems.known import OURS
from bench.systems.system import System
from bench.systems.world import World

REGISTRIES = (f"{OURS} sqlite", f"{OURS} postgresql")
_HOMES = {
    OURS: ("placed_ours", "PlacedUnderlay"),
    REGISTRIES[0]: ("placed_ours", "WithSqlite"),
    REGISTRIES[1]: ("placed_ours", "WithPostgresql"),
    "deltalake": ("placed_delta", "PlacedDelta"),
    "ducklake": ("placed_ducklake", "PlacedDuckLake"),
}
PLACED = tuple(_HOMES)
OWN = (OURS, *REGISTRIES)
PEERS = tuple(name for name in PLACED if name not in OWN)


class Placed(Protocol):
    """A class of systems whose table lies in a world."""

    def __call__(self, world: World) -> System: ...


def load_placed(name: str) -> Placed:
    """The class of this system."""
    module, symbol = _HOMES[name]
    found: Placed = getattr(import_module(f"bench.systems.{module}"), symbol)
    return found
