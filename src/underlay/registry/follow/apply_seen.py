"""Applies to the registry what was seen in the store, in one transaction unless the registry lacks older versions."""

from __future__ import annotations

from underlay.errors import Inconsistent, RegistryRefused
from underlay.index.catalog import Catalog, names_revision
from underlay.index.keys import RevisionKeys
from underlay.index.outline import outline_of
from underlay.registry.database.database import Database
from underlay.registry.database.migration import prepare
from underlay.registry.follow.follower import Pending, SeenRoots
from underlay.registry.mirror.apply import apply_steps, mirrored
from underlay.registry.mirror.apply_catalog import apply_catalog
from underlay.registry.mirror.catch_up import catch_up_revision
from underlay.registry.mirror.check_history import check_head, check_history
from underlay.registry.mirror.fold import VersionStep
from underlay.registry.mirror.read_versions import complete
from underlay.store.store import Store
from underlay.table.catalog.lake import LakeCatalog


class Application:
    """Applies one store's state to one database. For one thread."""

    def __init__(self, database: Database, store: Store) -> None:
        self._database = database
        self._store = store
        self._is_ready = False
        self._catalog: Catalog | None = None
        self._proven: set[str] = set()

    def apply(self, pending: Pending) -> dict[str, SeenRoots]:
        """Apply what was seen. Returns the part that cannot be applied yet, as the registry or the catalog lacks
        something before it.

        Raises RegistryRefused when the registry holds another history.
        """
        was_ready = self._is_ready
        try:
            return self._apply(pending)
        except RegistryRefused:
            raise
        except Inconsistent:
            if not was_ready:
                raise
        self._is_ready = False  # somebody deleted the file, or dropped the tables: create them again
        return self._apply(pending)

    def _apply(self, pending: Pending) -> dict[str, SeenRoots]:
        if not self._is_ready:
            prepare(self._database)
            check_history(self._database, self._store)
            self._is_ready = True
        seen, unnamed, catalog = self._sort(pending)
        steps = {one.revision: self._steps(one) for one in seen}
        writes = [read() for read in pending.extras]
        with self._database.write() as connection:
            # Also when the entry is known: meanwhile the file may have become another lake's.
            apply_catalog(connection, catalog, self._store.url)
            heads = {
                one.revision: apply_steps(connection, one.folder, one.revision, steps[one.revision]) for one in seen
            }
            for write in writes:
                write(connection)
        self._catalog = catalog
        behind = [one for one in seen if not self._catch_up(one, heads[one.revision])]
        return {one.revision: one for one in (*behind, *unnamed)}

    def _sort(self, pending: Pending) -> tuple[list[SeenRoots], list[SeenRoots], Catalog]:
        """What can be applied; what a coming catalog entry may name; and the newest entry.

        A revision that the newest entry still does not name the second time never became part of a table.
        """
        catalog = pending.catalog or self._catalog
        late = [one for one in pending.seen.values() if one.is_late]
        if catalog is None or not all(names_revision(catalog, one.folder, one.revision) for one in late):
            catalog = LakeCatalog(self._store).catalog()
        named = {one.revision for one in pending.seen.values() if names_revision(catalog, one.folder, one.revision)}
        unnamed = [one for one in pending.seen.values() if one.revision not in named and not one.is_late]
        for one in unnamed:
            one.is_late = True
        named_ones = (one for one in pending.seen.values() if one.revision in named)
        # Always in the same order, so that two followers do not deadlock.
        return sorted(named_ones, key=lambda one: one.revision), unnamed, catalog

    def _steps(self, seen: SeenRoots) -> list[VersionStep]:
        keys = RevisionKeys.of(seen.folder, seen.revision)
        return [complete(self._store, keys, outline_of(root)) for root in seen.roots]

    def _catch_up(self, seen: SeenRoots, head: int) -> bool:
        """Whether the registry, whose head is `head`, has what was seen. If it lacks versions for the second time,
        applies them.
        """
        newest = seen.roots[-1].version
        if head < newest:
            if not seen.is_late:
                seen.is_late = True
                return False
            catch_up_revision(self._database, self._store, seen.folder, seen.revision, newest)
        elif head > newest and seen.revision not in self._proven:
            self._prove_head(seen)
        self._proven.add(seen.revision)
        return True

    def _prove_head(self, seen: SeenRoots) -> None:
        with self._database.read() as connection:
            known = mirrored(connection, seen.revision)
        check_head(self._store, seen.folder, seen.revision, known.head, known.head_id)
