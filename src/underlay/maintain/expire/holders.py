"""Finds what keeps versions of a revision from expiring: tags, readers' leases, writers' jobs, and exports."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from underlay.errors import NotFound
from underlay.index.catalog import Catalog, find_table
from underlay.index.keys import ICEBERG, delta_log, iceberg_folder
from underlay.interop.delta.log import ExportLog
from underlay.interop.iceberg.folder import WarehouseFolder
from underlay.interop.iceberg.tidy import held_versions
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.coordination.intent import Intent, list_intents
from underlay.table.coordination.lease import list_leases
from underlay.table.coordination.liveness import SeenBeacon
from underlay.table.versions.environment import to_us
from underlay.table.versions.revision import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """What holds versions of a revision, as of `now` by the store's clock."""

    now: datetime
    tags: dict[str, int]
    """Tagged versions by tag."""
    leases: dict[str, int | None]
    """Versions of live leases by reader; None for an unreadable lease, which may hold any version."""
    jobs_since_us: int | None
    """When the oldest live job began: jobs may read the version that was the newest then, and all later ones."""
    intents: frozenset[str]
    """Locks with an intent, live or not."""
    exports: dict[str, int]
    """Versions that other engines may be reading, by export."""

    @property
    def versions(self) -> frozenset[int]:
        """Versions that are held one by one."""
        leased = (one for one in self.leases.values() if one is not None)
        return frozenset((*self.tags.values(), *leased, *self.exports.values()))

    @property
    def unreadable(self) -> list[str]:
        """Readers whose versions are unknown."""
        return [reader for reader, version in self.leases.items() if version is None]


def find_holders(lake: LakeCatalog, name: str, revision: Revision, reader_age: timedelta) -> Holders:
    """Who holds what now. Reads the newest catalog, and lists leases, intents and exports: five requests, and the
    clock's, when there are none.
    """
    leases = [one for one in list_leases(revision.store, revision.keys) if one.is_alive]
    intents = list_intents(revision.store, revision.keys)
    started = [started_us(one) for one in intents if one.is_alive]
    now = revision.store.now()
    folder = WarehouseFolder(revision.store, f"{ICEBERG}/{iceberg_folder(name)}")
    return Holders(
        now=now,
        tags=tagged_versions(lake.catalog(), name, revision.id),
        leases={one.found.name: None if one.record is None else one.record.version for one in leases},
        jobs_since_us=min(started, default=None),
        intents=frozenset(one.found.name for one in intents),
        exports={
            **held_versions(folder, revision.id, now, reader_age),
            **ExportLog(revision.store, delta_log(revision.table_folder)).held_versions(revision.id, now, reader_age),
        },
    )


def tagged_versions(catalog: Catalog, name: str, revision: str) -> dict[str, int]:
    """Tags of a revision, with their versions; empty for a dropped table."""
    try:
        record = find_table(catalog, name)
    except NotFound:
        return {}
    return {tag: one.version for tag, one in record.tags.items() if one.revision == revision}


def started_us(seen: SeenBeacon[Intent]) -> int:
    """When a job began, by the store's clock. A job whose intent cannot be read may have begun at any time."""
    if seen.record is None:
        return 0
    began = seen.record.started_us
    return to_us(seen.modified) if began is None else began
