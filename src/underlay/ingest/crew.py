"""What all batches of an ingest have in common: what the user said, who does the work, and who is told of it."""

from __future__ import annotations

from underlay.ingest.progress import Progress
from underlay.ingest.settings import Settings
from underlay.ingest.tally import Tally
from underlay.ingest.workers import MakeWorkers, Workers
from underlay.scan.locate import FileStores


class Crew:
    """Workers are hired when there is something to do, and stay."""

    def __init__(
        self,
        *,
        settings: Settings,
        make_workers: MakeWorkers,
        tally: Tally,
        progress: Progress,
        stores: FileStores,
    ) -> None:
        self.settings = settings
        self.tally = tally
        self.progress = progress
        self.stores = stores
        self.workers: Workers | None = None
        """Who was hired."""
        self._make_workers = make_workers

    def hire(self, size_bytes: int, sources: int) -> Workers:
        """Workers for so much, or those that there are."""
        if self.workers is None:
            self.workers = self._make_workers(size_bytes, sources)
        return self.workers
