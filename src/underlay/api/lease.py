"""Leases: versions that stay readable for as long as somebody says so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from underlay.api.held import Held, look_at_tables
from underlay.api.moment import show_moment
from underlay.index.catalog import TableRecord
from underlay.index.keys import RevisionKeys
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.coordination import lease as leases
from underlay.table.coordination.liveness import SeenBeacon

if TYPE_CHECKING:
    from underlay.api.table import Table


class Lease(Held):
    """A version that is kept until it is released, which a `with` does. Made by `Table.lease`.

    A thread renews it. `table` is the table at that version, which may go once the lease is lost.
    """

    def __init__(self, held: leases.HeldLease, table: Table) -> None:
        super().__init__(held)
        self._held = held
        self.table = table

    @property
    def reader(self) -> str:
        """What the lease is called in the store."""
        return self._held.lease.reader

    @property
    def version(self) -> int:
        """The version that is kept."""
        return self._held.lease.version

    def __repr__(self) -> str:
        return f"Lease({self.table.name!r}, version={self.version}, reader={self.reader!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseInfo:
    """A lease as the store has it. `renewed` is by the store's clock, `started` by the reader's.

    One that cannot be read is listed by its key: `problem` says why, and what only it tells is None.
    """

    table: str
    revision: str
    reader: str
    owner: str | None
    version: int | None
    started: datetime | None
    renewed: datetime
    ttl: timedelta
    is_alive: bool
    """Whether it was renewed within its time to live."""
    problem: str | None = None


def list_leases(lake: LakeCatalog, name: str | None = None) -> list[LeaseInfo]:
    """The leases on a table's versions, or on those of all tables, older revisions included. One request for a revision
    without any, tables side by side. Raises TableNotFound."""
    return look_at_tables(lake, name, lambda table, record: _leases_of(lake, table, record))


def _leases_of(lake: LakeCatalog, name: str, record: TableRecord) -> list[LeaseInfo]:
    return [
        _describe(name, revision, one)
        for revision in record.revisions
        for one in leases.list_leases(lake.store, RevisionKeys.of(record.folder, revision))
    ]


def _describe(table: str, revision: str, seen: SeenBeacon[leases.LeaseRecord]) -> LeaseInfo:
    lease, found = seen.record, seen.found
    return LeaseInfo(
        table=table,
        revision=revision,
        reader=found.name,
        owner=lease.owner if lease else None,
        version=lease.version if lease else None,
        started=show_moment(lease.started_us) if lease else None,
        renewed=found.modified,
        ttl=seen.ttl,
        is_alive=seen.is_alive,
        problem=str(found.problem) if found.problem else None,
    )
