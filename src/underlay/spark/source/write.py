"""Writes to a table as a Python data source: tasks put files into the store, the driver commits them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from underlay.change.rows.append import find_token
from underlay.change.rows.staged import Staged, Staging, commit_staged, discard, staging_for
from underlay.errors import CommitConflict, Inconsistent, Unavailable
from underlay.spark.jvm.hadoop_path import revision_url
from underlay.spark.source.driver_channel import DriverLine
from underlay.spark.source.options import SourceOptions
from underlay.spark.source.pinned import Pin
from underlay.spark.tasks.stage_rows import (
    MOST_SECONDS,
    check_columns,
    decode_staged,
    hinting_creation,
    seen_by_driver,
    write_batches,
)
from underlay.table.coordination.upload_intent import announce, withdraw
from underlay.table.open_table import Head


@dataclass
class Written(WriterCommitMessage):
    """The files of one task, as bytes."""

    staged: bytes


class TableWriter(DataSourceArrowWriter):
    """Made on the driver before any task; a copy goes to each task, to the commit and to the abort.

    What one copy learns reaches another only in tasks' messages.
    """

    def __init__(
        self, options: SourceOptions, schema: StructType, *, is_overwrite: bool, driver: DriverLine | None = None
    ) -> None:
        options.check_for_writing()
        with hinting_creation():
            table = options.open()
            head = table.read_head()
        check_columns(schema, head.root.definition, options.naive_timestamps)
        if is_overwrite and driver is not None:
            _check_replaced(driver, head)
        self._options = options
        self._is_overwrite = is_overwrite
        self._pin = Pin.of(head)
        self._staging = msgspec.msgpack.encode(staging_for(head))
        self._is_repeat = find_token(table.writable(), head, options.token) is not None
        self._job = None if self._is_repeat else _announce(head)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]  # as Spark has it
        """Write the rows of one task. Files of failed or superfluous tasks stay unreferenced."""
        if self._is_repeat:
            return Written(msgspec.msgpack.encode(Staged()))
        naive = self._options.naive_timestamps
        return Written(write_batches(self._options.lake, self._staging, iterator, naive))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make all files one version. Raises CommitConflict, RevisionClosed, CommitUnknown, Unavailable."""
        found = [message.staged for message in messages if isinstance(message, Written)]
        if len(found) != len(messages):
            raise Inconsistent("a task returned no result", place=self._options.table, found=len(found))
        if self._is_repeat:
            return
        table = self._options.open().writable()
        head = self._pin.open(table.lake.store, table.lake.surroundings)
        try:
            staged = seen_by_driver(table.lake.store, head.revision.keys.folder, found)
            commit_staged(table, head, staged, token=self._options.token, is_overwrite=self._is_overwrite)
        finally:
            _withdraw(head, self._job)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete what tasks wrote, if a task failed: only then was the commit certainly not tried (R1).

        Spark also aborts after a failed commit, whose files may be part of the table. Then all tasks had returned their
        files; a task that had not proves that no commit was begun.
        """
        if all(message is not None for message in messages):
            return
        _withdraw(self._pin.open(self._options.lake.open().lake), self._job)
        found = [decode_staged(message.staged) for message in messages if isinstance(message, Written)]
        staging = msgspec.msgpack.decode(self._staging, type=Staging)
        discard(staging, self._options.lake.open().lake, found)


def _check_replaced(driver: DriverLine, head: Head) -> None:
    """Raises CommitConflict when the driver's query read an older version than the one that it replaces."""
    problem = driver.why_not_replace(revision_url(head.revision), head.root.version)
    if problem is not None:
        raise CommitConflict(problem)


def _announce(head: Head) -> str:
    """Put an intent that protects the files from sweeps until the commit, and return its name. Nobody renews it
    meanwhile, since the driver has no Python process for the write.
    """
    return announce(head.revision, note="a write by Spark's data source", ttl_seconds=MOST_SECONDS).job


def _withdraw(head: Head, job: str | None) -> None:
    if job is None:
        return
    with suppress(Unavailable):  # it will expire anyway
        withdraw(head.revision, job)
