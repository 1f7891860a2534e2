"""The identity of a streaming query: its id, and the offsets of its epochs, which are the same in a replay."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

QUERY_ID = "sql.streaming.queryId"
"""The local property of Spark that has the id of the query for which a thread works."""
_HEADER_LINES = 2
"""The version of the format, and the time and settings of the batch."""


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
