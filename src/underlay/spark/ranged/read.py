"""What the ranged reader of a frame reads: said on the driver, planned when Spark asks, done by tasks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from underlay.cache.objects import DecodedCache
from underlay.cache.settings import disk_cache, memory_cache
from underlay.index.keys import RevisionKeys
from underlay.index.root import SegmentRef
from underlay.index.segment.segment import Segment
from underlay.plan.part import BoolArray, Part
from underlay.prune import TRUE, Predicate
from underlay.scan.portion import Portion, portions, read_portion
from underlay.scan.query import Query
from underlay.spark.ranged.chosen_snapshot import ChosenSnapshot
from underlay.spark.source.options import TASK_BYTES
from underlay.spark.source.read import Pin, PortionPartition
from underlay.spark.tasks.store_address import StoreAddress
from underlay.spark.types.arrow_types import arrow_schema
from underlay.spark.types.to_spark import to_spark
from underlay.store import Store
from underlay.table.versions.snapshot import Snapshot

READ_OPTION = "read"
"""The option of the source that holds a `RangedRead`."""


class RangedRead(msgspec.Struct, frozen=True, kw_only=True):
    """Some files of one version. `chosen` has a bit for each file of each part of the snapshot; None is all files.

    `pickled` is the condition for rows, None for all rows.
    """

    table: str
    pin: Pin
    columns: tuple[str, ...]
    chosen: tuple[bytes, ...] | None
    least_tasks: int
    why: str | None
    pickled: bytes | None = None

    def to_text(self) -> str:
        """As an option of a data source."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def from_text(text: str) -> RangedRead:
        """From what `to_text` gave."""
        return msgspec.json.decode(text, type=RangedRead)

    @property
    def predicate(self) -> Predicate:
        """The condition for rows."""
        if self.pickled is None:
            return TRUE
        found: Predicate = pickle.loads(self.pickled)
        return found

    def with_predicate(self, predicate: Predicate) -> RangedRead:
        """The same for rows that match."""
        return msgspec.structs.replace(self, pickled=None if predicate == TRUE else pickle.dumps(predicate))

    def query(self, address: StoreAddress) -> Query:
        """The same as a query. One request, for the version's root; more when it is planned."""
        stores = address.open()
        head = self.pin.open(stores.lake)
        cache = DecodedCache(memory=memory_cache(), disk=disk_cache(), shared=None)

        def load(store: Store, keys: RevisionKeys, ref: SegmentRef) -> Segment:
            return cache.segment(store, keys.segment(ref.id), ref)

        snapshot = Snapshot(stores.lake, head.revision.keys, head.root, load)
        return Query(
            snapshot=self.chosen_of(snapshot),
            columns=self.columns,
            stores=stores,
            cache=cache,
            predicate=self.predicate,
        )

    def chosen_of(self, snapshot: Snapshot) -> Snapshot:
        """The version with the chosen files alone."""
        return snapshot if self.chosen is None else ChosenSnapshot(snapshot, self._is_chosen)

    def _is_chosen(self, part: Part, place: int) -> BoolArray:
        count = part.segment.file_count
        if self.chosen is None:
            return np.ones(count, np.bool_)
        return np.unpackbits(np.frombuffer(self.chosen[place], np.uint8), count=count).astype(np.bool_)


class RangedReader(DataSourceReader):
    """Made by a worker beside the driver, which asks for `partitions`, and sent to tasks, which `read` them."""

    def __init__(self, address: StoreAddress, read: RangedRead, schema: StructType) -> None:
        self._address = address
        self._read = read
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """The work, cut by bytes."""
        found = portions(self._read.query(self._address), target_bytes=TASK_BYTES, least=self._read.least_tasks)
        return [PortionPartition(msgspec.msgpack.encode(portion)) for portion in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition. Without any, Spark makes one of nothing."""
        if not isinstance(partition, PortionPartition):
            return
        portion = msgspec.msgpack.decode(partition.value, type=Portion)
        wanted = arrow_schema(self._schema)
        for batch in read_portion(portion, self._address.open(), self._read.predicate):
            yield to_spark(batch, wanted)
