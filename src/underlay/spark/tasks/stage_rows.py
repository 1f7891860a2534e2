"""Writes rows in Spark tasks; checks columns before that, and that the driver sees the files after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from underlay.api.table import Table
from underlay.change.files.rows import read_rows
from underlay.change.rows.staged import Staged, Staging, stage, staging_for
from underlay.errors import SchemaMismatch, TableNotFound, Unavailable
from underlay.index.keys import RevisionKeys
from underlay.index.root import Definition
from underlay.schema.cast.conform import conform
from underlay.schema.record import from_record
from underlay.spark.tasks.map_in_arrow import BatchFunction, map_in_arrow
from underlay.spark.tasks.store_address import StoreAddress
from underlay.spark.types.arrow_types import arrow_schema
from underlay.spark.types.from_spark import NaiveTimestamps, table_rows
from underlay.store import Store
from underlay.store.directory import local_root
from underlay.table.open_table import Head
from underlay.values.no_rows import no_rows

STAGED_ROWS = StructType([StructField("staged", BinaryType())])
MOST_SECONDS = 86_400.0
"""How long a write or a stream's epoch may take until its files may be swept: no process renews its intent."""


@contextmanager
def hinting_creation() -> Iterator[None]:
    """Add to TableNotFound a hint how to create a table."""
    try:
        yield
    except TableNotFound as error:
        error.hint = f"{error.hint} lake.create_table makes one, and so does underlay.spark.write(frame, name)."
        raise


def check_columns(schema: StructType, definition: Definition, naive: NaiveTimestamps | None = None) -> None:
    """Raises SchemaMismatch when rows with these columns cannot fit the table, whatever their values; Unsupported."""
    if not schema.fields:
        raise SchemaMismatch("the frame has no columns", hint="Select at least one column of the table.")
    columns = from_record(definition.schema)
    conform(table_rows(no_rows(arrow_schema(schema)), columns, naive), columns)


def write_batches(
    lake: StoreAddress, staging: bytes, batches: Iterable[pa.RecordBatch], naive: NaiveTimestamps | None = None
) -> bytes:
    """Put the rows into the store as new files. Returns their entries, as bytes."""
    how = msgspec.msgpack.decode(staging, type=Staging)
    columns = from_record(how.definition.schema)
    given = (table_rows(pa.Table.from_batches([batch]), columns, naive) for batch in batches)
    first = next(given, None)
    if first is None:
        return msgspec.msgpack.encode(Staged())
    rows = (batch for table in chain([first], given) for batch in table.to_batches())
    reader = pa.RecordBatchReader.from_batches(first.schema, rows)
    return msgspec.msgpack.encode(stage(how, lake.open().lake, read_rows(reader)))


def stage_by_tasks(frame: DataFrame, table: Table, head: Head, naive: NaiveTimestamps | None = None) -> list[Staged]:
    """Have tasks put the rows as files into the store. Tasks pass rows to Python as Arrow, which costs about as much as
    writing them. Raises Unavailable for files that the driver cannot see.
    """
    staging = msgspec.msgpack.encode(staging_for(head))
    address = StoreAddress(url=table.stores.lake.url, options=table.stores.options)
    rows = map_in_arrow(frame, stager(address, staging, naive), STAGED_ROWS).collect()
    return seen_by_driver(table.stores.lake, head.revision.keys.folder, [bytes(row[0]) for row in rows])


def seen_by_driver(store: Store, folder: str, staged: Iterable[bytes]) -> list[Staged]:
    """What tasks wrote into a revision's folder. Raises Unavailable for files that the driver cannot see."""
    found = [decode_staged(data) for data in staged]
    check_visible(store, folder, found)
    return found


def check_visible(store: Store, folder: str, staged: Iterable[Staged]) -> None:
    """Raises Unavailable when this process cannot see what a task put into a revision's folder of a local store.

    Executors on other machines may have a folder of the same name on their own disks. A commit of files there would
    silently lose rows. Object stores are the same from everywhere, and are not checked.
    """
    if local_root(store.url) is None:
        return
    keys = RevisionKeys(folder)
    for one in staged:
        key = keys.file(one.entries[0].location) if one.entries else None  # a task runs on one machine
        if key is not None and store.head(key) is None:
            raise not_visible(key)


def not_visible(place: str) -> Unavailable:
    """The error for files on another machine's disk."""
    return Unavailable(
        "an executor wrote to a disk that the driver does not see",
        place=place,
        hint="Put the lake on a disk that all of them share, or into an object store.",
    )


def decode_staged(data: bytes) -> Staged:
    """The files that a task wrote."""
    return msgspec.msgpack.decode(data, type=Staged)


def stager(lake: StoreAddress, staging: bytes, naive: NaiveTimestamps | None = None) -> BatchFunction:
    """The function for `map_in_arrow` that writes a task's rows, and returns one row with their files."""

    def stage_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        staged = write_batches(lake, staging, batches, naive)
        yield pa.record_batch([pa.array([staged], pa.binary())], names=["staged"])

    return stage_batches
