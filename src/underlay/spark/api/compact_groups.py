"""Compacts groups of files in tasks, which copy and encode; the driver commits the files that they put."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from underlay.change.rows.staged import Staged
from underlay.change.update.edit import FileAccess
from underlay.errors import Damaged, NotFound
from underlay.maintain.compact.choose import CompactGroup
from underlay.maintain.compact.compact import Outcome, group_work
from underlay.maintain.compact.rewrite import DoneGroup, FailedGroup
from underlay.spark.source.pinned import Pin, process_cache, segment_loader
from underlay.spark.tasks.map_in_arrow import BatchFunction, map_in_arrow
from underlay.spark.tasks.side_by_side import parallel_tasks, run_jobs
from underlay.spark.tasks.stage_rows import check_visible
from underlay.spark.tasks.store_address import StoreAddress
from underlay.table.open_table import Head
from underlay.table.versions.snapshot import Snapshot

_DONE_ROWS = StructType([StructField("done", BinaryType())])
_MOST_JOBS = 256

OpenSession = Callable[[], SparkSession]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWork:
    """A task's work: groups of files of a version, one after the other. It is pickled."""

    address: StoreAddress
    pin: Pin
    groups: tuple[CompactGroup, ...]
    order: str | None


def run_in_tasks(
    open_session: OpenSession,
    address: StoreAddress,
    head: Head,
    works: Sequence[Sequence[CompactGroup]],
    order: str | None,
) -> Generator[list[Outcome], None, None]:
    """Run each work in a task, and yield the results as tasks end. Raises Unavailable for files that the driver cannot
    see, and Spark's error for a task that failed as often as Spark allows; the other tasks' files are then
    unreferenced.
    """
    spark, pin = open_session(), Pin.of(head)
    jobs = [
        partial(_run_job, spark, head, GroupWork(address=address, pin=pin, groups=tuple(groups), order=order))
        for groups in works
    ]
    yield from run_jobs(spark, jobs, min(parallel_tasks(spark), _MOST_JOBS))


def bundled(
    groups: Sequence[CompactGroup], most: Callable[[CompactGroup], int], limit: int
) -> list[list[CompactGroup]]:
    """Bundle small groups up to a limit of cost: a task takes longer to start than to do one of them."""
    found: list[list[CompactGroup]] = []
    cost = limit
    for group in groups:
        cost += most(group)
        if cost > limit:
            found.append([])
            cost = most(group)
        found[-1].append(group)
    return found


def do_groups(work: GroupWork) -> list[Outcome]:
    """What a task does. Raises Unavailable."""
    stores = work.address.open()
    cache = process_cache()
    try:
        head = work.pin.open(stores.lake)
    except (NotFound, Damaged) as error:
        return [FailedGroup(failed=dict.fromkeys(group.locations, str(error))) for group in work.groups]
    snapshot = Snapshot(stores.lake, head.revision.keys, head.root, segment_loader(cache))
    do = group_work(snapshot, FileAccess(stores=stores, cache=cache), work.order)
    return [do(group) for group in work.groups]


def _run_job(spark: SparkSession, head: Head, work: GroupWork) -> list[Outcome]:
    ((data,),) = map_in_arrow(spark.range(0, 1, 1, 1), _doing(work), _DONE_ROWS).collect()
    outcomes = msgspec.msgpack.decode(bytes(data), type=list[Outcome])
    staged = [Staged(entries=one.outputs) for one in outcomes if isinstance(one, DoneGroup)]
    check_visible(work.address.open().lake, head.revision.keys.folder, staged)
    return outcomes


def _doing(work: GroupWork) -> BatchFunction:
    def do_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            done = msgspec.msgpack.encode(do_groups(work))
            yield pa.record_batch([pa.array([done], pa.binary())], names=["done"])

    return do_once
