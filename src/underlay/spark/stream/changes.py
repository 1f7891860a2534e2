"""Reads a table's changes, as a batch or as a stream: inserted and deleted rows, as `table.changes` returns them. Each
version is one task; rows that were merely rewritten are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from underlay.errors import Inconsistent, InvalidRequest, Malformed
from underlay.index.root import Root
from underlay.scan.changes.row_changes import CHANGE, COMMITTED_AT, OWN_COLUMNS, VERSION, RowChanges
from underlay.spark.source.options import SourceOptions
from underlay.spark.source.pinned import Pin, process_cache, segment_loader
from underlay.spark.types.arrow_types import arrow_schema
from underlay.spark.types.to_spark import to_spark
from underlay.table.open_table import Head

Offset = dict[str, object]
"""A stream's position, which Spark keeps as JSON."""
_OWN = (
    StructField(CHANGE, StringType(), nullable=False),
    StructField(VERSION, LongType(), nullable=False),
    StructField(COMMITTED_AT, TimestampType(), nullable=False),
)


class ChangesOffset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The changes of all versions of a revision up to this one were read."""

    revision: str
    version: int


class VersionPartition(InputPartition):
    """The number of the version whose changes a task reads."""


def with_change_columns(schema: StructType) -> StructType:
    """These columns, and those of every change."""
    return StructType([*schema.fields, *_OWN])


class VersionChanges:
    """The changes of single versions, with the columns that the table has at a certain version."""

    def __init__(self, options: SourceOptions, schema: StructType, pin: Pin) -> None:
        options.check_for_changes()
        self._options = options
        self._pin = pin
        self._schema = schema

    def partitions_after(self, begin: int, end: int) -> list[InputPartition]:
        """A task for each version after one, up to another."""
        return [VersionPartition(version) for version in range(begin + 1, end + 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The changes of one version. Raises VersionNotFound and SnapshotExpired when it is gone."""
        if not isinstance(partition, VersionPartition):  # if there is no version, Spark passes None
            return
        stores, cache = self._options.lake.open(), process_cache()
        head = self._pin.open(stores.lake)
        version = int(partition.value)
        found = RowChanges(
            revision=head.revision,
            load_segment=segment_loader(cache),
            begin=version - 1,
            end=head.revision.root(version),
            columns=tuple(name for name in self._schema.names if name not in OWN_COLUMNS.names),
            stores=stores,
            cache=cache,
            shape=head.root.definition,
        )
        wanted = arrow_schema(self._schema)
        for batch in found.batches():
            yield to_spark(batch, wanted)

    def first(self) -> int:
        """The version after which changes are read: the one before `startingVersion`, else the very first."""
        starting = self._options.starting_version
        if starting == "latest":
            return self._pin.version
        return 0 if starting is None else max(starting - 1, 0)


class ChangesReader(DataSourceReader):
    """Reads the changes up to the version that is read."""

    def __init__(self, options: SourceOptions, schema: StructType, pin: Pin) -> None:
        self._changes = VersionChanges(options, schema, pin)
        self._end = pin.version

    def partitions(self) -> list[InputPartition]:
        """A task for each version. Raises InvalidRequest when the first one is after the last."""
        first = self._changes.first()
        if first > self._end:
            raise InvalidRequest(
                "the first version must not be after the last", expected=f"1 to {self._end}", found=first + 1
            )
        return self._changes.partitions_after(first, self._end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The changes of one version."""
        return self._changes.read(partition)


class ChangesStreamReader(DataSourceStreamReader):
    """Streams the changes of each version once, with the columns that the table had when the query began."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        options.check_for_streaming_in()
        self._options = options
        self._pin = Pin.of(options.open().read_head())
        self._changes = VersionChanges(options, schema, self._pin)

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name
        """Where a new query begins."""
        return self._offset(self._changes.first())

    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802  # as Spark before 4.2 has it
        """The newest version."""
        return self._offset(self._newest().version)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """A task for each version between two offsets. Raises Inconsistent for offsets in another revision."""
        return self._changes.partitions_after(self._version(start), self._version(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The changes of one version."""
        return self._changes.read(partition)

    def _newest(self) -> Root:
        head: Head = self._pin.open(self._options.lake.open().lake)
        return head.revision.head(0.0)

    def _offset(self, version: int) -> Offset:
        found: Offset = msgspec.to_builtins(ChangesOffset(revision=self._pin.revision, version=version))
        return found

    def _version(self, offset: Offset) -> int:
        try:
            found = msgspec.convert(offset, ChangesOffset)
        except msgspec.ValidationError as error:
            raise Malformed(
                f"not an offset of a table's changes: {error}", found=offset, hint="Use another checkpoint."
            ) from error
        if found.revision != self._pin.revision:
            raise Inconsistent(
                "the table was created again since the stream began",
                place=self._options.table,
                expected=found.revision,
                found=self._pin.revision,
                hint="Start the query with another checkpoint.",
            )
        return found.version
