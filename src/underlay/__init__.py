"""Underlay: the metadata layer under Parquet.

`connect` opens a lake. Names are imported when they are first used.
"""

from underlay._version import __version__

TYPE_CHECKING = False  # as `typing` has it, which takes longer to import than all of this
if TYPE_CHECKING:
    from underlay import errors
    from underlay.api.lake import Lake, connect
    from underlay.api.plan import Plan
    from underlay.api.scan import Scan
    from underlay.api.table import Table
    from underlay.errors import UnderlayError
    from underlay.ingest.rows.reading import Dialect
    from underlay.ingest.run.watch import Pace
    from underlay.prune.predicates.column import col
    from underlay.values.literal import lit

__all__ = [
    "Dialect",
    "Lake",
    "Pace",
    "Plan",
    "Scan",
    "Table",
    "UnderlayError",
    "__version__",
    "col",
    "connect",
    "errors",
    "lit",
]

_HOMES = {
    "Dialect": "ingest.rows.reading",
    "Lake": "api.lake",
    "Pace": "ingest.run.watch",
    "Plan": "api.plan",
    "Scan": "api.scan",
    "Table": "api.table",
    "UnderlayError": "errors",
    "col": "prune.predicates.column",
    "connect": "api.lake",
    "lit": "values.literal",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "errors":
        return import_module("underlay.errors")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
