"""The registry rebuilt from the store: catalog, roots, the segments that they added, and source pages.

All in one transaction, which ends with the row that says whose registry it is: after a crash the old registry is as it
was. At no time are more than some hundred versions in memory, besides the rows of one insert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection, delete, func, select, text

from underlay.index.catalog import Catalog
from underlay.index.keys import RevisionKeys
from underlay.index.outline import FileFacts
from underlay.registry.database.database import Database
from underlay.registry.database.database_errors import patiently
from underlay.registry.database.schema import (
    FILE_METADATA,
    JOBS,
    LEASES,
    MIRRORED,
    PHYSICAL_TABLES,
    REVISIONS,
    RUNS,
    SEGMENTS,
    SOURCES,
    VERSIONS,
)
from underlay.registry.mirror.apply import insert_rows, live_files, move_heads, write_batches
from underlay.registry.mirror.apply_catalog import apply_catalog, write_lake, write_mapping
from underlay.registry.mirror.fold import Mirrored, RegistryDelta, Row, VersionStep, fold
from underlay.registry.mirror.holders import read_jobs, read_leases, read_runs
from underlay.registry.mirror.read_versions import READERS, Listing, ahead, list_revision, read_step, readers
from underlay.registry.mirror.roll_forward import roll_forward
from underlay.store.store import Store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.versions.chain import missing_object

_READ_AT_ONCE = 8
"""Versions that one thread reads in a row: to hand over each on its own takes as long as to read it."""
_DEPTH = 4 * READERS
_FOLDED_AT_ONCE = 1000
"""Versions of one revision."""
_WRITTEN_AT_ONCE = 10_000
"""Rows, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreProgress:
    """How far a restore is."""

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
    """Rows: a segment that came back counts again; files too."""
    file_count: int
    source_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    """Some versions of a revision, in order; with the last ones the rows of its jobs, leases and runs."""

    revision: str
    steps: list[VersionStep]
    is_last: bool
    jobs: list[Row]
    leases: list[Row]
    runs: list[Row]


OnProgress = Callable[[RestoreProgress], None]
OnRevision = Callable[[int, int], None]
"""Told how many of how many revisions are done."""


def restore(database: Database, store: Store, *, progress: OnProgress | None = None) -> Restored:
    """Rebuild the registry in `database`, whose tables are there, then apply what was committed meanwhile.

    Raises what `rebuild` raises; then, as after a crash, the registry is as it was.
    """
    with closing(database.patient()) as patient:
        patiently(lambda: _rebuild(patient, store, progress))
        catch_up(patient, store)
        with patient.read() as connection:
            return count_rows(connection)


def catch_up(database: Database, store: Store, progress: OnRevision | None = None) -> None:
    """Apply what the store has and the registry lacks, of the catalog and of every revision that it names.

    One request for each revision, and for each version that is new.
    """
    known = patiently(lambda: _apply_catalog(database, store))
    with ThreadPoolExecutor(readers(store)) as pool:
        tasks = [partial(_has_grown, store, *row) for row in known]
        grown = [row for row, has_grown in zip(known, ahead(pool, tasks, _DEPTH), strict=True) if has_grown]
    for done, (folder, revision, _) in enumerate(grown, start=1):
        patiently(partial(roll_forward, database, store, folder, revision))
        if progress is not None:
            progress(done, len(grown))


def _rebuild(database: Database, store: Store, progress: OnProgress | None) -> None:
    with database.write() as connection:
        rebuild(connection, store, progress=progress)


def _apply_catalog(database: Database, store: Store) -> Sequence[tuple[str, str, int]]:
    """Apply the newest entry; what is known of each revision then."""
    catalog = LakeCatalog(store).catalog()
    with database.write() as connection:
        apply_catalog(connection, catalog, store.url)
        asked = select(REVISIONS.c.folder, REVISIONS.c.revision, REVISIONS.c.head)
        return [(row.folder, row.revision, row.head) for row in connection.execute(asked)]


def rebuild(connection: Connection, store: Store, *, progress: OnProgress | None = None) -> None:
    """Replace all that mirrors the store, in the caller's transaction.

    Raises Damaged for a root, segment or page that cannot be read, and for a root that is missing.
    """
    catalog = LakeCatalog(store).catalog()
    _keep_writers_out(connection)
    for table in MIRRORED:
        connection.execute(delete(table))
    write_mapping(connection, catalog)
    places = _places(catalog)
    told = RestoreProgress(revision_count=len(places), revisions_done=0, versions_done=0)
    writer = _Writer(connection)
    with ThreadPoolExecutor(readers(store)) as pool:
        for chunk in _read(pool, store, places):
            writer.take(chunk)
            done = told.revisions_done + chunk.is_last
            told = replace(told, revisions_done=done, versions_done=told.versions_done + len(chunk.steps))
            if progress is not None:
                progress(told)
    writer.flush()
    write_lake(connection, catalog, store.url)


def _keep_writers_out(connection: Connection) -> None:
    """Nobody else follows meanwhile; readers read what was there. On SQLite the transaction sees to that.

    The tables are locked one by one in the order in which others write them.
    """
    if connection.dialect.name == "postgresql":
        names = ", ".join(table.name for table in MIRRORED)
        connection.execute(text(f"LOCK TABLE {names} IN EXCLUSIVE MODE"))


def count_rows(connection: Connection) -> Restored:
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


def _has_grown(store: Store, folder: str, revision: str, head: int) -> bool:
    return store.head(RevisionKeys.of(folder, revision).root(head + 1)) is not None


def _places(catalog: Catalog) -> list[tuple[str, RevisionKeys]]:
    """Every revision that the catalog names, and its keys."""
    living = [(table.folder, revision) for table in catalog.tables.values() for revision in table.revisions]
    gone = [(folder, revision) for folder, table in catalog.dropped.items() for revision in table.revisions]
    return [(revision, RevisionKeys.of(folder, revision)) for folder, revision in (*living, *gone)]


def _read(pool: Executor, store: Store, places: Iterable[tuple[str, RevisionKeys]]) -> Iterator[_Chunk]:
    """All versions of all revisions, revision by revision."""
    listings = ahead(pool, [partial(_list, store, revision, keys) for revision, keys in places], _DEPTH)
    tasks = (
        partial(_read_chunk, store, revision, keys, listing, begin)
        for revision, keys, listing in listings
        for begin in range(0, listing.root_count, _READ_AT_ONCE)
    )
    return ahead(pool, tasks, _DEPTH)


def _list(store: Store, revision: str, keys: RevisionKeys) -> tuple[str, RevisionKeys, Listing]:
    listing = list_revision(store, keys)
    if not listing.root_count:
        raise missing_object(keys.root(0))
    return revision, keys, listing


def _read_chunk(store: Store, revision: str, keys: RevisionKeys, listing: Listing, begin: int) -> _Chunk:
    end = min(begin + _READ_AT_ONCE, listing.root_count)
    steps = []
    for version in range(begin, end):
        step = read_step(store, keys, version)
        if step is None:
            raise missing_object(keys.root(version))
        steps.append(step)
    is_last = end == listing.root_count
    return _Chunk(
        revision=revision,
        steps=steps,
        is_last=is_last,
        jobs=read_jobs(store, revision, listing.intents) if is_last else [],
        leases=read_leases(store, revision, listing.leases) if is_last else [],
        runs=read_runs(store, revision, listing.records) if is_last else [],
    )


class _Writer:
    """Folds versions into rows, and writes rows of many revisions at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._steps: list[VersionStep] = []
        self._before = Mirrored()
        self._pending: dict[str, RegistryDelta] = {}
        self._row_count = 0

    def take(self, chunk: _Chunk) -> None:
        """The next versions: of the revision that the last ones were of, or of another after its last ones."""
        self._steps += chunk.steps
        if chunk.is_last or len(self._steps) >= _FOLDED_AT_ONCE:
            self._fold(chunk.revision)
        if chunk.is_last:
            self._before = Mirrored()
            insert_rows(self._connection, JOBS, chunk.jobs)
            insert_rows(self._connection, LEASES, chunk.leases)
            insert_rows(self._connection, RUNS, chunk.runs)

    def flush(self) -> None:
        """Write what was taken."""
        batches = list(self._pending.values())
        if batches:
            move_heads(self._connection, batches)
            write_batches(self._connection, batches)
        self._pending, self._row_count = {}, 0

    def _fold(self, revision: str) -> None:
        if not self._steps:
            return
        batch = fold(revision, self._before, self._steps)
        self._steps = []
        if revision in self._pending:
            self.flush()  # rows that this batch ends must be there
        self._pending[revision] = batch
        self._row_count += batch.row_count
        self._before = batch.after(lambda: self._live_files(revision))
        if self._row_count >= _WRITTEN_AT_ONCE:
            self.flush()

    def _live_files(self, revision: str) -> Mapping[str, FileFacts]:
        self.flush()
        return live_files(self._connection, revision)
