"""Reads numbered rows through the ranged reader, as a verb must know the positions of the rows that it changes.

It reads all columns, as Spark tells a Python function neither columns nor conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from underlay.api.table import Table
from underlay.index.deletion_vectors import MAX_ROWS
from underlay.plan.part import BoolArray, Part
from underlay.scan.portion import Portion, numbered_batches, portions
from underlay.spark.ranged.read import ChosenSnapshot
from underlay.spark.source.options import TASK_BYTES
from underlay.spark.tasks.map_in_arrow import map_in_arrow
from underlay.spark.tasks.store_address import StoreAddress
from underlay.spark.types.arrow_types import arrow_schema
from underlay.spark.types.to_spark import source_schema, to_spark

_PORTION = "portion"


def ranged_numbered(
    spark: SparkSession,
    table: Table,
    is_chosen: Callable[[Part], BoolArray] | None,
    number: str,
    first_file: int,
) -> tuple[DataFrame, tuple[str, ...]]:
    """The rows of a pinned table, or of files that `is_chosen` keeps, with the column `number`; and the files, numbered
    from `first_file`. Raises Unsupported.
    """
    query = table.query(None, None)
    if is_chosen is not None:
        query = replace(query, snapshot=ChosenSnapshot(query.snapshot, lambda part, _place: is_chosen(part)))
    schema = source_schema(query.table_schema, query.columns)
    least = 2 * spark.sparkContext.defaultParallelism
    work = portions(query, target_bytes=TASK_BYTES, least=least)
    locations = tuple(dict.fromkeys(slab.location for portion in work for slab in portion.slabs))
    numbers = {location: at for at, location in enumerate(locations, first_file)}
    address = StoreAddress(url=query.stores.lake.url, options=query.stores.options)
    address.open()  # refuses a lake in memory
    columns = StructType([*schema.fields, StructField(number, LongType())])
    return map_in_arrow(
        portion_frame(spark, work), partial(_read, address, schema, columns, numbers), columns
    ), locations


def portion_frame(spark: SparkSession, work: list[Portion]) -> DataFrame:
    """A frame with one row for each portion, each in its own task."""
    encoded = pa.array([msgspec.msgpack.encode(portion) for portion in work], pa.binary())
    frame = spark.createDataFrame(pa.table({_PORTION: encoded}))
    return frame.repartition(max(len(work), 1))


def portions_in(batches: Iterator[pa.RecordBatch]) -> Iterator[Portion]:
    """The portions that a task was given."""
    for batch in batches:
        for encoded in batch.column(0):
            yield msgspec.msgpack.decode(bytes(encoded.as_py()), type=Portion)


def _read(
    address: StoreAddress,
    schema: StructType,
    columns: StructType,
    numbers: dict[str, int],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    wanted, given = arrow_schema(schema), arrow_schema(columns)
    for portion in portions_in(batches):
        for location, positions, batch in numbered_batches(portion, address.open()):
            found = to_spark(batch, wanted)
            keys = pa.array(positions + np.int64(numbers[location]) * MAX_ROWS)
            yield pa.record_batch([*found.columns, keys], schema=given)
