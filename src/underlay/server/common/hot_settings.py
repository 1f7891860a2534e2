"""What a server does with rows for hot partitions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from underlay.ingest.line_protocol.parse import LINE_BYTES
from underlay.ingest.rows.reading import NewColumnsPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class HotSettings:
    """The directory of hot partitions, and the treatment of what is written to them."""

    folder: Path
    dataset: str = "hot"
    """The dataset of measurements that come without a bucket or database."""
    new_columns: NewColumnsPolicy = "add"
    time_column: str = "timestamp"
    """The name of the time in new tables."""
    partition: str = "day"
    """How long a partition of a new hot table is."""
    body_bytes: int = 64 << 20
    """The size limit of one body, decompressed."""
    waiting_bytes: int = 256 << 20
    """The size limit of all bodies that are being taken."""
    line_bytes: int = LINE_BYTES
    staleness_seconds: float = 1.0
    """How old the known columns may be, and how long a dropped table may go unnoticed. A row that does not fit is
    looked at again with the newest columns."""
    per_token: int = 64
    """Requests of one token at a time."""
