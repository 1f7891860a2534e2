"""Has Spark's own Parquet writer write rows, and adopts the files into the table.

No row passes through Python: tasks write into the job's own folder, which nobody reads, and Spark's committer moves the
files of one attempt of each task there. The driver prepares files as they appear (`early_files`), and names them in the
end. The settings that determine the files' form are made in a copy of the session, so that the user's stay unchanged.
On a cluster, tasks do as much as they can, since one driver could not keep up with them (`on_cluster`).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame

from underlay.change.rows.adopt import Prepared, adopt, prepare
from underlay.change.rows.staged import Staged, Staging, discard, staging_for
from underlay.errors import Inconsistent, UnderlayError
from underlay.index.root import Definition
from underlay.index.state import count_rows
from underlay.spark.jvm.gateway import (
    call,
    call_number,
    call_text,
    gateway_of,
    java_plan,
    java_session,
)
from underlay.spark.jvm.hadoop_path import hadoop_folder
from underlay.spark.native.columns import fits_native, native_columns
from underlay.spark.native.early_files import EarlyFiles
from underlay.spark.native.options import SETTINGS, UNSET, guess_values, has_codec, native_options
from underlay.spark.native.write_jobs import ended_with_this_call
from underlay.spark.start.open_session import is_local
from underlay.spark.tasks.stage_rows import not_visible
from underlay.store import Store
from underlay.store.directory import local_root
from underlay.table.open_table import Head

_BLOCK_ROWS = ("org.apache.parquet.hadoop.ParquetOutputFormat", "BLOCK_ROW_COUNT_LIMIT")
"""The class and field of parquet-java's limit on a block's rows: since Spark 4.1."""
_COLUMN = "org.apache.spark.sql.Column"
_FUNCTIONS = "org.apache.spark.sql.functions"
_COUNT = "row_count"
_OBSERVED = re.compile(r"^[\s:|+-]*CollectMetrics ", re.MULTILINE)
_IN_PROGRESS = "_temporary"


def can_write_natively(frame: DataFrame, head: Head) -> bool:
    """Whether Spark itself can write a frame's rows, which fit the table, as files that the table may own.

    Object stores have no renames. Spark 4.0 has no setting for the rows of a block. A frame's observations reach only
    its own session.
    """
    definition = head.root.definition
    return (
        hasattr(frame, "_jdf")
        and local_root(head.revision.store.url) is not None
        and has_codec(definition)
        and fits_native(frame.schema, definition)
        and gateway_of(frame.sparkSession).has_field(*_BLOCK_ROWS)
        and not _OBSERVED.search(call_text(call(java_plan(frame), "analyzed"), "toString"))
    )


def write_natively(frame: DataFrame, head: Head, job: str) -> Staged:
    """Have Spark write the rows for a job, and stage the files.

    Raises Spark's error when a task fails, Unavailable when executors wrote to disks that the driver cannot see, and
    what `prepare` and `adopt` raise. Then only unreferenced files are left.
    """
    store, definition, staging = head.revision.store, head.root.definition, staging_for(head)
    root, folder = local_root(store.url), head.revision.keys.staging(job)
    if root is None:
        raise AssertionError(f"not a local store: {store.url}")
    on_cluster = not is_local(frame.sparkSession.sparkContext.master or "")
    early = EarlyFiles(root / folder, partial(prepare, staging, store, is_finished=on_cluster))
    try:
        with early, ended_with_this_call(frame.sparkSession, job):
            columns = native_columns(frame, definition, checks_text=on_cluster)
            row_count = _run(columns, definition, hadoop_folder(store.url, folder), on_cluster=on_cluster)
        prepared = early.prepare_all(_files_in(root / folder))
        if row_count not in (None, sum(count_rows(one.entry) for one in prepared.values())):
            raise not_visible(folder)
        staged = adopt(staging, root, prepared)
    except BaseException:
        _discard(staging, store, early.made)
        raise
    finally:
        shutil.rmtree(root / folder, ignore_errors=True)  # what is left of it is unreferenced
    names = {entry.location for entry in staged.entries}
    _discard(staging, store, [one for one in early.made if one.entry.location not in names])
    return staged


def _discard(staging: Staging, store: Store, prepared: Sequence[Prepared]) -> None:
    """Delete files of attempts that lost, or of a write that failed."""
    if prepared:
        with suppress(UnderlayError):  # it is unreferenced
            discard(staging, store, [Staged(entries=tuple(one.entry for one in prepared))])


def _run(frame: DataFrame, definition: Definition, folder: str, *, on_cluster: bool) -> int | None:
    """Have Spark write. Returns how many rows tasks wrote that may run on other machines.

    They are counted because a committer silently misses files on other machines' disks.
    """
    spark = frame.sparkSession
    gateway, session = gateway_of(spark), call(java_session(spark), "cloneSession")
    settings = call(call(session, "sessionState"), "conf")
    for name, value in SETTINGS.items():
        call(settings, "setConfString", name, value)
    call(settings, "unsetConf", UNSET)
    execution = java_plan(frame)
    plan = call(execution, "commandExecuted")
    rows = gateway.static("org.apache.spark.sql.classic.Dataset", "ofRows", session, plan)
    counted, values = None, None
    if on_cluster:
        counted = gateway.new("org.apache.spark.sql.Observation")
        count = gateway.static(_FUNCTIONS, "count", gateway.static(_FUNCTIONS, "lit", 1))
        rows = call(rows, "observe", counted, call(count, "as", _COUNT), gateway.new_array(_COLUMN, 0))
        values = guess_values(execution, spark.sparkContext.defaultParallelism)
    call(call(call(rows, "write"), "options", native_options(definition, values)), "parquet", folder)
    return None if counted is None else call_number(call(counted, "getAsJava"), "get", _COUNT)


def _files_in(folder: Path) -> list[Path]:
    """The files that the committer left, without checksums, and without what losing attempts may still write. Raises
    Inconsistent for any other file: it could hold rows.
    """
    found = sorted(path for path in folder.rglob("*") if path.is_file() and _IN_PROGRESS not in path.parts)
    files = [path for path in found if path.suffix != ".crc"]
    odd = [path for path in files if path.suffix != ".parquet" or path.parent != folder or path.name[0] in "._"]
    if odd:
        raise Inconsistent("Spark wrote something other than Parquet files", place=str(odd[0]))
    return files
