"""Writes a stream into a table exactly once: tasks put files into the store, the driver commits each epoch once.

A stream is identified by its query's id, which its checkpoint keeps, and the name of the sink. Spark tells the id only
to tasks, so it comes back with their files. One writer is made for the tasks of every epoch, and another one to commit
or abort it: only tasks' messages pass between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from underlay.change.rows.staged import Staged, Staging, discard, staging_for
from underlay.errors import Inconsistent, InvalidRequest, Unavailable, Unsupported
from underlay.ingest.exactly_once.stream import StreamKey, commit_epoch
from underlay.runtime.threads import side_by_side
from underlay.spark.source.options import SourceOptions
from underlay.spark.source.pinned import Pin
from underlay.spark.stream.query import QUERY_ID, read_offsets
from underlay.spark.tasks.stage_rows import (
    MOST_SECONDS,
    check_columns,
    decode_staged,
    hinting_creation,
    seen_by_driver,
    write_batches,
)
from underlay.store import Store
from underlay.table.coordination.upload_intent import announce, withdraw
from underlay.table.versions.environment import Surroundings
from underlay.table.versions.revision import Revision

_THREADS = 8


@dataclass(kw_only=True)
class EpochFiles(WriterCommitMessage):
    """What one task did: its query, the version that its files were written for, the files, and the intent that
    protects them from sweeps, if there are any.
    """

    query_id: str
    pin: Pin
    staged: bytes
    job: str | None


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes epochs. Its constructor raises SchemaMismatch and InvalidRequest, before any task runs."""

    def __init__(self, options: SourceOptions, schema: StructType, *, is_complete: bool = False) -> None:
        options.check_for_streaming_out()
        if is_complete:
            raise InvalidRequest(
                "a stream can only append rows to a table",
                place=options.table,
                found='outputMode("complete")',
                hint='Write outputMode("append"), or foreachBatch with underlay.spark.overwrite.',
            )
        with hinting_creation():
            head = options.open().read_head()
        check_columns(schema, head.root.definition, options.naive_timestamps)
        self._options = options
        self._pin = Pin.of(head)
        self._staging = msgspec.msgpack.encode(staging_for(head))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> EpochFiles:  # type: ignore[override]  # as Spark has it
        """Write the rows of one task. Files of failed or superfluous tasks stay unreferenced."""
        query_id = _query_id()
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            empty = msgspec.msgpack.encode(Staged())
            return EpochFiles(query_id=query_id, pin=self._pin, staged=empty, job=None)
        revision = _revision(self._pin, self._options.lake.open().lake)
        job = announce(revision, note="a stream of Spark", ttl_seconds=MOST_SECONDS).job
        naive = self._options.naive_timestamps
        staged = write_batches(self._options.lake, self._staging, chain([first], batches), naive)
        return EpochFiles(query_id=query_id, pin=self._pin, staged=staged, job=job)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name
        """Make all files one version, unless the table has the epoch. An epoch without rows makes no version.

        Raises ReplayDiffers, CommitConflict, RevisionClosed, CommitUnknown; after these, restart the query to continue.
        """
        found = [message for message in messages if isinstance(message, EpochFiles)]
        if len(found) != len(messages):
            raise Inconsistent("a task returned no result", place=self._options.table, found=len(found))
        if not found:  # no task, no row
            return
        table = self._options.open().writable()
        head = found[0].pin.open(table.lake.store, table.lake.surroundings)
        key = StreamKey(query_id=found[0].query_id, sink=self._options.sink or self._options.table)
        facts = read_offsets(self._options.checkpoint, batchId)
        try:
            staged = seen_by_driver(table.lake.store, head.revision.keys.folder, [one.staged for one in found])
            commit_epoch(table, head, key, batchId, staged, facts=facts)
        finally:
            _withdraw(found, table.lake.store)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's
        """Delete what tasks wrote, if a task failed: only then was the commit certainly not tried (R1)."""
        if all(message is not None for message in messages):
            return
        found = [message for message in messages if isinstance(message, EpochFiles)]
        store = self._options.lake.open().lake
        _withdraw(found, store)
        staging = msgspec.msgpack.decode(self._staging, type=Staging)
        discard(staging, store, [decode_staged(one.staged) for one in found if one.pin.revision == self._pin.revision])


def _query_id() -> str:
    """The id of the query that runs this task."""
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(QUERY_ID)
    if not found:
        raise Unsupported(
            "this version of Spark does not tell tasks the id of their query", hint="Use underlay.spark.batch_writer."
        )
    return found


def _revision(pin: Pin, store: Store) -> Revision:
    return Revision(store, pin.table_folder, pin.revision, Surroundings())


def _withdraw(found: Sequence[EpochFiles], store: Store) -> None:
    def take_back(message: EpochFiles) -> None:
        if message.job is not None:
            with suppress(Unavailable):  # it will expire anyway
                withdraw(_revision(message.pin, store), message.job)

    side_by_side(take_back, found, _THREADS)
