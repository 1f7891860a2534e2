"""Vacuum: compact what is worth it, expire old versions, and sweep what is then unreferenced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from underlay.change.update.edit import FileAccess
from underlay.maintain.compact.compact import Compacted, compact
from underlay.maintain.expire.expire import Expired, expire
from underlay.maintain.sweep.sweep_lake import DEFAULT_GRACE, sweep_lake, sweep_one
from underlay.maintain.sweep.sweep_table import check_table
from underlay.maintain.sweep.swept import Swept
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.open_table import OpenTable
from underlay.values.duration import read_duration

VacuumProgress = Callable[[int, int], None]
"""Called with the finished and the total amount of the current step's work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumRules:
    """The age limits for what is deleted; None leaves them to the table's properties."""

    older_than: str | timedelta | None = None
    keep: int | None = None
    grace: str | timedelta = DEFAULT_GRACE


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuumed:
    """What a vacuum did, or would do. A dry run does not know what its own compaction would leave to delete."""

    is_dry_run: bool
    compacted: tuple[Compacted, ...]
    """One result for each table."""
    expired: tuple[Expired, ...]
    swept: Swept

    @property
    def size_bytes(self) -> int:
        """Bytes that were freed, or would be now."""
        return self.swept.size_bytes + sum(one.size_bytes for one in self.expired)


def vacuum_table(
    table: OpenTable,
    files: FileAccess,
    rules: VacuumRules,
    *,
    dry_run: bool = True,
    progress: VacuumProgress | None = None,
) -> Vacuumed:
    """Vacuum the active revision of one table. Raises, before anything is done, for what a sweep would refuse."""
    check_table(table, read_duration(rules.grace, "grace"))
    compacted, expired = _look_after(table, files, rules, dry_run=dry_run, progress=progress)
    swept = sweep_one(table, grace=rules.grace, dry_run=dry_run, progress=progress)
    return Vacuumed(is_dry_run=dry_run, compacted=(compacted,), expired=(expired,), swept=swept)


def vacuum_lake(
    lake: LakeCatalog,
    open_table: Callable[[str], OpenTable],
    files: FileAccess,
    rules: VacuumRules,
    *,
    dry_run: bool = True,
    progress: VacuumProgress | None = None,
) -> Vacuumed:
    """Vacuum every table of a lake, and what dropped tables left."""
    tables = [open_table(name) for name in sorted(lake.catalog().tables)]
    for table in tables:
        check_table(table, read_duration(rules.grace, "grace"))
    done = [_look_after(table, files, rules, dry_run=dry_run, progress=progress) for table in tables]
    swept = sweep_lake(lake, open_table, grace=rules.grace, dry_run=dry_run, progress=progress)
    return Vacuumed(
        is_dry_run=dry_run,
        compacted=tuple(compacted for compacted, _ in done),
        expired=tuple(expired for _, expired in done),
        swept=swept,
    )


def _look_after(
    table: OpenTable, files: FileAccess, rules: VacuumRules, *, dry_run: bool, progress: VacuumProgress | None
) -> tuple[Compacted, Expired]:
    compacted = compact(table, files, dry_run=dry_run, progress=progress)
    expired = expire(table, older_than=rules.older_than, keep=rules.keep, dry_run=dry_run, progress=progress)
    return compacted, expired
