"""Tells a source's format by its file extension, and its compression by its name and first bytes.

Loads no library that reads data, since the command line declares `--format` from it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Literal

from underlay.errors import InvalidRequest

Codec = Literal["gzip", "zstd", "bz2", "lz4"]


class FileFormat(StrEnum):
    """The format of a source."""

    CSV = "csv"
    TSV = "tsv"
    JSON = "json"
    """JSON lines."""
    PARQUET = "parquet"
    ARROW = "arrow"
    """An Arrow IPC file or stream."""


_ENDINGS = {
    FileFormat.PARQUET: (".parquet", ".parq"),
    FileFormat.CSV: (".csv",),
    FileFormat.TSV: (".tsv",),
    FileFormat.JSON: (".jsonl", ".ndjson", ".json"),
    FileFormat.ARROW: (".arrow", ".arrows", ".feather", ".ipc"),
}
MAGIC_BYTES = 10
_CODECS: dict[str, Codec] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
_MAGIC: dict[Codec, re.Pattern[bytes]] = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    "bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17\x72\x45\x38\x50\x90)"),
    "lz4": re.compile(rb"\x04\x22\x4d\x18"),
}


def kind_of(name: str) -> FileFormat:
    """The format for a name's extension. Raises InvalidRequest for an unknown extension."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    if suffixes and suffixes[-1] in _CODECS:
        suffixes.pop()
    for kind, endings in _ENDINGS.items():
        if suffixes and suffixes[-1] in endings:
            return kind
    known = ", ".join(ending for endings in _ENDINGS.values() for ending in endings)
    raise InvalidRequest(
        "the format cannot be told from the name",
        place=name,
        expected=f"one of {known}",
        hint="Name the format: --format on the command line, kind= in Python.",
    )


def codec_of(name: str, magic: bytes) -> Codec | None:
    """How a source is compressed: by its name, else by its first bytes."""
    named = _CODECS.get(Path(name).suffix.lower())
    if named is not None:
        return named
    return next((codec for codec, pattern in _MAGIC.items() if pattern.match(magic)), None)
