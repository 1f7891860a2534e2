"""Ingests sources into the tables of a lake: once, or as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from underlay.ingest.run.dry_run import DryRun, dry_run
from underlay.ingest.run.ingest import ingest
from underlay.ingest.run.record import Keep, keep_record
from underlay.ingest.run.summary import Summary
from underlay.ingest.run.watch import Pace, Watch
from underlay.ingest.source.find import source_options
from underlay.ingest.source.source import Source
from underlay.ingest.work.progress import IngestProgress
from underlay.ingest.work.settings import Settings
from underlay.ingest.work.workers import LocalWorkers, MakeWorkers, Workers
from underlay.scan.read.file_stores import FileStores
from underlay.store.open import Option
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.open_table import OpenTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingests:
    """What all ingests into a lake share. Without `workers`, threads of this process do the work."""

    lake: LakeCatalog
    stores: FileStores
    open_table: Callable[[str], OpenTable]

    def once(
        self,
        name: str,
        settings: Settings,
        *,
        workers: MakeWorkers | None = None,
        progress: IngestProgress | None = None,
        found: Sequence[Source] | None = None,
        keep: Keep = keep_record,
    ) -> Summary:
        """See `ingest.run.ingest`."""
        return ingest(
            self.lake,
            name,
            replace(settings, store_options=self._source_options(settings)),
            workers=workers or self._threads(progress),
            progress=progress,
            stores=self.stores,
            open_table=self.open_table,
            found=found,
            keep=keep,
        )

    def dry_run(self, name: str, settings: Settings) -> DryRun:
        """See `ingest.run.dry_run`."""
        return dry_run(self.lake, name, replace(settings, store_options=self._source_options(settings)))

    def watch(
        self,
        name: str,
        settings: Settings,
        pace: Pace,
        *,
        workers: MakeWorkers | None = None,
        progress: IngestProgress | None = None,
    ) -> Watch:
        """A watch. It starts when it is iterated."""

        def look(found: Sequence[Source], settings: Settings, keep: Keep) -> Summary:
            return self.once(name, settings, workers=workers, progress=progress, found=found, keep=keep)

        told = replace(settings, store_options=self._source_options(settings))
        return Watch(OpenTable(self.lake, name), told, look, pace)

    def _threads(self, progress: IngestProgress | None) -> MakeWorkers:
        def make(size_bytes: int, count: int) -> Workers:
            return LocalWorkers(self.lake.store, progress=progress)

        return make

    def _source_options(self, settings: Settings) -> Mapping[str, Option]:
        every = (*settings.sources, *settings.again)
        return source_options(every, settings.store_options, self.lake.store.url, self.stores.options)
