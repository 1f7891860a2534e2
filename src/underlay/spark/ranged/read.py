"""The ranged reader's work: described on the driver, planned when Spark asks, read by tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from underlay.hot.read.snapshot import with_hot_files
from underlay.index.entry import FileEntry, FileLayout
from underlay.plan.part import BoolArray, Part
from underlay.prune import TRUE, Predicate
from underlay.scan.query import Query
from underlay.spark.source.options import TASK_BYTES
from underlay.spark.source.pinned import Pin, partitions_of, query_of, read_partition
from underlay.spark.tasks.store_address import StoreAddress
from underlay.table.versions.snapshot import Snapshot

READ_OPTION = "read"
"""The option of the source that holds a `RangedRead`."""


class ChosenSnapshot(Snapshot):
    """A snapshot with only the files that `is_chosen` keeps, so that plans contain only these.

    `is_chosen` gets a part and its index; the tail comes after all segments.
    """

    def __init__(self, of: Snapshot, is_chosen: Callable[[Part, int], BoolArray]) -> None:
        super().__init__(of.store, of.keys, of.root, of.load_segment)
        self._is_chosen = is_chosen

    def parts(self, segments: Collection[int] | None = None) -> list[Part]:
        """See Snapshot."""
        count = len(self.root.segments)
        places = [*(range(count) if segments is None else sorted(segments)), count]
        return [self._only(part, place) for place, part in zip(places, super().parts(segments), strict=False)]

    def _only(self, part: Part, place: int) -> Part:
        is_left_out = ~self._is_chosen(part, place)
        return replace(part, is_removed=is_left_out if part.is_removed is None else part.is_removed | is_left_out)


class RangedRead(msgspec.Struct, frozen=True, kw_only=True):
    """Some files of one version. `chosen` has a bit for each file of each part of the snapshot; None means all files.

    `pickled` is the condition on rows; None for all rows.
    """

    table: str
    pin: Pin
    columns: tuple[str, ...]
    chosen: tuple[bytes, ...] | None
    least_tasks: int
    why: str | None
    pickled: bytes | None = None
    hot: tuple[tuple[FileEntry, FileLayout], ...] = ()
    """Files of hot partitions, which the stored root does not have."""

    def to_text(self) -> str:
        """The value for an option of a data source."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def from_text(text: str) -> RangedRead:
        """The inverse of `to_text`."""
        return msgspec.json.decode(text, type=RangedRead)

    @property
    def predicate(self) -> Predicate:
        """The condition on rows."""
        if self.pickled is None:
            return TRUE
        found: Predicate = pickle.loads(self.pickled)
        return found

    def with_predicate(self, predicate: Predicate) -> RangedRead:
        """The same with a condition on rows."""
        return msgspec.structs.replace(self, pickled=None if predicate == TRUE else pickle.dumps(predicate))

    def query(self, address: StoreAddress) -> Query:
        """The query for it. One request, for the version's root; more when it is planned."""
        stores = address.open()
        found = query_of(stores, self.pin.open(stores.lake), self.columns, self.predicate)
        sealed = found.snapshot
        root = with_hot_files(sealed.root, self.hot) if self.hot else sealed.root
        snapshot = Snapshot(sealed.store, sealed.keys, root, sealed.load_segment)
        return replace(found, snapshot=self.chosen_of(snapshot))

    def chosen_of(self, snapshot: Snapshot) -> Snapshot:
        """The version with only the chosen files."""
        return snapshot if self.chosen is None else ChosenSnapshot(snapshot, self._is_chosen)

    def _is_chosen(self, part: Part, place: int) -> BoolArray:
        count = part.segment.file_count
        if self.chosen is None:
            return np.ones(count, np.bool_)
        return np.unpackbits(np.frombuffer(self.chosen[place], np.uint8), count=count).astype(np.bool_)


class RangedReader(DataSourceReader):
    """Made by a worker process of the driver, which calls `partitions`, and sent to tasks, which call `read`."""

    def __init__(self, address: StoreAddress, read: RangedRead, schema: StructType) -> None:
        self._address = address
        self._read = read
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """The work, divided by bytes."""
        query = self._read.query(self._address)
        return partitions_of(query, target_bytes=TASK_BYTES, least=self._read.least_tasks)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        return read_partition(partition, self._address, self._schema, self._read.predicate)
