"""A version as users see it in a history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from underlay.api.moment import show_moment
from underlay.index.root import Root
from underlay.ingest.exactly_once.commit_claimed import run_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One commit. `counts` says what it did, the other numbers what the table then had."""

    version: int
    committed: datetime
    operation: str
    counts: dict[str, int]
    row_count: int
    file_count: int
    data_bytes: int
    writer: str
    commit_id: str
    run: str | None = None
    """The run of an ingest that committed it."""


def describe(root: Root) -> Version:
    """The version of a root."""
    return Version(
        version=root.version,
        committed=show_moment(root.committed_us),
        operation=root.operation.value,
        counts=dict(root.counts),
        row_count=root.row_count,
        file_count=root.file_count,
        data_bytes=root.data_bytes,
        writer=root.writer,
        commit_id=root.commit_id,
        run=run_of(root),
    )
