"""Compacts a table in Spark tasks when there is enough to do, else in this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import SparkSession

from underlay.api.lake import Lake
from underlay.api.opened.condition import Params, Where
from underlay.api.table import Table
from underlay.maintain.compact.choose import CompactGroup
from underlay.maintain.compact.compact import Compacted, CompactProgress, CompactWorkers, GroupRun
from underlay.spark.api.compact_groups import bundled, run_in_tasks
from underlay.spark.start.open_session import open_session
from underlay.spark.start.session_lakes import find_lake_of
from underlay.spark.tasks.store_address import StoreAddress
from underlay.table.open_table import Head

SMALL_BYTES = 64 << 20
"""This process encodes up to this many bytes before a cluster would have started to."""
TASK_BYTES = 64 << 20
"""Small groups of files are combined up to this size, into one task and one commit."""
_COPIED = 16
"""Copying this many bytes costs as much as encoding one."""


def compact(
    table: Table | str,
    where: Where = None,
    *,
    lake: Lake | None = None,
    spark: SparkSession | None = None,
    dry_run: bool = False,
    order: str | None = None,
    params: Params | None = None,
    progress: CompactProgress | None = None,
) -> Compacted:
    """Do what `Table.compact` does, in tasks that copy and encode. Each task's work is committed when it ends, so that
    a long run loses only what was under way.

    A name means a table of the session's lake unless another lake is given. This process does the work when there is
    little to encode or copy, or only one group of files; the result's `choice` says so. Otherwise tasks do, of `spark`,
    of the active session, or of a new one. Raises what `Table.compact` raises, and Spark's error once a task has failed
    as often as Spark allows: what was committed before stays.
    """
    found = table if isinstance(table, Table) else find_lake_of(spark, table, lake).table(table)
    stores = found.stores
    address = StoreAddress(url=stores.lake.url, options=stores.options)
    workers = _workers(address, spark)
    return found.compact(where, dry_run=dry_run, order=order, params=params, progress=progress, workers=workers)


def _workers(address: StoreAddress, spark: SparkSession | None) -> CompactWorkers:
    def choose(head: Head, groups: Sequence[CompactGroup], order: str | None) -> GroupRun | str:
        if not address.is_shared:
            return "in this process: no other reaches a lake in memory"
        cost = sum(map(_cost, groups))
        what = f"{cost / (1 << 20):,.1f} MiB to encode, counting a {_COPIED}th of what is copied"
        if cost <= SMALL_BYTES:
            return f"in this process: {what}, at most {SMALL_BYTES >> 20} MiB"
        works = bundled(groups, _cost, TASK_BYTES)
        if len(works) == 1:
            return f"in this process: {what}, as one group of files"
        return GroupRun(
            do=partial(run_in_tasks, partial(open_session, spark), address, head, works, order),
            commit_bytes=0,
            task_count=len(works),
            choice=f"in {len(works)} tasks: {what}",
        )

    return choose


def _cost(group: CompactGroup) -> int:
    return group.encoded_bytes + group.copied_bytes // _COPIED
