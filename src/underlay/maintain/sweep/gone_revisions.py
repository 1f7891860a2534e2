"""Sweeps revisions that no table has: of dropped tables, replaced ones, and those that no catalog entry ever named.

The catalog forgets a dropped table or a replaced revision first, then its objects are deleted. A crash in between
leaves a revision that the catalog does not name, which the next sweep finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from underlay.errors import Damaged, NotFound, Unsupported
from underlay.index.catalog import CLOSED, Catalog, CatalogDelta, names_revision
from underlay.index.keys import CATALOG, is_revision_name
from underlay.maintain.sweep.delete_objects import Choose, Found, delete_chosen
from underlay.maintain.sweep.sweep_table import find_dead, list_kinds
from underlay.maintain.sweep.swept import Progress, SweptFolder
from underlay.table.care_settings import DEFAULT_KEEP_FOR, read_settings
from underlay.table.catalog.changes import CatalogChange, CatalogEdit
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.versions.environment import to_us
from underlay.table.versions.revision import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneRevision:
    """A revision to delete, now or later."""

    revision: Revision
    reason: str
    since_us: int | None
    """When it was dropped or replaced; None if no catalog entry names it."""
    forget: CatalogChange | None
    """The catalog change that forgets it."""


def find_gone(lake: LakeCatalog, catalog: Catalog) -> Iterator[GoneRevision]:
    """All such revisions, whatever their age. One request for each dataset and table that has a folder."""
    for folder, dropped in catalog.dropped.items():
        for revision in dropped.revisions:
            yield GoneRevision(
                revision=Revision(lake.store, folder, revision, lake.surroundings),
                reason="dropped",
                since_us=dropped.dropped_us,
                forget=_forget_dropped(folder, revision),
            )
    for name, record in catalog.tables.items():
        tagged = {tag.revision for tag in record.tags.values()}
        for revision, state in record.revisions.items():
            if state.state == CLOSED and revision not in tagged:
                closed = Revision(lake.store, record.folder, revision, lake.surroundings)
                since = _closed_us(closed)
                yield GoneRevision(
                    revision=closed, reason="replaced", since_us=since, forget=_forget_closed(name, revision)
                )
    for folder, revision in _unnamed(lake, catalog):
        yield GoneRevision(
            revision=Revision(lake.store, folder, revision, lake.surroundings),
            reason="never named",
            since_us=None,
            forget=None,
        )


def sweep_gone(
    lake: LakeCatalog,
    gone: GoneRevision,
    now: datetime,
    grace: timedelta,
    *,
    dry_run: bool,
    progress: Progress | None = None,
) -> SweptFolder:
    """Delete all our objects in the revision, once its retention is over and nobody uses it."""
    revision = gone.revision
    horizon = now - grace
    dead = find_dead(revision, grace)
    due = not dead.is_held and (gone.since_us is None or now - _keep_for(revision) > _moment(now, gone.since_us))
    if gone.since_us is None and due:
        # A revision that is being created has no catalog entry yet: so none of its objects may be young.
        due = all(found.modified < horizon for found in revision.store.list_objects(revision.keys.folder))

    def choose(some: list[Found]) -> list[Found]:
        return [one for one in some if one[2].modified < horizon] if due else []

    def forbid() -> Choose:
        if gone.forget is not None:
            lake.change(gone.forget)
        elif names_revision(lake.catalog(), revision.table_folder, revision.id):
            return lambda _: []  # the catalog names it by now
        return choose

    tally = delete_chosen(revision.store, list_kinds(revision), choose, None if dry_run else forbid, progress)
    return SweptFolder(
        folder=revision.place,
        table=None,
        reason=gone.reason,
        version=None,
        horizon=horizon,
        listed_count=tally.listed_count,
        object_count=tally.object_count,
        size_bytes=tally.size_bytes,
        kinds=dict(tally.kinds),
        examples=tuple(tally.examples),
    )


def _moment(now: datetime, moment_us: int) -> datetime:
    return now - timedelta(microseconds=to_us(now) - moment_us)


def _keep_for(revision: Revision) -> timedelta:
    """How long the table's versions are kept, by its last definition."""
    try:
        kept = read_settings(revision.head().definition.properties).keep_for
    except (Damaged, NotFound, Unsupported):
        kept = None
    return DEFAULT_KEEP_FOR if kept is None else kept


def _closed_us(revision: Revision) -> int:
    """When a revision was closed; far in the future if that cannot be known."""
    try:
        return revision.head().committed_us
    except NotFound:
        return 0  # an interrupted sweep deleted its roots
    except (Damaged, Unsupported):
        return 2**62


def _unnamed(lake: LakeCatalog, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Folders of revisions that the catalog does not name."""
    for dataset in lake.store.list_folders():
        if dataset.startswith("_") or dataset == CATALOG:
            continue
        for folder in lake.store.list_folders(dataset):
            for place in lake.store.list_folders(folder):
                revision = place.rpartition("/")[2]
                if is_revision_name(revision) and not names_revision(catalog, folder, revision):
                    yield folder, revision


def _forget_dropped(folder: str, revision: str) -> CatalogChange:
    def change(catalog: Catalog) -> CatalogEdit | None:
        record = catalog.dropped.get(folder)
        if record is None or revision not in record.revisions:
            return None
        left = tuple(one for one in record.revisions if one != revision)
        after = replace(record, revisions=left) if left else None
        return CatalogEdit(f"sweep {record.name}", CatalogDelta(dropped={folder: after}))

    return change


def _forget_closed(name: str, revision: str) -> CatalogChange:
    def change(catalog: Catalog) -> CatalogEdit | None:
        record = catalog.tables.get(name)
        if record is None or revision not in record.revisions or record.active == revision:
            return None
        if any(tag.revision == revision for tag in record.tags.values()):
            return None
        left = {one: state for one, state in record.revisions.items() if one != revision}
        return CatalogEdit(f"sweep {name}", CatalogDelta({name: replace(record, revisions=left)}))

    return change
