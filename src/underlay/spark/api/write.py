"""Writes DataFrames into tables, small ones in this process, large ones in tasks, with one commit either way."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.rows.append import Appended
from underlay.errors import InvalidRequest, TableExists
from underlay.spark.change.write_frame import check_frame, write_frame
from underlay.spark.start.session_lakes import find_lake
from underlay.spark.types.arrow_types import arrow_schema
from underlay.spark.types.from_spark import NaiveTimestamps

_MODES = ("error", "ignore", "append", "overwrite")
_OTHERWISE = {"errorifexists": "error", "default": "error"}
"""Spark's aliases of modes."""


def append(
    frame: DataFrame,
    table: Table | str,
    *,
    lake: Lake | None = None,
    token: str | None = None,
    naive_timestamps: NaiveTimestamps | None = None,
) -> Appended:
    """Append the rows of a DataFrame, all or none, clustered by the table's partitions and order.

    A name means a table of the session's lake unless another lake is given. With a token, the rows are added only once,
    however often this is called with the same token. `naive_timestamps` says how Spark's instants (TIMESTAMP_LTZ) are
    stored in columns without a zone: as local times of the session's zone ("session") or of UTC ("utc"); without it
    they are refused. Raises TableNotFound; SchemaMismatch before any task runs; CommitUnknown (then call it again with
    the same token); CommitConflict. When a task fails, Spark's error is raised, and only unreferenced files are left.
    """
    return write_frame(frame, table, lake, token, naive_timestamps)


def overwrite(
    frame: DataFrame,
    table: Table | str,
    *,
    lake: Lake | None = None,
    token: str | None = None,
    naive_timestamps: NaiveTimestamps | None = None,
) -> Appended:
    """Replace all rows with those of a DataFrame, in one commit.

    This replaces the version that is newest at the call, or the version of this table that the DataFrame itself reads
    by name (reads through `format("underlay")` cannot be seen). Raises what `append` raises, and CommitConflict also
    when others added, changed or removed rows since.
    """
    return write_frame(frame, table, lake, token, naive_timestamps, is_overwrite=True)


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
    """Write a DataFrame in one of Spark's modes, by any of Spark's names for it. Returns what was committed; None when
    an existing table was left alone.

    `error` and `ignore` create the table, with the DataFrame's columns, all nullable, and the options of
    `Lake.create_table`; if the rows cannot be written, the empty table stays. `append` and `overwrite` need an existing
    table. Raises TableExists, TableNotFound, and what `append` and `overwrite` raise.
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
        columns = arrow_schema(frame.schema, is_loose=True)  # a plan's nulls, not what the table allows
        created = found.create_table(table, columns, key=key, sort_by=sort_by, partition_by=partition_by)
    except TableExists:
        if wanted == "ignore":
            return None
        raise
    return append(frame, created, token=token)
