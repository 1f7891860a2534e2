"""Who does the work of `underlay ingest`: threads of this process, or Spark for much input and when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

from underlay.api.lake import Lake
from underlay.cli.common.output import say, show_bytes
from underlay.cli.ingest.choice import LOCAL, Choice
from underlay.ingest.work.progress import IngestProgress
from underlay.ingest.work.workers import LocalWorkers, Workers
from underlay.store import open_store

MUCH_BYTES = 256 << 20


class ChosenWorkers:
    """Makes workers when there is something to read. A session of Spark is started once, and stopped by `close`."""

    def __init__(self, lake: Lake, choice: Choice, progress: IngestProgress) -> None:
        self._lake = lake
        self._choice = choice
        self._progress = progress
        self._on_spark: Workers | None = None
        self._stop: Callable[[], None] = lambda: None

    def make(self, size_bytes: int, count: int) -> Workers:
        """The workers for so many bytes to read."""
        if not self._is_for_spark(size_bytes):
            store = open_store(self._lake.url, self._lake.options)
            return LocalWorkers(store, progress=self._progress)
        if self._on_spark is None:
            self._on_spark = self._start(size_bytes)
        return self._on_spark

    def close(self) -> None:
        """Stop Spark, if it was started."""
        self._stop()

    def _start(self, size_bytes: int) -> Workers:
        from underlay.spark.start.open_session import start_on
        from underlay.spark.tasks.ingest_workers import SparkWorkers
        from underlay.spark.tasks.store_address import StoreAddress  # loads PySpark

        master = self._choice.master or LOCAL
        say(f"starting Spark on {master} to read {show_bytes(size_bytes)}")
        # Not in the main thread, where Spark would put itself in the place of our handlers of signals.
        with ThreadPoolExecutor(1) as pool:
            spark = pool.submit(start_on, master, self._choice.conf).result()
        self._stop = spark.stop
        return SparkWorkers(spark, StoreAddress(url=self._lake.url, options=self._lake.options))

    def _is_for_spark(self, size_bytes: int) -> bool:
        if self._choice.in_process:
            return False
        if self._choice.master is not None:
            return True
        return size_bytes > MUCH_BYTES and find_spec("pyspark") is not None
