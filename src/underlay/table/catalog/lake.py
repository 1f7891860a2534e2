"""A lake, as seen by one process: its store and its catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from math import inf

from underlay.errors import Busy, Inconsistent, InvalidRequest, NotFound, UnderlayError
from underlay.index.catalog import (
    WHOLE_FORMAT,
    Catalog,
    CatalogEntry,
    catalog_after,
    decode_entry,
    encode_entry,
    entries_of,
    entry_after,
    put_together,
    whole_catalog,
)
from underlay.index.keys import CATALOG, CATALOG_HINT, catalog_key
from underlay.index.sealed_json import CommitIds
from underlay.runtime.locks import ProcessLock
from underlay.runtime.threads import REQUESTS
from underlay.store.probe import probe_store
from underlay.store.store import Store
from underlay.table.catalog.changes import CatalogChange
from underlay.table.versions.chain import NONE, Chain
from underlay.table.versions.environment import Surroundings, uuid7
from underlay.table.versions.links import ChainKeys, check_parent
from underlay.table.versions.publish import Lost
from underlay.table.versions.registry_protocol import Known, RegistryPort

Older = Mapping[int, Future[memoryview]]
"""Entries of the catalog that are being read, by number."""


class LakeCatalog:
    """The catalog of the lake in `store`. Safe for many threads."""

    def __init__(self, store: Store, surroundings: Surroundings | None = None) -> None:
        self.store = store
        self.surroundings = surroundings or Surroundings()
        keys = ChainKeys(folder=CATALOG, object=catalog_key, hint=CATALOG_HINT, noun="catalog entry")
        self._chain = Chain(store, keys, self.surroundings)
        self._lock = ProcessLock()
        self._newest: Catalog | None = None
        self._is_closed = False

    @property
    def registry(self) -> RegistryPort | None:
        """The lake's metadata database, if it has one."""
        return self.surroundings.registry

    @property
    def is_open(self) -> bool:
        """Whether this process knows an entry of the catalog."""
        with self._lock:
            return self._newest is not None

    def close(self) -> None:
        """Refuse all further use."""
        self._is_closed = True

    def check_open(self) -> None:
        """Raise InvalidRequest once the lake is closed."""
        if self._is_closed:
            raise InvalidRequest(
                "the lake is closed", place=self.store.url, hint="Open it again with underlay.connect."
            )

    def start_at(self, bound: Known) -> Callable[[], Catalog | None]:
        """Look for the newest entry, beginning at one that is said to exist. Returns at once a function that waits, and
        that returns None when the store does not have that one."""
        finish_chain = self._chain.start_at(bound, _read_id)
        # Besides the entry itself, read those that its mapping is likely assembled from: one round trip.
        older = self._start_reading(entries_of(bound.number, None)[1:])

        def finish() -> Catalog | None:
            data = finish_chain()
            if data is None:
                return None
            self._keep(self._put_together(self._decode(data, bound.number), None, older))
            return self.catalog(inf)

        return finish

    def initialise(self) -> Catalog:
        """Make a lake here unless there is one. Raises Unsupported on a store where commits would not be safe."""
        self.check_open()
        if self._chain.head() == NONE:
            probe_store(self.store)
            first = CatalogEntry(
                format=WHOLE_FORMAT,
                lake_id=uuid7(),
                number=0,
                commit_id=self.surroundings.new_commit_id(),
                parent_id=None,
                committed_us=self.surroundings.now_us(),
                operation="initialise",
            )
            self._chain.publish(0, encode_entry(first), first.commit_id, _read_id)
        return self.catalog()

    def catalog(self, max_staleness_seconds: float = 0.0) -> Catalog:
        """The mapping after the newest entry. One request when it is the one this process knows; else one more for each
        bit that was set in its number since, in parallel. Raises NotFound without a lake, and Inconsistent when the
        entry does not follow the one this process knows, or the one before it: R14."""
        self.check_open()
        number = self._chain.head(max_staleness_seconds)
        if number == NONE:
            raise NotFound("there is no lake here", place=self.store.url, hint='Make one with "underlay init".')
        with self._lock:
            known = self._newest
        if known is not None and known.number >= number:
            return known
        check = self._chain.start_link_check(number, None if known is None else _known(known))
        older = self._start_reading(
            [one for one in entries_of(number, None)[1:] if known is None or one > known.number]
        )
        newest = self._decode(self._chain.get(number), number)
        check(CommitIds(newest.commit_id, newest.parent_id))
        return self._keep(self._put_together(newest, known, older))

    def change(self, change: CatalogChange, *, commit_id: str | None = None) -> Catalog:
        """Publish the entry that `change` makes from the newest one, or after a lost race from the winner.

        A change that leaves the mapping as it is publishes nothing. Raises what `change` raises, and CommitUnknown.
        """
        own_id = commit_id or self.surroundings.new_commit_id()
        head = self.catalog()
        for attempt in range(self.surroundings.rebase_attempts):
            edit = change(head)
            if edit is None:
                return head
            entry = entry_after(
                head,
                *edit,
                commit_id=own_id,
                committed_us=max(self.surroundings.now_us(), head.committed_us + 1),
            )
            self._chain.start_base_check(_known(head), head.parent_id)()
            result = self._chain.publish(entry.number, encode_entry(entry), own_id, _read_id)
            if not isinstance(result, Lost):
                # When two processes finish one change, the entry in the store may have the other's bytes.
                published = entry if commit_id is None else self._decode(self._chain.get(entry.number), entry.number)
                return self._keep(self._follow(head, published), is_own=True)
            winner = self._decode(result.winner, entry.number)
            check_parent(self._chain.keys, winner.number, CommitIds(winner.commit_id, winner.parent_id), _known(head))
            self._keep(self._follow(head, winner))
            # Wait before reading the head, which would be stale after the wait.
            self.surroundings.back_off(min(attempt, 4))
            head = self.catalog()
        raise Busy("too many other changes of the catalog came first", place=self.store.url, hint="Try again later.")

    def _keep(self, catalog: Catalog, *, is_own: bool = False) -> Catalog:
        with self._lock:
            known = self._newest
            if known is not None and catalog.number <= known.number:
                return known
            self._newest = catalog
        if self.registry is not None:
            self.registry.saw_catalog(catalog, is_own=is_own)
        return catalog

    def _start_reading(self, numbers: Sequence[int]) -> Older:
        """Begin to read entries that may be needed from a remote store; a local store is read only when they are."""
        if not self.store.is_remote:
            return {}
        return {number: REQUESTS.submit(self._chain.get, number) for number in numbers}

    def _put_together(self, newest: CatalogEntry, known: Catalog | None, reading: Older) -> Catalog:
        """The mapping after an entry, assembled from the entries before it, or from those since the known one."""
        if newest.changes is None:
            return whole_catalog(newest)
        start = known if known is not None and known.number >= (newest.base or 0) else None
        older = [
            self._decode(reading[number].result() if number in reading else self._chain.get(number), number)
            for number in entries_of(newest.number, newest.base)[1:]
            if start is None or number > start.number
        ]
        try:
            return put_together([*reversed(older), newest], start)
        except UnderlayError as error:
            raise error.at(catalog_key(newest.number)) from None

    def _follow(self, before: Catalog, entry: CatalogEntry) -> Catalog:
        try:
            return catalog_after(before, entry)
        except UnderlayError as error:
            raise error.at(catalog_key(entry.number)) from None

    def _decode(self, data: memoryview, number: int) -> CatalogEntry:
        try:
            entry = decode_entry(data)
        except UnderlayError as error:
            raise error.at(catalog_key(number)) from None
        if entry.number != number:
            raise Inconsistent("a catalog entry has a different number than its key", place=catalog_key(number))
        return entry


def _read_id(data: memoryview) -> str:
    return decode_entry(data).commit_id


def _known(catalog: Catalog) -> Known:
    return Known(catalog.number, catalog.commit_id)
