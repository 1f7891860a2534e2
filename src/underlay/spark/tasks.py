"""What a Spark task does to write rows, and what is checked before any task runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

import msgspec
import pyarrow as pa
from pyspark.sql.types import BinaryType, StructField, StructType

from underlay.change.rows import read_rows
from underlay.change.staged import Staged, Staging, stage
from underlay.errors import TableNotFound
from underlay.index.root import Definition
from underlay.schema.conform import conform
from underlay.schema.record import from_record
from underlay.spark.address import StoreAddress
from underlay.spark.arrow_map import BatchFunction
from underlay.spark.arrow_types import arrow_schema

STAGED_ROWS = StructType([StructField("staged", BinaryType())])


@contextmanager
def hinting_creation() -> Iterator[None]:
    """Have TableNotFound say how a table is made."""
    try:
        yield
    except TableNotFound as error:
        error.hint = f"{error.hint} lake.create_table makes one, and so does underlay.spark.write(frame, name)."
        raise


def check_columns(schema: StructType, definition: Definition) -> None:
    """Raises SchemaMismatch when rows with these columns cannot fit the table, whatever they hold."""
    conform(arrow_schema(schema).empty_table(), from_record(definition.schema))


def write_batches(lake: StoreAddress, staging: bytes, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Put the rows into the store as new files; their entries, as bytes."""
    given = iter(batches)
    first = next(given, None)
    if first is None:
        return msgspec.msgpack.encode(Staged())
    reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], given))
    staged = stage(msgspec.msgpack.decode(staging, type=Staging), lake.open().lake, read_rows(reader))
    return msgspec.msgpack.encode(staged)


def decode_staged(data: bytes) -> Staged:
    """The files that a task wrote."""
    return msgspec.msgpack.decode(data, type=Staged)


def stager(lake: StoreAddress, staging: bytes) -> BatchFunction:
    """The function for `map_in_arrow` that writes the rows of a task, and gives one row with their files."""

    def stage_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([write_batches(lake, staging, batches)], pa.binary())], names=["staged"])

    return stage_batches
