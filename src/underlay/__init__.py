"""Underlay: the metadata layer under Parquet.

`connect` opens a lake. The names below are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from underlay._version import __version__
from underlay.errors import UnderlayError

if TYPE_CHECKING:
    from underlay import errors
    from underlay.api.lake import Lake, connect
    from underlay.api.plan import Plan
    from underlay.api.scan import Scan
    from underlay.api.table import Table
    from underlay.prune.predicates.column import col

__all__ = ["Lake", "Plan", "Scan", "Table", "UnderlayError", "__version__", "col", "connect", "errors"]

_HOMES = {
    "Lake": "api.lake",
    "Plan": "api.plan",
    "Scan": "api.scan",
    "Table": "api.table",
    "col": "prune.predicates.column",
    "connect": "api.lake",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
