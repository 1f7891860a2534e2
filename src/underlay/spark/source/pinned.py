"""A pinned version of a table that other processes can open, and how its readers divide work.

The driver plans a query and cuts it into portions; a task reads one portion and requests nothing but data.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from underlay.cache.objects import DecodedCache
from underlay.cache.settings import disk_cache, memory_cache
from underlay.errors import Inconsistent
from underlay.index.keys import RevisionKeys
from underlay.index.root import SegmentRef
from underlay.index.segment.segment import Segment
from underlay.prune import Predicate
from underlay.scan.portion import Portion, portions, read_portion
from underlay.scan.query import Query
from underlay.scan.read.file_stores import FileStores
from underlay.spark.tasks.store_address import StoreAddress
from underlay.spark.types.arrow_types import arrow_schema
from underlay.spark.types.to_spark import to_spark
from underlay.store import Store
from underlay.table.open_table import Head
from underlay.table.versions.environment import Surroundings
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import SegmentLoader, Snapshot

_TASKS_PER_CORE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One version, identified by what never changes."""

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
        """Open the version. One request. Raises VersionNotFound, and Inconsistent when it is not the same one."""
        revision = Revision(store, self.table_folder, self.revision, surroundings or Surroundings())
        root = revision.root(self.version)
        if root.commit_id != self.commit_id:
            raise Inconsistent(
                f"version {self.version} was replaced since it was read",
                place=revision.place,
                expected=self.commit_id,
                found=root.commit_id,
                hint="The lake was replaced or restored from a copy. Read the table again.",
            )
        return Head(revision, root)


def query_of(stores: FileStores, head: Head, columns: tuple[str, ...], predicate: Predicate) -> Query:
    """A query of one version, through the caches of this process."""
    cache = process_cache()
    snapshot = Snapshot(stores.lake, head.revision.keys, head.root, segment_loader(cache))
    return Query(snapshot=snapshot, columns=columns, stores=stores, cache=cache, predicate=predicate)


def process_cache() -> DecodedCache:
    """The caches of this process; workers have no registry."""
    return DecodedCache(memory=memory_cache(), disk=disk_cache(), shared=None)


def segment_loader(cache: DecodedCache) -> SegmentLoader:
    """Opens segments through a cache."""

    def load(store: Store, keys: RevisionKeys, ref: SegmentRef) -> Segment:
        return cache.segment(store, keys.segment(ref.id), ref)

    return load


class PortionPartition(InputPartition):
    """What one task reads, as bytes."""


def partitions_of(query: Query, *, target_bytes: int, least: int | None = None) -> list[InputPartition]:
    """A query as partitions of about `target_bytes`: at least `least`, or two for each core of this machine, unless
    they would be too small.
    """
    least = _TASKS_PER_CORE * (os.cpu_count() or 1) if least is None else least
    found = portions(query, target_bytes=target_bytes, least=least)
    return [PortionPartition(msgspec.msgpack.encode(portion)) for portion in found]


def read_partition(
    partition: InputPartition, address: StoreAddress, schema: StructType, predicate: Predicate
) -> Iterator[pa.RecordBatch]:
    """The rows of a partition in Spark's types. If there are no partitions, Spark passes None."""
    if not isinstance(partition, PortionPartition):
        return
    portion = msgspec.msgpack.decode(partition.value, type=Portion)
    wanted = arrow_schema(schema)
    for batch in read_portion(portion, address.open(), predicate):
        yield to_spark(batch, wanted)
