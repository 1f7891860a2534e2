"""Reading a table as a Python data source: planned once on the driver, read by tasks that ask for nothing but data.

Filters are taken only when an option says so. Spark (4.3) keeps what a reader planned with one query's filters for the
whole DataFrame: `df.where(a)` and then `df`, or `df.where(a)` joined with `df.where(b)`, are both read with the filters
that came last, and rows are missing. A DataFrame that is loaded for one filter is read right.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from underlay.cache.objects import DecodedCache
from underlay.cache.settings import disk_cache, memory_cache
from underlay.errors import Inconsistent, SchemaMismatch
from underlay.index.keys import RevisionKeys
from underlay.index.root import SegmentRef
from underlay.index.segment.segment import Segment
from underlay.prune import TRUE, Predicate
from underlay.prune.parse.sql import parse_where
from underlay.prune.predicates.predicate import And
from underlay.scan.portion import Portion, portions, read_portion
from underlay.scan.query import Query
from underlay.scan.read.file_stores import FileStores
from underlay.schema.record import from_record
from underlay.spark.source.options import SourceOptions
from underlay.spark.types.arrow_types import arrow_schema
from underlay.spark.types.to_spark import source_schema, to_spark
from underlay.store import Store
from underlay.table.open_table import Head
from underlay.table.versions.environment import Surroundings
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
TASKS_PER_CORE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One version, by what never changes."""

    table_folder: str
    revision: str
    version: int
    commit_id: str

    @staticmethod
    def of(head: Head) -> Pin:
        """This version."""
        return Pin(
            table_folder=head.revision.table_folder,
            revision=head.revision.id,
            version=head.root.version,
            commit_id=head.root.commit_id,
        )

    def open(self, store: Store, surroundings: Surroundings | None = None) -> Head:
        """The version. One request. Raises VersionNotFound, and Inconsistent when it is another one."""
        revision = Revision(store, self.table_folder, self.revision, surroundings or Surroundings())
        root = revision.root(self.version)
        if root.commit_id != self.commit_id:
            raise Inconsistent(
                f"version {self.version} is not the one that was read before",
                place=revision.place,
                expected=self.commit_id,
                found=root.commit_id,
                hint="The lake was replaced by another one. Read the table again.",
            )
        return Head(revision, root)


class PortionPartition(InputPartition):
    """What one task reads, as bytes."""


class TableReader(DataSourceReader):
    """Reads one version. Made on the driver, which asks for `partitions`, and sent to tasks, which `read` them."""

    def __init__(self, options: SourceOptions, pin: Pin, schema: StructType) -> None:
        self._options = options
        self._pin = pin
        self._spark_schema = schema
        self._predicate: Predicate = TRUE if options.where is None else parse_where(options.where)

    def partitions(self) -> list[InputPartition]:
        """The work, cut by bytes: at least two tasks for each core of this machine, unless they get too small."""
        least = TASKS_PER_CORE * (os.cpu_count() or 1)
        found = portions(self._query(), target_bytes=self._options.task_bytes, least=least)
        return [PortionPartition(msgspec.msgpack.encode(portion)) for portion in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition. Without any, Spark makes one of nothing."""
        if not isinstance(partition, PortionPartition):
            return
        portion = msgspec.msgpack.decode(partition.value, type=Portion)
        wanted = arrow_schema(self._spark_schema)
        for batch in read_portion(portion, self._options.lake.open(), self._predicate):
            yield to_spark(batch, wanted)

    def _query(self) -> Query:
        stores = self._options.lake.open()
        head = _pinned(stores, self._pin)
        cache = DecodedCache(memory=memory_cache(), disk=disk_cache(), shared=None)

        def load(store: Store, keys: RevisionKeys, ref: SegmentRef) -> Segment:
            return cache.segment(store, keys.segment(ref.id), ref)

        return Query(
            snapshot=Snapshot(stores.lake, head.revision.keys, head.root, load),
            columns=tuple(self._spark_schema.names),
            stores=stores,
            cache=cache,
            predicate=self._predicate,
        )


class PushingReader(TableReader):
    """A reader that takes filters. Spark refuses one with `pushFilters` when its setting for them is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        """Take the filters that can be translated; the others are returned, and Spark applies them."""
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
            "another schema than the table's was given to the reader",
            place=options.table,
            expected=expected.simpleString(),
            found=schema.simpleString(),
            hint="Leave out .schema(…); name columns by the option columns.",
        )
    return reader


@lru_cache(maxsize=8)
def _pinned(stores: FileStores, pin: Pin) -> Head:
    """The version, looked up once in a process."""
    return pin.open(stores.lake)


def is_pushing() -> bool:
    """Whether Spark will push filters: it asks for readers in a worker of its own then, and tells nothing else."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHING_WORKER in sys.modules or (spec is not None and spec.name == _PUSHING_WORKER)
