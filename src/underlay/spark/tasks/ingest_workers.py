"""Runs the units of work of an ingest as Spark tasks, in a classic session and over Spark Connect alike.

Units are dealt out to a few jobs that run side by side, so that results arrive long before the slowest is done. Spark
retries a task that fails or whose executor is lost; of tasks that ran twice one is counted, and the files of the others
stay unreferenced. Executors need this package and the store, and no registry.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from uuid import uuid4

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id
from pyspark.sql.types import BinaryType, StructField, StructType
from pyspark.util import inheritable_thread_target

from underlay.ingest.work.execute import do_work
from underlay.ingest.work.work_unit import WorkDone, WorkUnit, decode_done, decode_work, encode
from underlay.runtime.locks import cached_property
from underlay.spark.start.open_session import has_gateway, is_local
from underlay.spark.tasks.map_in_arrow import BatchFunction, map_in_arrow
from underlay.spark.tasks.stage_rows import check_visible
from underlay.spark.tasks.store_address import StoreAddress

JOBS = 16
"""How many jobs works are dealt out to at most: a driver takes some 50 ms for one."""
_DONE_ROWS = StructType([StructField("done", BinaryType())])
_MANY_ROWS = 1 << 20
_LOOK_SECONDS = 0.1
_LEAST_ON_CLUSTER = 8
"""Executors may still be starting when the works are made."""


class SparkWorkers:
    """The executors of a session, which write into the store at `address`."""

    def __init__(self, spark: SparkSession, address: StoreAddress) -> None:
        self._spark = spark
        self._address = address

    @cached_property
    def parallelism(self) -> int:
        """How many tasks Spark runs at once. Over Spark Connect a query tells, by how its rows are divided."""
        if has_gateway(self._spark):
            context = self._spark.sparkContext
            return max(context.defaultParallelism, 1 if is_local(str(context.master)) else _LEAST_ON_CLUSTER)
        parts = self._spark.range(_MANY_ROWS).select(spark_partition_id().alias("part"))
        return max(parts.distinct().count(), 1)

    def run(self, works: Sequence[WorkUnit]) -> Generator[WorkDone, None, None]:
        """See Workers. Whoever stops to iterate, or is interrupted, stops the jobs. Raises Spark's error of a job."""
        tag = f"underlay-ingest-{uuid4().hex}"
        parts = [works[at::JOBS] for at in range(min(JOBS, len(works)))]
        jobs: list[Future[list[WorkDone]]] = []
        with ThreadPoolExecutor(max_workers=max(len(parts), 1), thread_name_prefix="underlay-ingest") as pool:
            try:
                for part in parts:
                    # Each has its own copy of this thread's settings: Spark writes into it.
                    inheriting = inheritable_thread_target(self._spark)(self._run_job)
                    jobs.append(pool.submit(inheriting, tag, part))
                for job in as_completed(jobs):
                    yield from job.result()
            except BaseException:
                self._stop(tag, jobs)
                raise

    def _stop(self, tag: str, jobs: Sequence[Future[list[WorkDone]]]) -> None:
        """Interrupt the jobs until all have ended: one may have been about to begin."""
        left = {job for job in jobs if not job.cancel()}
        while left := wait(left, timeout=_LOOK_SECONDS).not_done:
            self._spark.interruptTag(tag)

    def _run_job(self, tag: str, works: Sequence[WorkUnit]) -> list[WorkDone]:
        """What comes of works, one task for each. Raises Unavailable for files that the driver does not see."""
        self._spark.addTag(tag)
        rows = self._spark.range(0, len(works), 1, len(works))
        found = map_in_arrow(rows, _doing(self._address, works), _DONE_ROWS).collect()
        done = [decode_done(bytes(row[0])) for row in found]
        for folder in {work.staging.folder for work in works}:
            check_visible(self._address.open().lake, folder, [one.staged for one in done])
        return done


def _doing(lake: StoreAddress, works: Sequence[WorkUnit]) -> BatchFunction:
    """The function for `map_in_arrow` that does the works whose numbers a task gets."""
    plain = msgspec.msgpack.encode([encode(work) for work in works])
    size_bytes = len(plain)
    packed = bytes(pa.compress(plain, codec="zstd", asbytes=True))  # works are alike, and every task gets them all

    def do_numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = msgspec.msgpack.decode(bytes(pa.decompress(packed, size_bytes, "zstd", asbytes=True)), type=list[bytes])
        for number in (int(str(number)) for batch in batches for number in batch.column(0)):
            done = encode(do_work(decode_work(given[number]), lake.open().lake))
            yield pa.record_batch([pa.array([done], pa.binary())], names=["done"])

    return do_numbered
