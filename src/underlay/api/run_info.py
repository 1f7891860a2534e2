"""Lists finished runs and running watches, as their records in the store have them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from underlay.api.opened.info import look_at_tables
from underlay.api.opened.moment import show_moment
from underlay.errors import InvalidRequest
from underlay.index.catalog import TableRecord
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.coordination.liveness import SeenBeacon
from underlay.table.coordination.run_record import RunRecord, State, list_records
from underlay.table.versions.revision import Revision

LOST = "lost"
UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """One run. Times are by its own clock. If its record cannot be read, `problem` says why, and fields that only the
    record holds are None or 0.
    """

    table: str
    run: str
    owner: str | None
    operation: str | None
    state: str
    """done, nothing (to do), failed, stopped, watching, lost (it was watching, and its lease expired) or unreadable."""
    started: datetime | None
    ended: datetime
    """When it ended, or last renewed its record."""
    seconds: float = 0.0
    asked: str = ""
    workers: str = ""
    sources: int = 0
    known: int = 0
    skipped: int = 0
    failed: int = 0
    claimed: int = 0
    replaced: int = 0
    row_count: int = 0
    rejected_count: int = 0
    source_bytes: int = 0
    versions: tuple[int, ...] = ()
    """The versions that it committed; only the newest if there are very many."""
    version_count: int = 0
    reason: str | None = None
    problem: str | None = None


def list_runs(lake: LakeCatalog, name: str | None = None, most: int = 50) -> list[RunInfo]:
    """The newest runs of a table, or of all, newest first. One listing for each revision of a table, tables in
    parallel, and one request for each of the newest records. Raises TableNotFound.
    """
    if most < 1:
        raise InvalidRequest("most must be at least 1", found=most)
    found = look_at_tables(lake, name, lambda table, record: _runs_of(lake, table, record, most))
    return sorted(found, key=lambda one: (one.started or one.ended).timestamp(), reverse=True)[:most]


def _runs_of(lake: LakeCatalog, name: str, record: TableRecord, most: int) -> list[RunInfo]:
    found: list[RunInfo] = []
    for revision in record.revisions:
        keys = Revision(lake.store, record.folder, revision, lake.surroundings).keys
        found += [_describe(name, one) for one in list_records(lake.store, keys, most)]
    return found


def _describe(table: str, seen: SeenBeacon[RunRecord]) -> RunInfo:
    record, found = seen.record, seen.found
    if record is None:
        return RunInfo(
            table=table,
            run=found.name,
            owner=None,
            operation=None,
            state=UNREADABLE,
            started=None,
            ended=found.modified,
            problem=str(found.problem),
        )
    return RunInfo(
        table=table,
        run=record.job,
        owner=record.owner,
        operation=record.operation,
        state=_state(record.state, is_alive=seen.is_alive),
        started=show_moment(record.started_us),
        ended=show_moment(record.ended_us),
        seconds=record.duration_us / 1_000_000,
        asked=record.asked,
        workers=record.workers,
        sources=record.source_count,
        known=record.known_count,
        skipped=record.skipped_count,
        failed=record.failed_count,
        claimed=record.claimed_count,
        replaced=record.replaced_count,
        row_count=record.row_count,
        rejected_count=record.rejected_count,
        source_bytes=record.source_bytes,
        versions=record.versions,
        version_count=record.version_count,
        reason=record.reason,
    )


def _state(state: State, *, is_alive: bool) -> str:
    return LOST if state == "watching" and not is_alive else state
