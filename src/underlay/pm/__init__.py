"""The `_pm` sidecar: what is in a Parquet file, row group by row group, with lock-free versions.

Byte-compatible with QuestDB's format, generations 9.4 and 10. `docs/pm-format.md` has the field tables and where
this implementation is stricter. The names below are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from underlay.pm.build import from_parquet
    from underlay.pm.encode import append, create
    from underlay.pm.file import SidecarWriter, create_sidecar, read_sidecar
    from underlay.pm.file_schema import FileSchema
    from underlay.pm.prune import chunk_ranges, search_timestamp
    from underlay.pm.read import read_rows
    from underlay.pm.sidecar import Sidecar, decode
from underlay.pm.synthesise import to_footer

__all__ = [
    "FileSchema",
    "Sidecar",
    "SidecarWriter",
    "append",
    "chunk_ranges",
    "create",
    "create_sidecar",
    "decode",
    "from_parquet",
    "read_rows",
    "read_sidecar",
    "search_timestamp",
    "to_footer",
]

_HOMES = {
    "FileSchema": "file_schema",
    "Sidecar": "sidecar",
    "SidecarWriter": "file",
    "append": "encode",
    "chunk_ranges": "prune",
    "create": "encode",
    "create_sidecar": "file",
    "decode": "sidecar",
    "from_parquet": "build",
    "read_rows": "read",
    "read_sidecar": "file",
    "search_timestamp": "prune",
    "to_footer": "synthesise",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
