"""The resources that a process has open for a lake, in one value that its tables share.

The modules that read tables are imported when a table is first opened: a listing needs only a tenth of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING
from weakref import WeakMethod, finalize

from underlay.cache.settings import disk_cache, memory_cache
from underlay.index.catalog import Catalog, find_table
from underlay.index.operation import Operation
from underlay.interop.exported.settings import EXPORT
from underlay.runtime.locks import ProcessLock, cached_property
from underlay.store.open import StoreOptions
from underlay.store.store import Store
from underlay.table.care_settings import asks_for_care
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.versions.environment import Surroundings

if TYPE_CHECKING:
    from underlay.cache.objects import DecodedCache
    from underlay.hot.read.snapshot import HotReader
    from underlay.index.keys import RevisionKeys
    from underlay.index.root import Root, SegmentRef
    from underlay.index.segment.segment import Segment
    from underlay.interop.export.auto import AutoExport
    from underlay.maintain.care.auto import AutoCare
    from underlay.registry.registry import Registry
    from underlay.scan.read.file_stores import FileStores
    from underlay.table.open_table import OpenTable
    from underlay.table.versions.revision import Revision


_CARE = (Operation.COMPACT, Operation.IMPORT, Operation.EXPIRE, Operation.SWEEP, Operation.JOB)


class LakeContext:
    """The open resources of a lake: its catalog and store, stores of registered files, caches, the registry.

    Made once for each `Lake`, and handed to each of its tables and scans. Thread-safe.
    """

    def __init__(
        self,
        store: Store,
        *,
        options: Mapping[str, str] | None = None,
        max_staleness_seconds: float = 0.0,
        surroundings: Surroundings | None = None,
        registry: Registry | None = None,
        hot: str | None = None,
    ) -> None:
        self.registry = registry
        self._hot = hot
        committed = WeakMethod(self._committed)  # the catalog must not keep its own context alive
        self.catalog = LakeCatalog(
            store,
            replace(
                surroundings or Surroundings(),
                registry=registry,
                after_commit=lambda revision, root: _tell(committed(), revision, root),
            ),
        )
        self.options: Mapping[str, str] = StoreOptions(options or {})
        """The store's options, credentials included."""
        self.max_staleness_seconds = max_staleness_seconds
        self._lock = ProcessLock()
        self._opened: dict[str, tuple[str, OpenTable]] = {}
        self._care: AutoCare | None = None
        self._export: AutoExport | None = None
        self._is_care_over = False
        # not memory_cache() later: that takes a lock, which this thread may hold when the garbage is collected
        self._forgetting = finalize(self, memory_cache().forget, store)

    @cached_property
    def stores(self) -> FileStores:
        """The stores of tables' files, which may lie outside the lake."""
        from underlay.scan.read.file_stores import FileStores

        return FileStores(self.catalog.store, self.options)

    @cached_property
    def hot(self) -> HotReader | None:
        """Reads hot partitions, if a directory of them was given."""
        if not self._hot:
            return None
        from underlay.hot.read.snapshot import HotReader

        return HotReader(self._hot)

    @cached_property
    def cache(self) -> DecodedCache:
        """The cache of what was read and decoded."""
        from underlay.cache.objects import DecodedCache

        shared = self.registry.pieces if self.registry is not None else None
        return DecodedCache(memory=memory_cache(), disk=disk_cache(), shared=shared)

    def end_care(self) -> None:
        """End background care and exports."""
        with self._lock:
            background, self._is_care_over = (self._care, self._export), True
        for one in background:
            if one is not None:
                one.close()

    def close(self) -> None:
        """Drop from memory what was read: nobody can ask for it any longer."""
        self._forgetting()
        memory_cache().drop_forgotten()

    def newest_catalog(self) -> Catalog:
        """The catalog's newest entry, at most as stale as allowed. Raises NotFound if there is no lake."""
        if self.catalog.is_open:
            return self.catalog.catalog(self.max_staleness_seconds)
        if self.registry is not None and self.catalog.store.is_remote:
            from underlay.table.catalog.open_by_registry import open_catalog

            open_catalog(self.catalog)
        return self.catalog.catalog(inf)  # it was looked up just now, or nothing is known

    def open_table(self, name: str) -> OpenTable:
        """The table that has this name now. What is known about it is kept as long as the name means the same table.

        Raises TableNotFound.
        """
        from underlay.table.catalog.open_by_registry import open_revision
        from underlay.table.open_table import OpenTable
        from underlay.table.versions.revision import Revision

        with self._lock:
            known = self._opened.get(name)
        staleness = self.max_staleness_seconds if self.catalog.is_open else inf
        revision = open_revision(self.catalog, name) if known is None else None
        record = find_table(self.catalog.catalog(staleness), name)
        if known is not None and known[0] == record.active:
            return known[1]
        if revision is None or revision.id != record.active:
            revision = Revision(self.catalog.store, record.folder, record.active, self.catalog.surroundings)
        opened = OpenTable(self.catalog, name, self._load_segment, revision)
        return self._keep(opened.active(inf), opened)

    def open_new_table(self, name: str, revision: Revision) -> OpenTable:
        """A table that was just created with this revision. Makes no request: it must not fail, as the table exists."""
        from underlay.table.open_table import OpenTable

        return self._keep(revision, OpenTable(self.catalog, name, self._load_segment, revision))

    def _keep(self, revision: Revision, opened: OpenTable) -> OpenTable:
        with self._lock:
            self._opened[opened.name] = (revision.id, opened)
        return opened

    def _committed(self, revision: str, root: Root) -> None:
        """Called after each commit of this process. Makes no request; for a table that asks for no care, it only looks
        at the properties.
        """
        properties = root.definition.properties
        wants_care = asks_for_care(properties) and root.operation not in _CARE
        if not wants_care and EXPORT not in properties:
            return
        with self._lock:
            table = next((table for known, table in self._opened.values() if known == revision), None)
        if table is None:
            return
        if wants_care and (care := self._auto_care()) is not None:
            care.committed(table, root)
        if EXPORT in properties and (export := self._auto_export()) is not None:
            export.committed(table, root)

    def _auto_care(self) -> AutoCare | None:
        from underlay.change.update.edit import FileAccess
        from underlay.maintain.care.auto import AutoCare  # few processes need it

        with self._lock:
            if self._care is None and not self._is_care_over:
                stores, cache = self.stores, self.cache
                self._care = AutoCare(
                    lambda: FileAccess(stores=stores, cache=cache), self.catalog.surroundings.in_background
                )
            return self._care

    def _auto_export(self) -> AutoExport | None:
        from underlay.interop.export.auto import AutoExport  # few processes need it

        with self._lock:
            if self._export is None and not self._is_care_over:
                self._export = AutoExport(self.catalog.surroundings.in_background, self.options)
            return self._export

    def _load_segment(self, store: Store, keys: RevisionKeys, ref: SegmentRef) -> Segment:
        return self.cache.segment(store, keys.segment(ref.id), ref)


def _tell(committed: Callable[[str, Root], None] | None, revision: str, root: Root) -> None:
    if committed is not None:
        committed(revision, root)
