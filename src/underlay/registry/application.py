"""What was seen in the store, applied to the registry: one transaction, unless the registry lacks older versions."""

from __future__ import annotations

from sqlalchemy import select

from underlay.errors import NotFound, RegistryRefused
from underlay.index.keys import RevisionKeys, catalog_key
from underlay.index.outline import decode_outline, outline_of
from underlay.registry.apply import mirrored
from underlay.registry.catalog import apply_catalog
from underlay.registry.database import Database
from underlay.registry.fetch import complete
from underlay.registry.fold import RESTORE_HINT, Step
from underlay.registry.follower import Pending, Seen
from underlay.registry.forward import apply_steps, roll_forward
from underlay.registry.migration import prepare
from underlay.registry.schema import LAKE
from underlay.store.store import Store
from underlay.table.catalog import Catalog, decode_catalog


class Application:
    """Applies to one database what one store says. For one thread."""

    def __init__(self, database: Database, store: Store) -> None:
        self._database = database
        self._store = store
        self._is_ready = False
        self._catalog: Catalog | None = None
        self._proven: set[str] = set()
        self._unnamed: dict[str, Seen] = {}
        """Of revisions that no entry of the catalog names yet."""

    def close(self) -> None:
        """Close connections; what is applied next opens new ones."""
        self._database.close()

    def apply(self, pending: Pending) -> dict[str, Seen]:
        """Apply it, but for what the registry lacks older versions of the first time: that is returned.

        Raises RegistryRefused when the registry tells of another history.
        """
        if not self._is_ready:
            prepare(self._database)
            check_history(self._database, self._store)
            self._is_ready = True
        catalog = pending.catalog or self._catalog
        named = _revisions_of(catalog) if catalog is not None else frozenset()
        waiting = self._unnamed | pending.seen
        seen = [one for one in waiting.values() if one.revision in named]
        steps = {one.revision: self._steps(one) for one in seen}
        writes = [read() for read in pending.extras]
        with self._database.write() as connection:
            if pending.catalog is not None:
                apply_catalog(connection, pending.catalog, self._store.url)
            heads = {
                one.revision: apply_steps(connection, one.folder, one.revision, steps[one.revision]) for one in seen
            }
            for write in writes:
                write(connection)
        self._catalog = catalog
        self._unnamed = {name: one for name, one in waiting.items() if name not in named}
        return {one.revision: one for one in seen if not self._catch_up(one, heads[one.revision])}

    def _steps(self, seen: Seen) -> list[Step]:
        keys = RevisionKeys.of(seen.folder, seen.revision)
        return [complete(self._store, keys, outline_of(root)) for root in seen.roots]

    def _catch_up(self, seen: Seen, head: int) -> bool:
        """Whether the registry, which has this head, has what was seen; the second time it is brought there."""
        newest = seen.roots[-1].version
        if head < newest:
            if not seen.is_late:
                seen.is_late = True
                return False
            roll_forward(self._database, self._store, seen.folder, seen.revision, newest)
        elif head > newest and seen.revision not in self._proven:
            self._prove_head(seen)
        self._proven.add(seen.revision)
        return True

    def _prove_head(self, seen: Seen) -> None:
        """Refuse a registry that is ahead of the store: the store was brought back from an older copy."""
        with self._database.read() as connection:
            known = mirrored(connection, seen.revision)
        key = RevisionKeys.of(seen.folder, seen.revision).root(known.head)
        try:
            found = decode_outline(self._store.get(key)[0]).commit_id
        except NotFound:
            found = None
        if found != known.head_id:
            raise _ahead(self._store.place_of(key), known.head_id, found)


def check_history(database: Database, store: Store) -> None:
    """Refuse a registry whose entry of the catalog is not in the store. One statement, one request."""
    with database.read() as connection:
        known = connection.execute(select(LAKE)).one_or_none()
    if known is None:
        return
    key = catalog_key(known.number)
    try:
        found = decode_catalog(store.get(key)[0]).commit_id
    except NotFound:
        found = None
    if found != known.commit_id:
        raise _ahead(store.place_of(key), known.commit_id, found)


def _revisions_of(catalog: Catalog) -> frozenset[str]:
    living = (name for table in catalog.tables.values() for name in table.revisions)
    return frozenset([*living, *(name for table in catalog.dropped.values() for name in table.revisions)])


def _ahead(place: str, known: str | None, found: str | None) -> RegistryRefused:
    return RegistryRefused(
        "the registry knows a commit that the store does not have",
        place=place,
        expected=known,
        found=found or "nothing",
        hint="It belongs to another lake, or the store was brought back from an older copy. Look at the lake, then: "
        + RESTORE_HINT,
    )
