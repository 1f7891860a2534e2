"""Catches the registry up with the store: reads the versions that it lacks in parallel, and applies them in order.

The background follower, `underlay registry follow`, and a restore, which catches up from nothing, all end here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection, select

from underlay.errors import Unavailable
from underlay.index.keys import RevisionKeys
from underlay.registry.database.database import Database
from underlay.registry.database.database_errors import patiently, retryable
from underlay.registry.database.migration import prepare
from underlay.registry.database.schema import NONE, REVISIONS
from underlay.registry.mirror.apply import apply_steps, mirrored
from underlay.registry.mirror.apply_catalog import apply_catalog
from underlay.registry.mirror.check_history import find_problem
from underlay.registry.mirror.fold import VersionStep
from underlay.registry.mirror.holders import follow_runs
from underlay.registry.mirror.read_versions import ahead, read_step, read_whole_step, readers
from underlay.runtime.threads import side_by_side
from underlay.store.store import Store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.versions.environment import Surroundings
from underlay.table.versions.links import missing_object
from underlay.table.versions.revision import Revision

_READ_AT_ONCE = 8
"""The number of versions that one thread reads in a row: handing each over separately takes as long as reading it."""
_APPLIED_AT_ONCE = 64
"""Versions of one revision that are applied in one transaction; a run of tombstones at the end may add more."""

Transact = Callable[[Callable[[Connection], int]], int]
"""Runs work in a transaction."""
OnRevision = Callable[[int, int], None]
"""Called with the number of finished revisions, and of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Versions of a revision that the registry lacks: those after `head`, up to `newest`."""

    folder: str
    revision: str
    head: int
    newest: int


def catch_up(pool: Executor, transact: Transact, store: Store, gaps: Iterable[Gap]) -> Iterator[tuple[Gap, int]]:
    """Close the gaps one after another. Yields, after each transaction, the gap and the version that was applied last.

    Raises Inconsistent for a version that the store lacks, RegistryRefused when the registry holds another history.
    """
    for gap, steps in _gathered(_after_tombstones(store, _read(pool, store, gaps))):
        _apply(transact, gap, steps)
        yield gap, steps[-1].outline.version


def catch_up_revision(database: Database, store: Store, folder: str, revision: str, newest: int | None = None) -> int:
    """Apply what the registry lacks of one revision, up to `newest` if given. Returns the new head.

    One statement and one request when nothing is new. Versions are read one by one: this runs in parallel with commits,
    whose requests would otherwise wait behind those for hundreds of versions, for example after the registry's server
    was down.
    """
    with database.read() as connection:
        head = mirrored(connection, revision).head
    if newest is None:
        gap = find_gap(store, folder, revision, head)
    else:
        gap = Gap(folder=folder, revision=revision, head=head, newest=newest)
    with ThreadPoolExecutor(1) as pool:
        for _, applied in catch_up(pool, partial(_transact, database), store, [gap]):
            head = applied
    return head


def catch_up_all(database: Database, store: Store, progress: OnRevision | None = None) -> int:
    """Apply what the registry lacks of the catalog and of every revision that it names. Returns how many versions.

    One request for each revision, and for each version that is new.
    """
    known = patiently(partial(_apply_newest_catalog, database, store))
    found = side_by_side(lambda row: find_gap(store, *row), known, readers(store))
    gaps = [gap for gap in found if gap.newest > gap.head]
    done = 0

    def transact(work: Callable[[Connection], int]) -> int:
        return patiently(partial(_transact, database, work))

    with ThreadPoolExecutor(readers(store)) as pool:
        for gap, applied in catch_up(pool, transact, store, gaps):
            done += applied == gap.newest
            if progress is not None:
                progress(done, len(gaps))
    return sum(gap.newest - gap.head for gap in gaps)


def follow(database: Database, store: Store, progress: OnRevision | None = None) -> int:
    """Bring a registry up to date, whatever state its tables are in. Returns how many versions were applied.

    Three requests for each revision without new versions. Raises RegistryRefused for a registry of another history.
    """
    prepare(database)
    problem = find_problem(database, store)
    if problem is not None:
        raise problem
    count = catch_up_all(database, store, progress)
    follow_runs(database, store)
    return count


def find_gap(store: Store, folder: str, revision: str, head: int) -> Gap:
    """What a registry with this head lacks. One request if that is nothing."""
    newest = head
    if store.head(RevisionKeys.of(folder, revision).root(head + 1)) is not None:
        newest = Revision(store, folder, revision, Surroundings()).newest_version()
    return Gap(folder=folder, revision=revision, head=head, newest=newest)


def _apply_newest_catalog(database: Database, store: Store) -> list[tuple[str, str, int]]:
    """Apply the newest entry. Returns folder, name and head of every revision then in the registry."""
    catalog = LakeCatalog(store).catalog()
    with database.write() as connection:
        apply_catalog(connection, catalog, store.url)
        asked = select(REVISIONS.c.folder, REVISIONS.c.revision, REVISIONS.c.head)
        return [(row.folder, row.revision, row.head) for row in connection.execute(asked)]


def _transact(database: Database, work: Callable[[Connection], int]) -> int:
    with database.write() as connection:
        return work(connection)


def _apply(transact: Transact, gap: Gap, steps: list[VersionStep]) -> None:
    """Apply the versions in a transaction. If another process applied some of them first, apply the rest in another
    one.
    """
    head = NONE - 1
    while head < steps[-1].outline.version:
        now = transact(lambda connection: apply_steps(connection, gap.folder, gap.revision, steps))
        if now <= head:  # the registry lacks earlier versions that it had before
            raise retryable(
                Unavailable("another process is restoring the registry", place=gap.revision, hint="Try again.")
            )
        head = now


def _read(pool: Executor, store: Store, gaps: Iterable[Gap]) -> Iterator[tuple[Gap, list[VersionStep]]]:
    """The versions of all gaps, gap by gap and in order, some at a time."""
    return ahead(
        pool,
        (
            partial(_read_some, store, gap, begin)
            for gap in gaps
            for begin in range(gap.head + 1, gap.newest + 1, _READ_AT_ONCE)
        ),
    )


def _read_some(store: Store, gap: Gap, begin: int) -> tuple[Gap, list[VersionStep]]:
    keys = RevisionKeys.of(gap.folder, gap.revision)
    steps = []
    for version in range(begin, min(begin + _READ_AT_ONCE, gap.newest + 1)):
        step = read_step(store, keys, version)
        if step is None:
            raise missing_object(keys.root(version))
        steps.append(step)
    return gap, steps


def _after_tombstones(
    store: Store, read: Iterable[tuple[Gap, list[VersionStep]]]
) -> Iterator[tuple[Gap, list[VersionStep]]]:
    """The same, but a version that follows an expired one is read completely."""
    is_expired = False
    for gap, steps in read:
        for place, step in enumerate(steps):
            if is_expired and not step.outline.is_tombstone and step.everything is None:
                keys = RevisionKeys.of(gap.folder, gap.revision)
                steps[place] = read_whole_step(store, keys, step.outline.version)
            is_expired = step.outline.is_tombstone and step.outline.version < gap.newest
        yield gap, steps


def _gathered(read: Iterable[tuple[Gap, list[VersionStep]]]) -> Iterator[tuple[Gap, list[VersionStep]]]:
    """The same in larger parts, none of which ends with an expired version, since only the next version has its
    files.
    """
    gathered: list[VersionStep] = []
    for gap, steps in read:
        gathered += steps
        is_last = gathered[-1].outline.version == gap.newest
        while is_last and gathered and gathered[-1].outline.is_tombstone:
            gathered.pop()  # it was the newest version when we looked; the next catch-up finds a newer one
        if is_last or (len(gathered) >= _APPLIED_AT_ONCE and not gathered[-1].outline.is_tombstone):
            if gathered:
                yield gap, gathered
            gathered = []
