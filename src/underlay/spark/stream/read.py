"""Streams appends to a table: each batch contains the rows that some versions added, each row exactly once.

Spark's checkpoint records the progress, in the form of `scan.changes.appended`. The driver plans a batch from the
versions' roots; tasks read it, and request nothing but data. Planning it again gives the same batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from underlay.cache.objects import DecodedCache
from underlay.errors import Malformed, SchemaMismatch, Unsupported
from underlay.index.root import Definition, Root
from underlay.prune import TRUE, Predicate
from underlay.prune.parse.sql import parse_where
from underlay.runtime.locks import cached_property
from underlay.scan.changes.appended import Appends, Limit, Position, after, at_version, whole_table
from underlay.scan.query import Query
from underlay.schema.record import from_record
from underlay.spark.source.options import SourceOptions
from underlay.spark.source.pinned import Pin, partitions_of, process_cache, read_partition, segment_loader
from underlay.spark.types.to_spark import source_schema
from underlay.table.open_table import Head

Offset = dict[str, object]
"""A stream's position, which Spark keeps as JSON."""


class StreamReader(DataSourceStreamReader):
    """Reads everything available at once; Spark before 4.2 supports nothing else."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        options.check_for_streaming_in()
        self._options = options
        self._spark_schema = schema
        self._predicate: Predicate = TRUE if options.where is None else parse_where(options.where)
        self._pin = Pin.of(options.open().read_head())
        self._check_schema()

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name
        """Where a new query begins. Raises VersionNotFound."""
        starting = self._options.starting_version
        if starting is None:
            return _offset(whole_table(self._begun))
        if starting == "latest":
            return _offset(after(self._begun.revision, self._appends.newest()))
        return _offset(at_version(self._begun.revision, starting))

    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802  # as Spark before 4.2 has it
        """How far rows are available."""
        return _offset(after(self._begun.revision, self._newest()))

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The work of a batch, divided by bytes."""
        found = self._appends.between(_place(start), _place(end), self._definition)
        if found is None:
            return []
        query = Query(
            snapshot=found,
            columns=tuple(self._spark_schema.names),
            stores=self._options.lake.open(),
            cache=self._cache,
            predicate=self._predicate,
        )
        return partitions_of(query, target_bytes=self._options.task_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        return read_partition(partition, self._options.lake, self._spark_schema, self._predicate)

    def __getstate__(self) -> dict[str, object]:
        """Tasks get only what does not depend on a process."""
        return {name: value for name, value in self.__dict__.items() if name not in _OF_PROCESS}

    def advance(self, start: Offset, until: Root, limit: Limit) -> Offset:
        """How far a batch may reach."""
        return _offset(self._appends.advance(_place(start), until, limit))

    @cached_property
    def _cache(self) -> DecodedCache:
        return process_cache()

    @cached_property
    def _begun(self) -> Head:
        """The newest version when the query was started; rows are read with its columns."""
        return self._pin.open(self._options.lake.open().lake)

    @property
    def _definition(self) -> Definition:
        return self._begun.root.definition

    @cached_property
    def _appends(self) -> Appends:
        load = segment_loader(self._cache)
        return Appends(self._begun.revision, load, skips_changes=self._options.skip_changes)

    def _newest(self) -> Root:
        """The newest version. Raises SchemaMismatch when a column that is read has changed."""
        newest = self._appends.newest()
        if newest.definition.schema != self._definition.schema:
            self._check_columns(newest.definition)
        return newest

    def _check_schema(self) -> None:
        """Raises SchemaMismatch. Columns added since the stream was loaded are left out."""
        expected = source_schema(from_record(self._definition.schema), tuple(self._spark_schema.names))
        if self._spark_schema != expected:
            raise SchemaMismatch(
                "the schema given to the reader differs from the table's",
                place=self._options.table,
                expected=expected.simpleString(),
                found=self._spark_schema.simpleString(),
                hint="Leave out .schema(…); use the option columns. Load the table again if it changed.",
            )

    def _check_columns(self, definition: Definition) -> None:
        newest = {field.id: field for field in from_record(definition.schema).fields}
        for name in self._spark_schema.names:
            field = from_record(self._definition.schema).column(name)
            now = newest.get(field.id)
            if now is None or (now.name, now.type) != (field.name, field.type):
                raise SchemaMismatch(
                    f"column {name} changed while a stream reads it",
                    place=self._options.table,
                    expected=str(field.type),
                    found="no such column" if now is None else f"{now.name} {now.type}",
                    hint="Load the table again and restart the query with the same checkpoint.",
                )


_OF_PROCESS = ("_cache", "_begun", "_appends", "_target")


def make_stream_reader(options: SourceOptions, schema: StructType) -> StreamReader:
    """The reader of these columns, with batches of limited size if Spark supports them."""
    if find_spec("pyspark.sql.streaming.datasource") is not None:  # since 4.2
        from underlay.spark.stream.limited_read import LimitedReader

        return LimitedReader(options, schema)
    if options.max_files is not None or options.max_bytes is not None:
        raise Unsupported("limits on the batches of a stream need Spark 4.2 or later", place=options.table)
    return StreamReader(options, schema)


def _offset(place: Position) -> Offset:
    found: Offset = msgspec.to_builtins(place)
    return found


def _place(offset: Offset) -> Position:
    try:
        return msgspec.convert(offset, Position)
    except msgspec.ValidationError as error:
        raise Malformed(f"not an offset of a table: {error}", found=offset, hint="Use another checkpoint.") from error
