"""Adds the rows of a DataFrame, small ones in this process, large ones in tasks, with one commit either way."""

from __future__ import annotations

from pyspark.sql import DataFrame

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.files.rows import read_rows
from underlay.change.rows import append as appending
from underlay.change.rows.append import Appended, find_token
from underlay.change.rows.staged import commit_staged, stage, staging_for
from underlay.errors import InvalidRequest
from underlay.schema.record import from_record
from underlay.spark.files.one_version import version_read
from underlay.spark.native.write import can_write_natively, write_natively
from underlay.spark.start.session_lakes import find_table
from underlay.spark.tasks.clustering import clustered
from underlay.spark.tasks.collect import collect_small
from underlay.spark.tasks.stage_rows import check_columns, hinting_creation, stage_by_tasks
from underlay.spark.types.from_spark import SESSION_ZONE, NaiveTimestamps, read_naive_timestamps, table_rows
from underlay.table.coordination.upload_intent import upload
from underlay.table.open_table import Head, OpenTable


def write_frame(
    frame: DataFrame,
    table: Table | str,
    lake: Lake | None,
    token: str | None = None,
    naive_timestamps: NaiveTimestamps | None = None,
    *,
    is_overwrite: bool = False,
) -> Appended:
    """Add the rows of a DataFrame, or replace all rows of the table by them, as `api.write` describes."""
    check_frame(frame)
    naive = read_naive_timestamps(naive_timestamps)
    target, opened, head = _open(frame, table, lake)
    known = find_token(opened, head, token)
    if known is not None:
        return known
    if is_overwrite:
        head = version_read(frame, head)  # newer rows must not be lost
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
    """Have tasks put the rows as files into the store, and commit them. An intent protects the files from sweeps."""
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
