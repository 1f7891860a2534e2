"""Jobs that write a table: one holder at a time, whose commits are refused once another took over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from underlay.api.held import Held, look_at_tables
from underlay.api.moment import show_moment
from underlay.errors import Damaged, Unsupported
from underlay.index.catalog import TableRecord
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.coordination.intent import EXCLUSIVE, Intent, list_intents
from underlay.table.coordination.job import HeldJob
from underlay.table.coordination.liveness import SeenBeacon
from underlay.table.versions.revision import Revision

if TYPE_CHECKING:
    from underlay.api.table import Table


class Job(Held):
    """A job that is held until it is released, which a `with` does. Made by `Table.job`.

    A thread renews it. `table` is the table to write to: its commits raise JobTakenOver once another has the job.
    """

    def __init__(self, held: HeldJob, table: Table) -> None:
        super().__init__(held)
        self._held = held
        self.table = table

    @property
    def name(self) -> str:
        """What it is called."""
        return self._held.intent.job

    @property
    def epoch(self) -> int:
        """How often the job was taken until now. Each holder has another one."""
        return self._held.intent.epoch

    def __repr__(self) -> str:
        return f"Job({self.table.name!r}, {self.name!r}, epoch={self.epoch})"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """A job as its intent in the store tells. Times are by the store's clock.

    An intent that cannot be read is listed by its key: `problem` says why, and what only it tells is None.
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
    """Whether another took it over: the root has a newer epoch, so it can no longer commit. None when the root or the
    intent cannot be read."""
    problem: str | None = None


def list_jobs(lake: LakeCatalog, name: str | None = None) -> list[JobInfo]:
    """The jobs of a table, or of all: those that are being done and those that were left. One request for a table
    without any, tables side by side. Raises TableNotFound."""
    return look_at_tables(lake, name, lambda table, record: _jobs_of(lake, table, record))


def _jobs_of(lake: LakeCatalog, name: str, record: TableRecord) -> list[JobInfo]:
    revision = Revision(lake.store, record.folder, record.active, lake.surroundings)
    seen = list_intents(lake.store, revision.keys)
    fences = _fences(revision) if seen else None
    return [_describe(name, one, fences) for one in seen]


def _fences(revision: Revision) -> Mapping[str, int] | None:
    """The epochs of jobs; None when the root that has them cannot be read."""
    try:
        return revision.head().fences
    except (Damaged, Unsupported):
        return None


def _describe(table: str, seen: SeenBeacon[Intent], fences: Mapping[str, int] | None) -> JobInfo:
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
