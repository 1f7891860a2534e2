"""Ingests sources into a table, each exactly once, in Spark tasks; small inputs in threads of this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from pyspark.sql import SparkSession

from underlay.api.ingest import Ingests
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.ingest.run.summary import Summary
from underlay.ingest.work.progress import IngestProgress
from underlay.ingest.work.settings import Options, Sources, make_settings
from underlay.ingest.work.workers import LocalWorkers, MakeWorkers, Workers
from underlay.scan.read.file_stores import FileStores
from underlay.spark.start.open_session import open_session
from underlay.spark.start.session_lakes import find_lake_of
from underlay.spark.tasks import collect
from underlay.spark.tasks.ingest_workers import SparkWorkers
from underlay.spark.tasks.store_address import StoreAddress


def ingest(
    table: Table | str,
    sources: Sources,
    *,
    lake: Lake | None = None,
    spark: SparkSession | None = None,
    progress: IngestProgress | None = None,
    **options: Unpack[Options],
) -> Summary:
    """Ingest each source exactly once, with the options of `Lake.ingest`, and create the table if it does not exist.

    A name means a table of the session's lake unless another lake is given. Tasks read the sources, which executors
    must reach under the same names: tasks of `spark`, of the active session, or of a new one, which is started only if
    there is enough to read. Raises what `Lake.ingest` raises, and Spark's error once a task has failed as often as
    Spark allows: then nothing of its batch is in the table, and the sources are free.
    """
    if isinstance(table, Table):
        opened = table.writable()
        ingests = Ingests(lake=opened.lake, stores=table.stores, open_table=lambda _: opened)
        workers = _workers(lambda: table.stores, spark, progress)
        return ingests.once(table.name, make_settings(sources, **options), workers=workers, progress=progress)
    target = find_lake_of(spark, table, lake)
    workers = _workers(lambda: target.table(table).stores, spark, progress)
    return target.ingest(table, sources, progress=progress, workers=workers, **options)


def _workers(
    stores: Callable[[], FileStores], spark: SparkSession | None, progress: IngestProgress | None
) -> MakeWorkers:
    def make(size_bytes: int, _count: int) -> Workers:
        found = stores()
        address = StoreAddress(url=found.lake.url, options=found.options)
        if size_bytes <= collect.SMALL_SOURCE_BYTES or not address.is_shared:
            return LocalWorkers(found.lake, progress=progress)
        return SparkWorkers(open_session(spark), address)

    return make
