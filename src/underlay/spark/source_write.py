"""Writing a table as a Python data source: tasks put files into the store, the driver commits them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from underlay.change.append import find_token
from underlay.change.staged import Staged, Staging, commit_staged, discard, staging_for
from underlay.errors import Inconsistent
from underlay.spark.options import SourceOptions
from underlay.spark.source_read import Pin
from underlay.spark.tasks import check_columns, decode_staged, write_batches


@dataclass
class Written(WriterCommitMessage):
    """The files of one task, as bytes."""

    staged: bytes


class TableWriter(DataSourceArrowWriter):
    """Made on the driver before any task, and sent as it is to each task, to the commit and to the abort.

    Nothing that one of them learns reaches another but by messages of tasks.
    """

    def __init__(self, options: SourceOptions, schema: StructType, *, is_overwrite: bool) -> None:
        options.check_for_writing()
        table = options.open()
        head = table.read_head()
        check_columns(schema, head.root.definition)
        self._options = options
        self._is_overwrite = is_overwrite
        self._pin = Pin.of(head)
        self._staging = msgspec.msgpack.encode(staging_for(head))
        self._is_repeat = find_token(table.writable(), head, options.token) is not None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]  # as Spark has it
        """Write the rows of one task. What a failed or superfluous task wrote is named by nobody."""
        if self._is_repeat:
            return Written(msgspec.msgpack.encode(Staged()))
        return Written(write_batches(self._options.lake, self._staging, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make all files one version. Raises CommitConflict, RevisionClosed, CommitUnknown."""
        found = [decode_staged(message.staged) for message in messages if isinstance(message, Written)]
        if len(found) != len(messages):
            raise Inconsistent("a task handed back nothing", place=self._options.table, found=len(found))
        if not self._is_repeat:
            table = self._options.open().writable()
            head = self._pin.open(table.lake.store, table.lake.surroundings)
            commit_staged(table, head, found, token=self._options.token, is_overwrite=self._is_overwrite)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete what tasks wrote, when a task failed: only then the commit surely was not tried (R1).

        Spark aborts after a commit that failed too, and its files may be part of the table. All tasks had handed back
        their files then; a task that did not shows that no commit was begun.
        """
        if all(message is not None for message in messages):
            return
        found = [decode_staged(message.staged) for message in messages if isinstance(message, Written)]
        staging = msgspec.msgpack.decode(self._staging, type=Staging)
        discard(staging, self._options.lake.open().lake, found)
