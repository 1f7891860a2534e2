"""Reads a table as a Python data source: planned once on the driver, read by tasks that fetch only data.

Filters are accepted only when an option says so. Spark (4.3) keeps what a reader planned with one query's filters for
the whole DataFrame: `df.where(a)` and then `df`, or `df.where(a)` joined with `df.where(b)`, are both read with the
last filters, and rows are missing. A DataFrame that is loaded for one filter is read correctly.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from underlay.errors import SchemaMismatch
from underlay.prune import TRUE, Predicate
from underlay.prune.parse.sql import parse_where
from underlay.prune.predicates.predicate import And
from underlay.scan.query import Query
from underlay.scan.read.file_stores import FileStores
from underlay.schema.record import from_record
from underlay.spark.source.options import SourceOptions
from underlay.spark.source.pinned import Pin, partitions_of, query_of, read_partition
from underlay.spark.types.to_spark import source_schema
from underlay.table.open_table import Head

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


class TableReader(DataSourceReader):
    """Reads one version. Made on the driver, which calls `partitions`, and sent to tasks, which call `read`."""

    def __init__(self, options: SourceOptions, pin: Pin, schema: StructType) -> None:
        self._options = options
        self._pin = pin
        self._spark_schema = schema
        self._predicate: Predicate = TRUE if options.where is None else parse_where(options.where)

    def partitions(self) -> list[InputPartition]:
        """The work, divided by bytes."""
        return partitions_of(self._query(), target_bytes=self._options.task_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        return read_partition(partition, self._options.lake, self._spark_schema, self._predicate)

    def _query(self) -> Query:
        stores = self._options.lake.open()
        return query_of(stores, _pinned(stores, self._pin), tuple(self._spark_schema.names), self._predicate)


class PushingReader(TableReader):
    """A reader that accepts filters. Spark refuses a reader with `pushFilters` when its setting for that is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        """Accept the filters that can be translated; Spark applies the others, which are returned."""
        from underlay.spark.filters.pushed import read_pushed  # Spark 4.0 has no filters

        schema = self._query().table_schema
        taken = [self._predicate]
        for one in filters:
            predicate = read_pushed(one, schema)
            if predicate is None:
                yield one
            else:
                taken.append(predicate)
        self._predicate = And(tuple(taken)) if len(taken) > 1 else taken[0]


def make_reader(options: SourceOptions, pin: Pin, schema: StructType) -> TableReader:
    """The reader of these columns. Raises SchemaMismatch when they are not the table's."""
    reader = (PushingReader if options.push_filters and is_pushing() else TableReader)(options, pin, schema)
    head = _pinned(options.lake.open(), pin)
    found = from_record(head.root.definition.schema)
    expected = source_schema(found, options.columns or found.names)
    if schema != expected:
        raise SchemaMismatch(
            "the schema given to the reader differs from the table's",
            place=options.table,
            expected=expected.simpleString(),
            found=schema.simpleString(),
            hint="Leave out .schema(…); choose columns with the option columns.",
        )
    return reader


@lru_cache(maxsize=8)
def _pinned(stores: FileStores, pin: Pin) -> Head:
    """The version, looked up once in a process."""
    return pin.open(stores.lake)


def is_pushing() -> bool:
    """Whether Spark will push filters: all it shows of that is that it makes readers in a separate worker."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHING_WORKER in sys.modules or (spec is not None and spec.name == _PUSHING_WORKER)
