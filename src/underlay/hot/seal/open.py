"""Opens the writer of a table's hot partitions: chooses their column, makes the directory, finishes what was begun."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from underlay.change.update.edit import FileAccess
from underlay.errors import CommitConflict, Inconsistent, InvalidRequest
from underlay.hot.files.layout import check_time_column, hot_layout
from underlay.hot.seal.seal import Sealed, finish_seal, seal_partitions
from underlay.hot.txn.disk import HotDisk
from underlay.hot.txn.identity import HotIdentity, check_identity, read_identity, write_identity
from underlay.hot.txn.partition_names import Granularity, end_of, read_granularity
from underlay.hot.writer.appender import COMMIT_INTERVAL_MS, MOST_PENDING_BYTES, HotAppender
from underlay.hot.writer.commits import make_folder
from underlay.hot.writer.purge import READER_AGE_SECONDS
from underlay.index.operation import Operation
from underlay.index.root import Definition
from underlay.runtime.locks import ProcessLock
from underlay.schema.record import from_record
from underlay.schema.types import Field, Scalar, TypeKind
from underlay.table.commit.commit import commit
from underlay.table.open_table import Head, OpenTable
from underlay.table.versions.environment import uuid7


class HotWriter(HotAppender):
    """Writes rows that are queryable at once, and turns finished partitions into files of the table. Made by
    `Table.hot`."""

    files: FileAccess
    _sealing: ProcessLock

    def seal(self, before_us: int | None = None, *, everything: bool = False) -> Sealed:
        """Turn partitions that end by then into files of the table, by default those that ended by now; or all.

        `before_us` is microseconds since 1970. Rows that come for them meanwhile wait; rows that come later make a new
        partition of that time. Raises CommitConflict when the table changed meanwhile, and nothing was sealed.
        """
        limit = before_us if before_us is not None else time.time_ns() // 1000
        scale = 1000 if self.identity.unit == "ns" else 1
        with self._sealing:
            chosen = [
                one.timestamp
                for one in self.state.partitions
                if everything or self._ends_by(one.timestamp, limit * scale)
            ]
            return seal_partitions(self, self.files, chosen)

    def _ends_by(self, begin: int, limit: int) -> bool:
        end = end_of(begin, Granularity(self.identity.partition), self.identity.unit)
        return end is not None and end <= limit


def open_writer(
    table: OpenTable,
    folder: Path,
    files: FileAccess,
    *,
    partition: str | None = None,
    column: str | None = None,
    is_deduplicated: bool | None = None,
    commit_interval_ms: float = COMMIT_INTERVAL_MS,
    most_pending_bytes: int = MOST_PENDING_BYTES,
    reader_age_seconds: float = READER_AGE_SECONDS,
    disk: HotDisk | None = None,
) -> HotWriter:
    """The writer of the hot partitions in `folder`, which is made if there are none yet. See `Table.hot`."""
    head = table.head()
    disk = disk or HotDisk()
    known = read_identity(folder)
    identity = _identity(head, known, folder, partition, column, is_deduplicated)
    hot_layout(head.root.definition, identity.column, is_deduplicated=identity.is_deduplicated)
    if known is None:
        make_folder(folder, disk)
        write_identity(folder, identity, disk)
    writer = HotWriter(
        table,
        folder,
        identity,
        commit_interval_ms=commit_interval_ms,
        most_pending_bytes=most_pending_bytes,
        reader_age_seconds=reader_age_seconds,
        disk=disk,
    )
    writer.files = files
    writer._sealing = ProcessLock()
    try:
        _count_seals(writer)
        finish_seal(writer, files)
    except BaseException:
        writer.close()
        raise
    return writer


def _identity(
    head: Head,
    known: HotIdentity | None,
    folder: Path,
    partition: str | None,
    column: str | None,
    is_deduplicated: bool | None,
) -> HotIdentity:
    """What lies in the folder, or shall; what is not asked for stays as it is. Raises Inconsistent."""
    definition = head.root.definition
    schema = from_record(definition.schema)
    if known is not None and column is None:
        field = next((one for one in schema.fields if one.id == known.column), None)
        if field is None:
            raise InvalidRequest("the column by whose time hot partitions are cut is not in the table any longer")
    else:
        field = time_column(definition, column)
    wanted = HotIdentity(
        id=uuid7() if known is None else known.id,
        table=head.revision.table_folder,
        revision=head.revision.id,
        column=field.id,
        partition=read_granularity(partition or (known.partition if known else Granularity.DAY)).value,
        unit="ns" if isinstance(field.type, Scalar) and field.type.unit == "ns" else "us",
        is_deduplicated=(known.is_deduplicated if known else False) if is_deduplicated is None else is_deduplicated,
    )
    if known is not None:
        check_identity(known, wanted, folder)
        return known
    return wanted


def time_column(definition: Definition, name: str | None) -> Field:
    """The column of the timestamps: the named one, else the first of the table's order or partitions, else the only
    one. Raises InvalidRequest."""
    schema = from_record(definition.schema)
    if name is not None:
        return check_time_column(schema, name)
    moments = [one for one in schema.fields if isinstance(one.type, Scalar) and one.type.kind is TypeKind.TIMESTAMP]
    moments = moments or [
        one for one in schema.fields if isinstance(one.type, Scalar) and one.type.kind is TypeKind.DATE
    ]
    preferred: Sequence[int] = [
        *(one.field for one in definition.sort_by),
        *(one.field for one in definition.partition_by),
    ]
    for field in preferred:
        found = next((one for one in moments if one.id == field), None)
        if found is not None:
            return found
    if len(moments) != 1:
        raise InvalidRequest(
            "it is not clear by which column's time hot partitions are cut"
            if moments
            else "the table has no timestamp",
            found=", ".join(one.name for one in moments) or None,
            hint="Name it: table.hot(column=…).",
        )
    return moments[0]


def _count_seals(writer: HotWriter) -> None:
    """Let the root know this hot table, and count seals from the same number."""
    if writer.state.sealed_epoch:
        return
    fence = writer.identity.fence
    head = writer.table.head()
    if fence not in head.root.fences:
        transaction = writer.table.begin(head, Operation.JOB)
        transaction.take_over(fence)
        try:
            root = commit(transaction)
        except CommitConflict:
            root = writer.table.head().root  # it landed in an attempt that looked as if it had not
            if fence not in root.fences:
                raise
    else:
        root = head.root
    if writer.state.partitions:
        raise Inconsistent("hot partitions were committed before seals were counted", place=str(writer.folder))
    writer.in_turn(lambda: writer.commits.set_sealed_epoch(root.fences[fence]))
