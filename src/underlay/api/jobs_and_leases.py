"""Lists writers' jobs and readers' leases, as the store has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from underlay.api.opened.info import look_at_tables
from underlay.api.opened.moment import show_moment
from underlay.errors import Damaged, Unsupported
from underlay.index.catalog import TableRecord
from underlay.index.keys import RevisionKeys
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.coordination.intent import EXCLUSIVE, Intent, list_intents
from underlay.table.coordination.lease import LeaseRecord
from underlay.table.coordination.lease import list_leases as list_of_revision
from underlay.table.coordination.liveness import SeenBeacon
from underlay.table.versions.revision import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """A job as described by its intent in the store. Times are by the store's clock.

    An intent that cannot be read is listed by its key: `problem` says why, and fields that only it holds are None.
    """

    table: str
    job: str
    owner: str | None
    epoch: int | None
    started: datetime | None
    renewed: datetime
    ttl: timedelta
    note: str
    is_exclusive: bool
    is_alive: bool
    """Whether it was renewed within its time to live."""
    is_fenced: bool | None
    """Whether another process took it over: the root has a newer epoch, so this one can no longer commit. None if the
    root or the intent cannot be read."""
    problem: str | None = None


def list_jobs(lake: LakeCatalog, name: str | None = None) -> list[JobInfo]:
    """The running and abandoned jobs of a table, or of all. One request for a table without any; tables are looked up
    in parallel. Raises TableNotFound.
    """
    return look_at_tables(lake, name, lambda table, record: _jobs_of(lake, table, record))


def job_row(job: JobInfo) -> dict[str, object]:
    """A job as the system view `underlay.jobs` has it."""
    return {
        "job": job.job,
        "owner": job.owner,
        "epoch": job.epoch,
        "started_at": job.started,
        "renewed_at": job.renewed,
        "ttl_seconds": job.ttl.total_seconds(),
        "note": job.note,
        "is_exclusive": job.is_exclusive,
        "is_alive": job.is_alive,
        "is_fenced": job.is_fenced,
        "problem": job.problem,
    }


def _jobs_of(lake: LakeCatalog, name: str, record: TableRecord) -> list[JobInfo]:
    revision = Revision(lake.store, record.folder, record.active, lake.surroundings)
    seen = list_intents(lake.store, revision.keys)
    fences = _fences(revision) if seen else None
    return [_job_info(name, one, fences) for one in seen]


def _fences(revision: Revision) -> Mapping[str, int] | None:
    """The epochs of jobs; None when the root that holds them cannot be read."""
    try:
        return revision.head().fences
    except (Damaged, Unsupported):
        return None


def _job_info(table: str, seen: SeenBeacon[Intent], fences: Mapping[str, int] | None) -> JobInfo:
    intent, found = seen.record, seen.found
    if intent is None:
        return JobInfo(
            table=table,
            job=found.name,
            owner=None,
            epoch=None,
            started=None,
            renewed=found.modified,
            ttl=seen.ttl,
            note="",
            is_exclusive=found.name == EXCLUSIVE,
            is_alive=seen.is_alive,
            is_fenced=None,
            problem=str(found.problem),
        )
    return JobInfo(
        table=table,
        job=intent.job,
        owner=intent.owner,
        epoch=intent.epoch,
        started=found.modified if intent.started_us is None else show_moment(intent.started_us),
        renewed=found.modified,
        ttl=seen.ttl,
        note=intent.note,
        is_exclusive=intent.is_exclusive,
        is_alive=seen.is_alive,
        is_fenced=None if fences is None else fences.get(intent.lock, 0) > intent.epoch,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseInfo:
    """A lease as the store has it. `renewed` is by the store's clock, `started` by the reader's.

    One that cannot be read is listed by its key: `problem` says why, and fields that only it holds are None.
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
    without any; tables are looked up in parallel. Raises TableNotFound.
    """
    return look_at_tables(lake, name, lambda table, record: _leases_of(lake, table, record))


def _leases_of(lake: LakeCatalog, name: str, record: TableRecord) -> list[LeaseInfo]:
    return [
        _lease_info(name, revision, one)
        for revision in record.revisions
        for one in list_of_revision(lake.store, RevisionKeys.of(record.folder, revision))
    ]


def _lease_info(table: str, revision: str, seen: SeenBeacon[LeaseRecord]) -> LeaseInfo:
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
