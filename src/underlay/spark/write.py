"""DataFrames into tables: small ones in this process, large ones by tasks; one commit either way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from underlay.api.lake import Lake
from underlay.change import append as appending
from underlay.change.append import Appended, find_token
from underlay.change.rows import read_rows
from underlay.change.staged import Staged, commit_staged, stage, staging_for
from underlay.errors import InvalidRequest, TableExists
from underlay.spark.address import StoreAddress
from underlay.spark.arrow_map import map_in_arrow
from underlay.spark.arrow_types import arrow_schema
from underlay.spark.cluster import clustered
from underlay.spark.gateway import call, call_text, java_plan
from underlay.spark.tasks import STAGED_ROWS, check_columns, decode_staged, stager
from underlay.table.opened import Head, OpenTable

Mode = Literal["error", "ignore", "append", "overwrite"]
_MODES = ("error", "ignore", "append", "overwrite")
SMALL_BYTES = 8 << 20
"""What Spark thinks to be no larger is collected, and written here."""


def append(frame: DataFrame, lake: Lake, name: str, *, token: str | None = None) -> Appended:
    """Add the rows of a DataFrame, all or none. Rows are clustered by the table's partitions and order before.

    With a token, rows are added once however often this is called with it. Raises TableNotFound; SchemaMismatch before
    any task runs; CommitUnknown (then call it again with the same token); CommitConflict. When a task fails, Spark's
    error is raised, and only files that no version names are left.
    """
    opened = lake.table(name).writable()
    head = opened.head()
    known = find_token(opened, head, token)
    if known is not None:
        return known
    check_columns(frame.schema, head.root.definition)
    if is_small(frame):
        return appending.append(opened, frame.toArrow(), token=token)
    return commit_staged(opened, head, _stage(frame, lake, opened, head), token=token)


def overwrite(frame: DataFrame, lake: Lake, name: str, *, token: str | None = None) -> Appended:
    """Replace all rows by those of a DataFrame, in one commit; what is replaced is the newest version at the call.

    Raises what `append` raises, and CommitConflict also when others added, changed or removed rows meanwhile.
    """
    opened = lake.table(name).writable()
    head = opened.head()
    known = find_token(opened, head, token)
    if known is not None:
        return known
    check_columns(frame.schema, head.root.definition)
    return commit_staged(opened, head, _stage(frame, lake, opened, head), token=token, is_overwrite=True)


def write(
    frame: DataFrame,
    lake: Lake,
    name: str,
    mode: Mode = "error",
    *,
    token: str | None = None,
    key: Sequence[str] = (),
    sort_by: Sequence[str] = (),
    partition_by: Sequence[str] = (),
) -> Appended | None:
    """Write a DataFrame as Spark's modes say; what was committed, None when a table that is there was left alone.

    `error` and `ignore` create the table, with the DataFrame's columns and what `Lake.create_table` takes; when the
    rows cannot be written it stays, empty. `append` and `overwrite` need it. Raises TableExists, TableNotFound, and
    what `append` and `overwrite` raise.
    """
    if mode not in _MODES:
        raise InvalidRequest("there is no such mode", found=repr(mode), expected=", ".join(_MODES))
    if mode == "overwrite":
        return overwrite(frame, lake, name, token=token)
    if mode == "append":
        return append(frame, lake, name, token=token)
    if mode == "ignore" and _is_there(lake, name):
        return None
    try:
        columns = _all_nullable(frame.schema)
        lake.create_table(name, columns, key=key, sort_by=sort_by, partition_by=partition_by)
    except TableExists:
        if mode == "ignore":
            return None
        raise
    return append(frame, lake, name, token=token)


def is_small(frame: DataFrame) -> bool:
    """Whether Spark knows the rows to be few. Runs nothing; over Spark Connect nothing is known."""
    if not hasattr(frame, "_jdf"):
        return False
    statistics = call(call(java_plan(frame), "optimizedPlan"), "stats")
    return int(call_text(statistics, "sizeInBytes")) <= SMALL_BYTES


def _stage(frame: DataFrame, lake: Lake, opened: OpenTable, head: Head) -> list[Staged]:
    """The rows as files in the store."""
    staging = staging_for(head)
    if is_small(frame):
        return [stage(staging, opened.lake.store, read_rows(frame.toArrow()))]
    address = StoreAddress(url=lake.url, options=lake.options)
    ranged = clustered(frame, head.root.definition)
    rows = map_in_arrow(ranged, stager(address, msgspec.msgpack.encode(staging)), STAGED_ROWS).collect()
    return [decode_staged(bytes(row[0])) for row in rows]


def _is_there(lake: Lake, name: str) -> bool:
    return any(table.name == name for table in lake.tables())


def _all_nullable(schema: StructType) -> pa.Schema:
    """The columns of a new table. Spark's `nullable` says what a plan gives, not what a table should take."""
    return pa.schema([field.with_nullable(True) for field in arrow_schema(schema)])
