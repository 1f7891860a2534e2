"""Does the care that a table's properties ask for, compaction and expiry, in one process at a time.

The process that does it holds the table's `care` job. Another process finds the job held, and leaves the work to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from underlay.change.update.edit import FileAccess
from underlay.errors import LeaseHeld
from underlay.index.root import Root
from underlay.maintain.compact.choose import CompactTargets
from underlay.maintain.compact.compact import Compacted, compact
from underlay.maintain.expire.expire import Expired, expire
from underlay.table.care_settings import DEFAULT_KEEP_VERSIONS, CareSettings, read_settings
from underlay.table.coordination.job import acquire
from underlay.table.open_table import OpenTable
from underlay.table.versions.snapshot import Snapshot

JOB = "care"
_HALF = 2
_LEAST_SURPLUS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Cared:
    """What was done for a table. `is_held`: another process is doing it, and nothing was done here."""

    table: str
    compacted: Compacted | None = None
    expired: Expired | None = None
    is_held: bool = False


def look_after(table: OpenTable, files: FileAccess, *, is_over: Callable[[], bool] = lambda: False) -> Cared:
    """Do what the table's properties ask for, if there is enough to do.

    `is_over` is asked between the steps; once it is true, the work ends there. Raises what compaction and expiry raise.
    """
    head = table.head()
    settings = read_settings(head.root.definition.properties)
    wants_compaction = _wants_compaction(settings, table.snapshot(head))
    wants_expiry = has_surplus(settings, head.root)
    if not wants_compaction and not wants_expiry:
        return Cared(table=table.name)

    try:
        with acquire(table, JOB, lambda held: held, note="compact and expire") as job:
            compacted = compact(job.table, files, is_over=is_over) if wants_compaction else None
            expired = expire(job.table, dry_run=False) if wants_expiry and not is_over() else None
    except LeaseHeld:
        return Cared(table=table.name, is_held=True)
    return Cared(table=table.name, compacted=compacted, expired=expired)


def has_surplus(settings: CareSettings, root: Root) -> bool:
    """Whether enough versions are left for an expiry to be worth it: half as many again as are to be kept."""
    if settings.keep_versions is None and settings.keep_for is None:
        return False
    keep = DEFAULT_KEEP_VERSIONS if settings.keep_versions is None else settings.keep_versions
    left = root.version + 1 - root.retention.begin
    return left > keep + max(keep // _HALF, _LEAST_SURPLUS)


def _wants_compaction(settings: CareSettings, snapshot: Snapshot) -> bool:
    if settings.compact_after_files is None or snapshot.root.file_count < settings.compact_after_files:
        return False
    target = CompactTargets.of(snapshot.definition).file_bytes
    count = 0
    for part in snapshot.parts():
        is_small = part.segment.files.size_bytes * _HALF < target
        count += int((is_small if part.is_removed is None else is_small & ~part.is_removed).sum())
    return count >= settings.compact_after_files
