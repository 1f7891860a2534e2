"""The writer of a table's hot partitions, with times as users write them."""

from __future__ import annotations

from datetime import date, datetime

from underlay.api.opened.context import LakeContext
from underlay.api.opened.moment import read_moment
from underlay.change.update.edit import FileAccess
from underlay.errors import InvalidRequest
from underlay.hot.seal.open import HotWriter, open_writer
from underlay.hot.seal.seal import Sealed
from underlay.hot.writer.appender import HotAppended
from underlay.table.open_table import OpenTable


class HotTableWriter:
    """Writes rows that are queryable at once. Thread-safe; there is one for each table. Made by `Table.hot`."""

    def __init__(self, writer: HotWriter) -> None:
        self.writer = writer
        """The layer below, for tools."""

    def append(self, rows: object) -> HotAppended:
        """Add rows, all or none, and return when they are durable and visible. Takes what `Table.append` takes.

        Raises SchemaMismatch for rows that do not fit or have no timestamp, Unavailable when the disk fails: then they
        were not added. CommitUnknown: they may have been, and the writer is over.
        """
        return self.writer.append(rows)

    def append_nowait(self, rows: object) -> None:
        """Add rows, to be committed within the interval. Waits only while too much waits already. Raises what an
        earlier one met, whose rows are lost then."""
        self.writer.append_nowait(rows)

    def flush(self) -> int:
        """Commit all that was appended. Returns the version. Raises what an earlier `append_nowait` met."""
        return self.writer.flush()

    def seal(self, before: str | date | datetime | None = None, *, everything: bool = False) -> Sealed:
        """Turn partitions that end by `before` into files of the table: by default those that have ended by now.

        Rows that come for them meanwhile wait; rows that come later make a new partition of that time. Exactly once,
        whatever crashes. Raises CommitConflict when the table changed meanwhile, and nothing was sealed.
        """
        if before is not None and everything:
            raise InvalidRequest("give a time, or everything=True")
        return self.writer.seal(None if before is None else read_moment(before), everything=everything)

    def compact(self) -> int:
        """Write all partitions anew, without dead bytes. Returns the version."""
        return self.writer.compact()

    def close(self) -> None:
        """Commit all that was appended, and let another writer begin. A second call does nothing."""
        self.writer.close()

    @property
    def version(self) -> int:
        """The newest version."""
        return self.writer.state.version

    @property
    def row_count(self) -> int:
        """Rows that are hot."""
        return self.writer.state.row_count

    def __enter__(self) -> HotTableWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self.writer)


def open_table_writer(
    table: OpenTable,
    context: LakeContext,
    *,
    partition: str | None,
    commit_interval_ms: float,
    column: str | None,
    is_deduplicated: bool | None,
    most_pending_bytes: int,
    reader_age_seconds: float,
) -> HotTableWriter:
    """See `Table.hot`."""
    if context.hot is None:
        raise InvalidRequest(
            "the lake was opened without a directory for hot partitions",
            place=table.name,
            hint='Write underlay.connect(…, hot="data/hot"), or set UNDERLAY_HOT.',
        )
    writer = open_writer(
        table,
        context.hot.folder(table.head().revision.table_folder),
        FileAccess(stores=context.stores, cache=context.cache),
        partition=partition,
        column=column,
        is_deduplicated=is_deduplicated,
        commit_interval_ms=commit_interval_ms,
        most_pending_bytes=most_pending_bytes,
        reader_age_seconds=reader_age_seconds,
    )
    return HotTableWriter(writer)
