"""Runs the units of work of an ingest as Spark tasks.

Units are distributed over a few jobs. If a task ran twice, one run counts, and the other's files stay unreferenced.
Executors need this package and the store, but no registry.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import partial

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from underlay.ingest.work.execute import do_work
from underlay.ingest.work.work_unit import WorkDone, WorkUnit, decode_done, decode_work, encode
from underlay.runtime.locks import cached_property
from underlay.spark.tasks.map_in_arrow import BatchFunction, map_in_arrow
from underlay.spark.tasks.side_by_side import parallel_tasks, run_jobs
from underlay.spark.tasks.stage_rows import check_visible
from underlay.spark.tasks.store_address import StoreAddress

JOBS = 16
"""The most jobs that work units are spread over: each costs a driver some 50 ms."""
_DONE_ROWS = StructType([StructField("done", BinaryType())])


class SparkWorkers:
    """The executors of a session, which write to the store at `address`."""

    def __init__(self, spark: SparkSession, address: StoreAddress) -> None:
        self._spark = spark
        self._address = address

    @cached_property
    def parallelism(self) -> int:
        """See Workers."""
        return parallel_tasks(self._spark)

    def run(self, works: Sequence[WorkUnit]) -> Generator[WorkDone, None, None]:
        """See Workers. Ending the iteration, or an interrupt, stops the jobs. Raises a failed job's Spark error."""
        parts = [works[at::JOBS] for at in range(min(JOBS, len(works)))]
        for done in run_jobs(self._spark, [partial(self._run_job, part) for part in parts], JOBS):
            yield from done

    def _run_job(self, works: Sequence[WorkUnit]) -> list[WorkDone]:
        """Run each work unit in a task, and return the results. Raises Unavailable for files that the driver cannot
        see.
        """
        rows = self._spark.range(0, len(works), 1, len(works))
        found = map_in_arrow(rows, _doing(self._address, works), _DONE_ROWS).collect()
        done = [decode_done(bytes(row[0])) for row in found]
        for folder in {work.staging.folder for work in works}:
            check_visible(self._address.open().lake, folder, [one.staged for one in done])
        return done


def _doing(lake: StoreAddress, works: Sequence[WorkUnit]) -> BatchFunction:
    """The function for `map_in_arrow` that does the work units whose numbers a task gets."""
    plain = msgspec.msgpack.encode([encode(work) for work in works])
    size_bytes = len(plain)
    packed = bytes(pa.compress(plain, codec="zstd", asbytes=True))  # units are similar, and each task gets them all

    def do_numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = msgspec.msgpack.decode(bytes(pa.decompress(packed, size_bytes, "zstd", asbytes=True)), type=list[bytes])
        for number in (int(str(number)) for batch in batches for number in batch.column(0)):
            done = encode(do_work(decode_work(given[number]), lake.open().lake))
            yield pa.record_batch([pa.array([done], pa.binary())], names=["done"])

    return do_numbered
