"""Runs a statement that changes a table: begins on a version, has Spark find the change, commits, and retries on
conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.rows.staged import Staged, staging_for
from underlay.change.update.edit import RowEdit, commit_edit
from underlay.change.update.placed_rows import rows_at
from underlay.change.update.result import Changed
from underlay.errors import InvalidRequest
from underlay.index.deletion_vectors import MAX_ROWS, Positions
from underlay.index.operation import Operation
from underlay.prune import TRUE
from underlay.scan.portion import portions, read_portion
from underlay.scan.query import Query
from underlay.scan.slabs import Slab
from underlay.spark.change.change_frame import ChangeFrame, FoundChange, found_by_tasks
from underlay.spark.files.one_version import version_read, versions_read
from underlay.spark.ranged.numbered import portion_frame, portions_in
from underlay.spark.relation.relation import NumberedRows, numbered_rows
from underlay.spark.relation.row_numbers import number_column
from underlay.spark.source.options import TASK_BYTES
from underlay.spark.start.session_lakes import find_table
from underlay.spark.tasks import collect
from underlay.spark.tasks.clustering import clustered
from underlay.spark.tasks.map_in_arrow import map_in_arrow
from underlay.spark.tasks.stage_rows import STAGED_ROWS, seen_by_driver, write_batches
from underlay.spark.tasks.store_address import StoreAddress
from underlay.spark.types.arrow_types import arrow_schema
from underlay.spark.types.from_spark import SESSION_ZONE, table_rows
from underlay.spark.types.to_spark import source_schema, to_spark
from underlay.table.commit.conflicts import ReadSet
from underlay.table.coordination.upload_intent import upload
from underlay.table.open_table import Head


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt of a statement on a version of its table, with what Spark needs to find the rows to change."""

    spark: SparkSession
    table: Table
    edit: RowEdit
    uploads: ExitStack
    small_rows: int

    @property
    def head(self) -> Head:
        """The version, as the layers below represent it."""
        return self.table.read_head()

    def numbered(self) -> NumberedRows:
        """All rows of the version, numbered."""
        return numbered_rows(self.spark, self.table)

    def rows_at(self, numbers: dict[str, Positions], files: Mapping[str, int], columns: tuple[str, ...]) -> DataFrame:
        """These columns, and the number column, of rows at positions in files, read by this process."""
        schema = source_schema(self.edit.snapshot.schema, columns)
        number = number_column(self.edit.snapshot.schema.names)
        every = StructType([*schema.fields, StructField(number, LongType())])
        wanted, given = arrow_schema(schema), arrow_schema(every)
        batches: list[pa.RecordBatch] = []
        if columns:
            for found in rows_at(self.edit, numbers, columns):
                keys = numbers[found.location][found.places] + np.int64(files[found.location]) * MAX_ROWS
                table = found.rows.combine_chunks()
                for batch in table.to_batches():
                    plain = to_spark(batch, wanted)
                    batches.append(pa.record_batch([*plain.columns, pa.array(keys)], schema=given))
        else:
            for location, positions in numbers.items():
                keys = positions + np.int64(files[location]) * MAX_ROWS
                batches.append(pa.record_batch([pa.array(keys)], schema=given))
        return self.spark.createDataFrame(pa.Table.from_batches(batches, given), every)

    def prototype(self) -> DataFrame:
        """An empty frame with the table's columns and the number column, to resolve names."""
        schema = self.edit.snapshot.schema
        columns = source_schema(schema, schema.names)
        number = StructField(number_column(schema.names), LongType())
        return self.spark.createDataFrame([], StructType([*columns.fields, number]))

    def clustered(self, change: ChangeFrame) -> ChangeFrame:
        """The change with rows in the table's order, so that files cover small ranges."""
        return replace(change, frame=clustered(change.frame, self.edit.snapshot.definition))

    def find_by_tasks(self, change: ChangeFrame) -> FoundChange:
        """Have tasks compute a change, and write the new rows."""
        self.uploads.enter_context(upload(self.head.revision, note="a change by Spark"))
        return found_by_tasks(change, self.table, self.head)

    def finish(self, found: FoundChange, reads: ReadSet) -> None:
        """Add what Spark found to the transaction. Raises InvalidRequest when a row is changed twice."""
        if found.is_repeated:
            raise self._repeated(found)
        edit = self.edit
        for gone in (found.updated, found.deleted):
            for location, bits in gone.items():
                edit.remove(location, bits)
        zone = self.spark.conf.get(SESSION_ZONE)
        rows = [table_rows(one, edit.snapshot.schema, session_zone=zone) for one in found.rows]
        edit.finish(
            [pa.concat_tables(rows, promote_options="permissive")] if rows else [],
            reads=reads,
            updated=found.update_count,
            staged=found.staged,
            write_again=self._write_again,
        )

    def _repeated(self, found: FoundChange) -> InvalidRequest:
        return InvalidRequest(
            "a row of the table matches more than one row of the source",
            place="the condition",
            hint="Leave one row for each in the source, or add a predicate that holds for one of them.",
        )

    def _write_again(self, query: Query, slabs: Iterator[Slab], row_count: int) -> list[Staged] | None:
        """Have tasks write the remaining rows of rewritten blocks, if there are many."""
        if row_count <= self.small_rows:
            return None
        self.uploads.enter_context(upload(self.head.revision, note="a change by Spark"))
        least = 2 * self.spark.sparkContext.defaultParallelism
        work = portions(query, slabs, target_bytes=TASK_BYTES, least=least)
        address = StoreAddress(url=query.stores.lake.url, options=query.stores.options)
        staging = msgspec.msgpack.encode(staging_for(self.head))
        rows = map_in_arrow(portion_frame(self.spark, work), partial(_copy, address, staging), STAGED_ROWS).collect()
        staged = [bytes(row[0]) for row in rows]
        return seen_by_driver(query.stores.lake, self.head.revision.keys.folder, staged)


def _copy(address: StoreAddress, staging: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    stores = address.open()
    rows = (batch for portion in portions_in(batches) for batch in read_portion(portion, stores, TRUE))
    staged = write_batches(address, staging, rows)
    yield pa.record_batch([pa.array([staged], pa.binary())], names=["staged"])


def run_statement(
    spark: SparkSession,
    lake: Lake | None,
    table: Table | str,
    operation: Operation,
    prepare: Callable[[Attempt], None],
    *,
    token: str | None = None,
    frames: Sequence[DataFrame] = (),
) -> Changed:
    """Commit what `prepare` finds on the newest version. Retries on top of other commits that changed relevant rows.

    `frames` are what it reads besides the table. If one of them reads the table itself, that fixes the version, and
    there is no retry. Raises TableNotFound, CommitConflict, CommitUnknown (then call it again with the same token),
    Spark's errors, and what `prepare` raises.
    """
    target = find_table(spark, table, lake)
    opened = target.writable()
    newest = opened.head()
    base = min((version_read(frame, newest) for frame in frames), key=lambda head: head.root.version, default=newest)
    reads_table = any(versions_read(frame, newest) for frame in frames)
    with ExitStack() as uploads:

        def change(edit: RowEdit) -> None:
            head = Head(edit.transaction.revision, edit.transaction.base)
            prepare(
                Attempt(
                    spark=spark, table=target.at_head(head), edit=edit, uploads=uploads, small_rows=collect.SMALL_ROWS
                )
            )
            if reads_table:
                edit.transaction.rely_on(ReadSet(is_whole=True))

        return commit_edit(
            opened,
            target.file_access,
            operation,
            change,
            token=token,
            base=base if reads_table else None,
            can_redo=not reads_table,
        )
