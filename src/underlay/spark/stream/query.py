"""The identity of a streaming query: its id, and the offsets of its epochs, which are the same in a replay."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

QUERY_ID = "sql.streaming.queryId"
"""Spark's local property with the id of the query that a thread works for."""
_HEADER_LINES = 2
"""Lines with the version of the format, and with the time and settings of the batch."""


def read_offsets(checkpoint: str | None, epoch: int) -> str:
    """The offsets of an epoch, one line for each source; empty when unknown: without a checkpoint, or when it is not on
    this machine's disk.
    """
    folder = None if checkpoint is None else _local(checkpoint)
    if folder is None:
        return ""
    try:
        lines = (folder / "offsets" / str(epoch)).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return "\n".join(lines[_HEADER_LINES:])


def _local(checkpoint: str) -> Path | None:
    found = urlsplit(checkpoint)
    if not found.scheme:
        return Path(checkpoint)
    return Path(unquote(found.path)) if found.scheme == "file" else None
