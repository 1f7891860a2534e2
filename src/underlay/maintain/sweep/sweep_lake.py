"""Sweeps a lake: every table, what is left of dropped tables and replaced revisions, and small objects left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from underlay.index.keys import ObjectKind
from underlay.maintain.sweep.delete_objects import Found, delete_chosen
from underlay.maintain.sweep.gone_revisions import find_gone, sweep_gone
from underlay.maintain.sweep.old_exports import sweep_exports
from underlay.maintain.sweep.refusals import check_alone
from underlay.maintain.sweep.sweep_table import check_table, sweep_table
from underlay.maintain.sweep.swept import Progress, Swept, SweptFolder, summed
from underlay.store.probe import FOLDER as PROBE
from underlay.store.store import Store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.open_table import OpenTable
from underlay.values.duration import read_duration

DEFAULT_GRACE = "1d"
_LEFT_BEHIND = ("_clock", PROBE)
"""Folders of short-lived objects, which a process that dies leaves behind."""

Open = Callable[[str], OpenTable]


def sweep_lake(
    lake: LakeCatalog,
    open_table: Open,
    *,
    grace: str | timedelta = DEFAULT_GRACE,
    dry_run: bool = True,
    progress: Progress | None = None,
) -> Swept:
    """Delete our objects in the lake that nothing references and that are older than the grace period.

    Raises InvalidRequest and Inconsistent for a dangerous sweep, before anything is deleted; NotFound without a lake.
    """
    span = read_duration(grace, "grace")
    catalog = lake.catalog()
    check_alone(lake.store)
    tables = {name: open_table(name) for name in sorted(catalog.tables)}
    for table in tables.values():
        check_table(table, span)
    now = lake.store.now()

    def swept() -> Iterator[SweptFolder]:
        for table in tables.values():
            yield sweep_table(table, span, dry_run=dry_run, progress=progress)
        for gone in list(find_gone(lake, catalog)):
            yield sweep_gone(lake, gone, now, span, dry_run=dry_run, progress=progress)
        yield from sweep_exports(lake.store, frozenset(tables), now, span, dry_run=dry_run)
        for folder in _LEFT_BEHIND:
            yield _sweep_left(lake.store, folder, now - span, dry_run=dry_run)

    return summed(swept(), is_dry_run=dry_run)


def sweep_one(
    table: OpenTable,
    *,
    grace: str | timedelta = DEFAULT_GRACE,
    dry_run: bool = True,
    progress: Progress | None = None,
) -> Swept:
    """The same for the active revision of one table."""
    span = read_duration(grace, "grace")
    check_alone(table.lake.store)
    return summed([sweep_table(table, span, dry_run=dry_run, progress=progress)], is_dry_run=dry_run)


def _sweep_left(store: Store, folder: str, horizon: datetime, *, dry_run: bool) -> SweptFolder:
    listed: Iterator[Found] = ((ObjectKind.FOREIGN, "", found) for found in store.list_objects(folder))

    def choose(some: list[Found]) -> list[Found]:
        return [one for one in some if one[2].modified < horizon]

    tally = delete_chosen(store, listed, choose, None if dry_run else lambda: choose, None)
    return SweptFolder(
        folder=folder,
        table=None,
        reason="left behind",
        version=None,
        horizon=horizon,
        listed_count=tally.listed_count,
        object_count=tally.object_count,
        size_bytes=tally.size_bytes,
        kinds={folder: tally.object_count} if tally.object_count else {},
        examples=tuple(tally.examples),
    )
