"""What users are told about the tables of a lake, their revisions and their versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TypeVar

from underlay.api.opened.moment import show_moment
from underlay.index.catalog import TableRecord, find_table
from underlay.index.outline import VersionSummary
from underlay.index.root import Root
from underlay.runtime.threads import side_by_side
from underlay.table.catalog.lake import LakeCatalog

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """A table of a lake. `folder` is where its revisions lie, `revision` the active one."""

    name: str
    folder: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionInfo:
    """One physical incarnation of a table."""

    id: str
    is_active: bool
    created: datetime


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
    """The ingest run that committed it."""


def describe(root: Root | VersionSummary) -> Version:
    """The version of a root."""
    from underlay.ingest.exactly_once.commit_claimed import run_of  # loads what writes tables

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


def look_at_tables(lake: LakeCatalog, name: str | None, look: Callable[[str, TableRecord], list[T]]) -> list[T]:
    """What `look` returns for one table or for all, ordered by name. Raises TableNotFound."""
    catalog = lake.catalog()
    records = catalog.tables if name is None else {name: find_table(catalog, name)}
    found = side_by_side(lambda table: look(*table), sorted(records.items()), lake.store.parallel_requests)
    return list(chain.from_iterable(found))
