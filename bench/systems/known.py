"""Every measured system by its name, loaded when it is asked for: a cold process imports its own library only."""

from __future__ import annotations

from importlib import import_module

from bench.systems.system import System

OURS = "underlay"
SLOW_TO_IMPORT = "pyiceberg"
"""Some 10 ms a file: imported only when asked for."""

_HOMES = {
    OURS: ("ours", "Underlay"),
    "deltalake": ("delta", "Delta"),
    "ducklake": ("ducklake", "DuckLake"),
    SLOW_TO_IMPORT: ("iceberg", "Iceberg"),
}
SYSTEMS = tuple(_HOMES)


def load_system(name: str) -> type[System]:
    """The class of this system."""
    module, symbol = _HOMES[name]
    found: type[System] = getattr(import_module(f"bench.systems.{module}"), symbol)
    return found
