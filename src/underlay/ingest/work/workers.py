"""Workers that read the sources of a batch, in threads of this process or elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from threading import Event
from typing import Protocol

from underlay.change.rows.staged import discard
from underlay.errors import UnderlayError
from underlay.ingest.work.execute import do_work
from underlay.ingest.work.progress import IngestProgress, NoProgress
from underlay.ingest.work.work_unit import WorkDone, WorkUnit
from underlay.store.store import Store


class Workers(Protocol):
    """Does work units in parallel."""

    @property
    def parallelism(self) -> int:
        """How many work units run at once."""

    def run(self, works: Sequence[WorkUnit]) -> Generator[WorkDone, None, None]:
        """Yield the result of each work unit once, in any order, as they finish. An error in one ends all, and so does
        closing the generator.
        """


MakeWorkers = Callable[[int, int], Workers]
"""Makes the workers for this many bytes and sources. Called only if there is something to read."""


class _Stopped(Exception):
    """The work was cancelled. Never leaves this module."""


class LocalWorkers:
    """Threads of this process. Reading CSV and writing Parquet release the GIL; reading JSON lines does not."""

    def __init__(self, store: Store, *, progress: IngestProgress | None = None, parallelism: int | None = None) -> None:
        self._store = store
        self._progress = progress or NoProgress()
        self._parallelism = parallelism or os.cpu_count() or 1

    @property
    def parallelism(self) -> int:
        """The number of cores, unless another was given."""
        return self._parallelism

    def run(self, works: Sequence[WorkUnit]) -> Generator[WorkDone, None, None]:
        """Run the work units in threads; bytes are reported while they are read."""
        stopped = Event()

        def advance(read_bytes: int) -> None:
            if stopped.is_set():
                raise _Stopped
            self._progress.advanced(read_bytes=read_bytes)

        pool = ThreadPoolExecutor(self._parallelism, thread_name_prefix="underlay-ingest")
        waiting = {pool.submit(do_work, work, self._store, advance): work for work in works}
        try:
            for future in as_completed(list(waiting)):
                done = future.result()
                del waiting[future]
                yield done
        finally:
            stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)
            self._discard(waiting)

    def _discard(self, unwanted: Mapping[Future[WorkDone], WorkUnit]) -> None:
        """Delete the files of finished work units whose results were not taken."""
        for future, work in unwanted.items():
            if not future.cancelled() and future.exception() is None:
                with suppress(UnderlayError):  # orphaned files are swept later
                    discard(work.staging, self._store, [future.result().staged])
