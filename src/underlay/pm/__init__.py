"""The `_pm` sidecar: the metadata of one Parquet file, row group by row group, in lock-free versions.

Byte-compatible with QuestDB's format, generations 9.4 and 10. `docs/pm-format.md` has the field tables and where
this implementation is stricter. The names below are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from underlay.pm.convert.build import from_parquet
    from underlay.pm.file import SidecarWriter, create_sidecar, read_sidecar
    from underlay.pm.format.encode import append, create
    from underlay.pm.format.sidecar import Sidecar, decode
    from underlay.pm.prune.prune import chunk_ranges, search_timestamp
    from underlay.pm.read.file_schema import FileSchema
    from underlay.pm.read.rows import read_rows
    from underlay.pm.read.synthesise import to_footer

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
    "FileSchema": "read.file_schema",
    "Sidecar": "format.sidecar",
    "SidecarWriter": "file",
    "append": "format.encode",
    "chunk_ranges": "prune.prune",
    "create": "format.encode",
    "create_sidecar": "file",
    "decode": "format.sidecar",
    "from_parquet": "convert.build",
    "read_rows": "read.rows",
    "read_sidecar": "file",
    "search_timestamp": "prune.prune",
    "to_footer": "read.synthesise",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
