"""Rebuilds the registry from the store, whatever happened to the old one, by catching up from nothing.

All in one transaction, whose last row says which lake the registry belongs to: after a crash the old registry is
unchanged. At most a few hundred versions are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection, Table, delete, func, select, text

from underlay.errors import Inconsistent, Malformed, RegistryRefused, UnderlayError, Unsupported
from underlay.index.catalog import Catalog
from underlay.index.keys import RevisionKeys
from underlay.registry.database.database import Database
from underlay.registry.database.database_errors import patiently
from underlay.registry.database.migration import check_shape, migrate, prepare, recreate, schema_state
from underlay.registry.database.schema import (
    FILE_METADATA,
    MIRRORED,
    NONE,
    PHYSICAL_TABLES,
    REVISIONS,
    SEGMENTS,
    SOURCES,
    VERSIONS,
)
from underlay.registry.mirror.apply import insert_rows
from underlay.registry.mirror.apply_catalog import write_lake, write_mapping
from underlay.registry.mirror.catch_up import Gap, catch_up, catch_up_all
from underlay.registry.mirror.fold import Row
from underlay.registry.mirror.holders import read_listed
from underlay.registry.mirror.read_versions import Listing, ahead, list_revision, readers
from underlay.store.store import Store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.versions.links import missing_object


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreProgress:
    """The progress of a restore."""

    revision_count: int
    revisions_done: int
    versions_done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a registry holds after a restore."""

    table_count: int
    revision_count: int
    version_count: int
    segment_count: int
    """The number of rows: a segment that was removed and restored counts again, and so does a file."""
    file_count: int
    source_count: int


OnProgress = Callable[[RestoreProgress], None]


def restore(database: Database, store: Store, progress: OnProgress | None = None) -> Restored:
    """Rebuild the registry. An older schema is migrated first, malformed tables are created again, and a SQLite file
    that is damaged, or cannot be repaired otherwise, is replaced.

    Raises RegistryRefused when another program's tables are in the way, Unsupported for a newer release's registry, and
    Damaged for a root, segment or page of the store that is missing or cannot be read.
    """
    ways: list[Callable[[Database], None]] = [_make_ready, recreate]
    if not database.is_shared:
        ways.append(_replace_file)
    while True:
        make_ready = ways.pop(0)
        try:
            make_ready(database)
            return restore_rows(database, store, progress)
        except (Malformed, Inconsistent, Unsupported) as error:
            if not ways or not _is_damage(error, database):
                raise
            if isinstance(error, Malformed):
                del ways[:-1]


def _is_damage(error: UnderlayError, database: Database) -> bool:
    """Whether the database, and not the store or the release, is at fault."""
    if error.place != database.shown or isinstance(error, RegistryRefused):
        return False
    return not isinstance(error, Unsupported) or not schema_state(database).is_newer


def _make_ready(database: Database) -> None:
    state = schema_state(database)
    if state.current is None:
        recreate(database)  # a registry's tables may exist, and only the record of its schema be lost
    elif state.current != state.newest:
        migrate(database)
    check_shape(database)


def _replace_file(database: Database) -> None:
    database.delete_file()
    prepare(database)


def restore_rows(database: Database, store: Store, progress: OnProgress | None = None) -> Restored:
    """Rebuild the rows of a registry whose tables exist, then apply what was committed meanwhile.

    Raises what `fill` raises; then, as after a crash, the registry is unchanged.
    """

    def rebuild() -> None:
        with patient.write() as connection:
            fill(connection, store, progress)

    with closing(database.patient()) as patient:
        patiently(rebuild)
        catch_up_all(patient, store)
        with patient.read() as connection:
            return _count_rows(connection)


def fill(connection: Connection, store: Store, progress: OnProgress | None = None) -> None:
    """Replace all rows that mirror the store, in the caller's transaction.

    Raises Damaged for a root, segment or page that cannot be read, and for a root that is missing.
    """
    catalog = LakeCatalog(store).catalog()
    _keep_writers_out(connection)
    for table in MIRRORED:
        connection.execute(delete(table))
    write_mapping(connection, catalog)
    places = _places(catalog)
    listings: list[tuple[str, Listing]] = []
    told = RestoreProgress(revision_count=len(places), revisions_done=0, versions_done=0)
    with ThreadPoolExecutor(readers(store)) as pool:
        before = NONE
        for gap, applied in catch_up(pool, lambda work: work(connection), store, _gaps(pool, store, places, listings)):
            is_done = applied == gap.newest
            told = replace(
                told,
                revisions_done=told.revisions_done + is_done,
                versions_done=told.versions_done + applied - before,
            )
            before = NONE if is_done else applied
            if progress is not None:
                progress(told)
        for rows in ahead(pool, [partial(_read_listed, store, *listed) for listed in listings]):
            for table, some in rows:
                insert_rows(connection, table, some)
    write_lake(connection, catalog, store.url)


def _keep_writers_out(connection: Connection) -> None:
    """Lock out other followers; readers see the old rows. On SQLite the transaction does this anyway.

    The tables are locked in the order in which others write them.
    """
    if connection.dialect.name == "postgresql":
        names = ", ".join(table.name for table in MIRRORED)
        connection.execute(text(f"LOCK TABLE {names} IN EXCLUSIVE MODE"))


def _count_rows(connection: Connection) -> Restored:
    """What the registry holds. One statement."""
    counted = (PHYSICAL_TABLES, REVISIONS, VERSIONS, SEGMENTS, FILE_METADATA, SOURCES)
    numbers = [select(func.count()).select_from(table).scalar_subquery() for table in counted]
    tables, revisions, versions, segments, files, sources = connection.execute(select(*numbers)).one()
    return Restored(
        table_count=tables,
        revision_count=revisions,
        version_count=versions,
        segment_count=segments,
        file_count=files,
        source_count=sources,
    )


def _places(catalog: Catalog) -> list[tuple[str, str]]:
    """Folder and name of every revision in the catalog."""
    living = [(table.folder, revision) for table in catalog.tables.values() for revision in table.revisions]
    gone = [(folder, revision) for folder, table in catalog.dropped.items() for revision in table.revisions]
    return [*living, *gone]


def _gaps(
    pool: Executor, store: Store, places: list[tuple[str, str]], listings: list[tuple[str, Listing]]
) -> Iterator[Gap]:
    """All versions of all revisions. The listings' other objects are kept in `listings`."""
    found = ahead(pool, [partial(_list, store, RevisionKeys.of(*place)) for place in places])
    for (folder, revision), listing in zip(places, found, strict=True):
        listings.append((revision, listing))
        yield Gap(folder=folder, revision=revision, head=NONE, newest=listing.root_count - 1)


def _list(store: Store, keys: RevisionKeys) -> Listing:
    listing = list_revision(store, keys)
    if not listing.root_count:
        raise missing_object(keys.root(0))
    return listing


def _read_listed(store: Store, revision: str, listing: Listing) -> list[tuple[Table, list[Row]]]:
    return list(read_listed(store, revision, listing))
