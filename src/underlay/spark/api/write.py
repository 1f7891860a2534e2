"""Writes DataFrames into tables, small ones in this process, large ones in tasks, with one commit either way."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.files.rows import read_rows
from underlay.change.rows import append as appending
from underlay.change.rows.append import Appended, find_token
from underlay.change.rows.staged import commit_staged, stage, staging_for
from underlay.errors import InvalidRequest, TableExists
from underlay.schema.record import from_record
from underlay.spark.files.one_version import version_read
from underlay.spark.native.write import can_write_natively, write_natively
from underlay.spark.start.session_lakes import find_lake, find_table
from underlay.spark.tasks.clustering import clustered
from underlay.spark.tasks.collect import collect_small
from underlay.spark.tasks.stage_rows import check_columns, hinting_creation, stage_by_tasks
from underlay.spark.types.arrow_types import arrow_schema
from underlay.spark.types.from_spark import SESSION_ZONE, NaiveTimestamps, read_naive_timestamps, table_rows
from underlay.table.coordination.upload_intent import upload
from underlay.table.open_table import Head, OpenTable

_MODES = ("error", "ignore", "append", "overwrite")
_OTHERWISE = {"errorifexists": "error", "default": "error"}
"""Other names that Spark has for modes."""


def append(
    frame: DataFrame,
    table: Table | str,
    *,
    lake: Lake | None = None,
    token: str | None = None,
    naive_timestamps: NaiveTimestamps | None = None,
) -> Appended:
    """Append the rows of a DataFrame, all or none, clustered by the table's partitions and order.

    A name means a table of the session's lake unless another lake is given. With a token, rows are added once however
    often this is called with it. `naive_timestamps` says what Spark's instants (TIMESTAMP_LTZ) are in columns without a
    zone: local times of the session's zone ("session") or of UTC ("utc"); unless given they are refused. Raises
    TableNotFound; SchemaMismatch before any task runs; CommitUnknown (then call it again with the same token);
    CommitConflict. When a task fails, Spark's error is raised, and only unreferenced files are left.
    """
    return _write(frame, table, lake, token, naive_timestamps)


def overwrite(
    frame: DataFrame,
    table: Table | str,
    *,
    lake: Lake | None = None,
    token: str | None = None,
    naive_timestamps: NaiveTimestamps | None = None,
) -> Appended:
    """Replace all rows with those of a DataFrame, in one commit.

    This replaces the newest version at the call, or the version of this table that the DataFrame itself reads by name
    (reads by `format("underlay")` cannot be seen). Raises what `append` raises, and CommitConflict also when others
    added, changed or removed rows since.
    """
    return _write(frame, table, lake, token, naive_timestamps, is_overwrite=True)


def write(
    frame: DataFrame,
    table: Table | str,
    mode: str = "error",
    *,
    lake: Lake | None = None,
    token: str | None = None,
    naive_timestamps: NaiveTimestamps | None = None,
    key: Sequence[str] = (),
    sort_by: Sequence[str] = (),
    partition_by: Sequence[str] = (),
) -> Appended | None:
    """Write a DataFrame as Spark's modes say, by any of Spark's names for them; what was committed, None when a table
    that is there was left alone.

    `error` and `ignore` create the table, with the DataFrame's columns, none of them required, and what
    `Lake.create_table` takes; when the rows cannot be written it stays, empty. `append` and `overwrite` need it. Raises
    TableExists, TableNotFound, and what `append` and `overwrite` raise.
    """
    wanted = str(mode).lower()
    wanted = _OTHERWISE.get(wanted, wanted)
    if wanted not in _MODES:
        raise InvalidRequest("unknown mode", found=repr(mode), expected=", ".join(_MODES))
    check_frame(frame)
    if wanted == "overwrite":
        return overwrite(frame, table, lake=lake, token=token, naive_timestamps=naive_timestamps)
    if wanted == "append":
        return append(frame, table, lake=lake, token=token, naive_timestamps=naive_timestamps)
    try:
        if isinstance(table, Table):
            raise TableExists("the table already exists", place=table.name)
        found = find_lake(frame.sparkSession, table, lake)
        columns = arrow_schema(frame.schema, is_loose=True)  # Spark says what a plan gives, not what a table takes
        created = found.create_table(table, columns, key=key, sort_by=sort_by, partition_by=partition_by)
    except TableExists:
        if wanted == "ignore":
            return None
        raise
    return append(frame, created, token=token)


def _write(
    frame: DataFrame,
    table: Table | str,
    lake: Lake | None,
    token: str | None,
    naive_timestamps: NaiveTimestamps | None,
    *,
    is_overwrite: bool = False,
) -> Appended:
    check_frame(frame)
    naive = read_naive_timestamps(naive_timestamps)
    target, opened, head = _open(frame, table, lake)
    known = find_token(opened, head, token)
    if known is not None:
        return known
    if is_overwrite:
        head = version_read(frame, head)  # what came since is not to be lost
    check_columns(frame.schema, head.root.definition, naive)
    rows = collect_small(frame)
    if rows is None:
        return _write_by_tasks(frame, target, head, token, naive, is_overwrite=is_overwrite)
    zone = frame.sparkSession.conf.get(SESSION_ZONE)
    rows = table_rows(rows, from_record(head.root.definition.schema), naive, session_zone=zone)
    if not is_overwrite:
        return appending.append(opened, rows, token=token)
    staged = stage(staging_for(head), opened.lake.store, read_rows(rows))
    return commit_staged(opened, head, [staged], token=token, is_overwrite=True)


def _write_by_tasks(
    frame: DataFrame, table: Table, head: Head, token: str | None, naive: NaiveTimestamps | None, *, is_overwrite: bool
) -> Appended:
    """Have tasks put the rows as files into the store, and commit these. An intent keeps them from being swept."""
    with upload(head.revision, note="a write by Spark") as files:
        ranged = clustered(frame, head.root.definition)
        if can_write_natively(ranged, head):
            staged = [write_natively(ranged, head, files.intent.job)]
        else:
            staged = stage_by_tasks(ranged, table, head, naive)
        return commit_staged(table.writable(), head, staged, token=token, is_overwrite=is_overwrite)


def check_frame(frame: object) -> None:
    """Raise InvalidRequest for anything but a Spark DataFrame."""
    if not isinstance(frame, DataFrame):
        raise InvalidRequest(
            "not a Spark DataFrame",
            found=type(frame).__name__,
            hint="Make one with spark.createDataFrame; table.append takes Arrow.",
        )


def _open(frame: DataFrame, table: Table | str, lake: Lake | None) -> tuple[Table, OpenTable, Head]:
    with hinting_creation():
        target = find_table(frame.sparkSession, table, lake)
        opened = target.writable()
        return target, opened, opened.head()
