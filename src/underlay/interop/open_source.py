"""Opens a table of another system by its address, such as `delta:s3://bucket/table`."""

from __future__ import annotations

import re
from collections.abc import Callable

from underlay.errors import InvalidRequest
from underlay.interop.from_delta.delta_source import DeltaSource
from underlay.interop.from_ducklake.ducklake_source import DuckLakeSource
from underlay.interop.from_hive.hive_source import HiveSource
from underlay.interop.from_iceberg.iceberg_source import IcebergRestSource, IcebergSource
from underlay.interop.from_questdb.questdb_source import QuestdbSource
from underlay.interop.imports.source_table import TableSource
from underlay.scan.read.file_stores import FileStores

_SOURCES: dict[str, Callable[[str, FileStores], TableSource]] = {
    "delta": DeltaSource,
    "iceberg": IcebergSource,
    "iceberg+rest": IcebergRestSource,
    "ducklake": DuckLakeSource,
    "hive": HiveSource,
    "questdb": QuestdbSource,
}
_ADDRESS = re.compile(r"([a-z][a-z+]*):(.*)", re.DOTALL)


def is_source(text: str) -> bool:
    """Whether a text is the address of a table of another system, not a path."""
    match = _ADDRESS.fullmatch(text)
    return match is not None and match[1] in _SOURCES


def open_source(address: str, stores: FileStores) -> TableSource:
    """The table there. Makes no request. Raises InvalidRequest."""
    match = _ADDRESS.fullmatch(address)
    if match is None or match[1] not in _SOURCES or not match[2]:
        kinds = ", ".join(f"{kind}:…" for kind in _SOURCES)
        raise InvalidRequest(
            "not the address of a table of another system",
            found=address,
            expected=kinds,
            hint="Write delta:path/to/table, for example.",
        )
    return _SOURCES[match[1]](match[2], stores)
