"""Writes rows into hot partitions of a table, from any number of threads, with one commit for all that wait.

A thread of its own commits. While it waits for the disk, further appends gather, and the next commit takes them all:
the more threads append, the more rows a commit has. Appends are committed in the order in which they came, so a reader
sees a prefix of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread, current_thread
from types import TracebackType
from typing import Self, TypeVar

import pyarrow as pa

from underlay.change.files.row_checks import checks_of
from underlay.change.files.rows import read_rows
from underlay.errors import Inconsistent, InvalidRequest, SchemaMismatch, UnderlayError
from underlay.hot.files.layout import HotLayout, hot_layout
from underlay.hot.txn.disk import HotDisk
from underlay.hot.txn.identity import HotIdentity
from underlay.hot.txn.partition_names import begins_of
from underlay.hot.txn.record import TxnRecord
from underlay.hot.writer.columns import follow_schema
from underlay.hot.writer.commits import HotCommits
from underlay.hot.writer.purge import READER_AGE_SECONDS
from underlay.hot.writer.queue import HotQueue, PendingAppend, closed_writer
from underlay.index.root import Definition
from underlay.schema.cast.conform import conform
from underlay.table.open_table import OpenTable

T = TypeVar("T")
COMMIT_INTERVAL_MS = 100
MOST_PENDING_BYTES = 256 << 20
_SCHEMA_SECONDS = 1.0
"""How old the columns may be by which rows are checked; rows that do not fit are checked by the newest."""
_PURGE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HotAppended:
    """The result of an append: the version of `_txn` that has the rows."""

    version: int
    row_count: int


class HotAppender:
    """The writer of a table's hot partitions, until it is closed. Thread-safe; there is one for each table.

    `append` returns when its rows are durable and visible. `append_nowait` returns at once, unless too much waits: its
    rows are committed within the interval, and an error is raised by the next call.
    """

    def __init__(
        self,
        table: OpenTable,
        folder: Path,
        identity: HotIdentity,
        *,
        commit_interval_ms: float = COMMIT_INTERVAL_MS,
        most_pending_bytes: int = MOST_PENDING_BYTES,
        reader_age_seconds: float = READER_AGE_SECONDS,
        disk: HotDisk | None = None,
    ) -> None:
        """Take the table's lock. Raises LeaseHeld when there is another writer."""
        if commit_interval_ms < 0 or most_pending_bytes <= 0 or reader_age_seconds < 0:
            raise InvalidRequest("interval, memory and age must not be negative, and the memory not 0")
        self.folder = folder
        self.identity = identity
        self._table = table
        self._reader_age_seconds = reader_age_seconds
        self._process = os.getpid()
        self._commits = HotCommits(folder, identity, disk)
        self._queue = HotQueue(most_pending_bytes, commit_interval_ms / 1000)
        self._frozen: frozenset[int] = frozenset()
        self._failed: BaseException | None = None
        self._purged = time.monotonic()
        self._commits.purge(reader_age_seconds)
        self._thread = Thread(target=self._run, name=f"hot {table.name}", daemon=True)
        self._thread.start()

    @property
    def table(self) -> OpenTable:
        """The table that sealed partitions go to."""
        return self._table

    @property
    def state(self) -> TxnRecord:
        """What is committed."""
        return self._commits.state

    def append(self, rows: object) -> HotAppended:
        """Add rows, all or none, and return when they are committed. Takes what `Table.append` takes.

        Raises SchemaMismatch for rows that do not fit or have no timestamp, Unavailable when the disk fails: then they
        were not added. CommitUnknown: they may have been, and the writer is over.
        """
        pending = self._pend(rows, is_awaited=True)
        pending.done.wait()
        if pending.error is not None:
            raise pending.error
        return HotAppended(version=pending.version, row_count=len(pending.times))

    def append_nowait(self, rows: object) -> None:
        """Add rows, to be committed within the interval. Raises what an earlier one met, after which its rows are lost;
        SchemaMismatch."""
        self._raise_failed()
        self._pend(rows, is_awaited=False)

    def flush(self) -> int:
        """Commit all that was appended, and return the version. Raises what an earlier `append_nowait` met."""
        self._check_open()
        last = self._queue.hurry()
        if last is not None:
            last.done.wait()
        self._in_turn(lambda: None)  # a commit that took it may still run
        self._raise_failed()
        return self.state.version

    def compact(self, partitions: Sequence[int] | None = None) -> int:
        """Write partitions anew, without dead bytes: those that begin at these times, or all. Returns the version."""
        self._check_open()
        return self.in_turn(lambda: self._compact(partitions)).version

    def close(self) -> None:
        """Commit all that was appended, and release the lock. A second call does nothing."""
        if os.getpid() != self._process or not self._thread.is_alive():
            return
        self._queue.close()
        self._thread.join()
        self._raise_failed()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._table.name!r}, {str(self.folder)!r})"

    def newest_layout(self, max_staleness_seconds: float = _SCHEMA_SECONDS) -> HotLayout:
        """How rows are stored, by the table's columns."""
        return self._layout_of(self._table.head(max_staleness_seconds).root.definition)

    def freeze(self, begins: Sequence[int]) -> None:
        """Hold back rows for these partitions, and all appends behind them, until `thaw`."""
        self.in_turn(lambda: self._set_frozen(frozenset(begins)))

    def thaw(self) -> None:
        """Go on with all partitions."""
        self._frozen = frozenset()
        self._queue.wake()

    def in_turn(self, work: Callable[[], T]) -> T:
        """Do this in the committing thread, between two commits. Raises what it raises."""
        self._check_open()
        return self._in_turn(work)

    def stop(self) -> None:
        """Refuse everything from now on: the state is not known, and the next writer finds it out."""
        self._queue.close()
        for one in self._queue.drain():
            one.finish(-1, closed_writer())

    @property
    def commits(self) -> HotCommits:
        """What `in_turn` may use."""
        return self._commits

    def _set_frozen(self, begins: frozenset[int]) -> None:
        self._frozen = begins

    def _in_turn(self, work: Callable[[], T]) -> T:
        if current_thread() is self._thread:
            return work()
        finished = Event()
        found: list[T] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                found.append(work())
            except BaseException as error:  # noqa: BLE001  # raised again in the thread that asked
                failed.append(error)
            finally:
                finished.set()

        self._queue.call(run)
        finished.wait()
        if failed:
            raise failed[0]
        return found[0]

    def _pend(self, rows: object, *, is_awaited: bool) -> PendingAppend:
        self._check_open()
        layout, table = self._fitting(rows)
        pending = PendingAppend(table, layout.times(table), layout, is_awaited, time.monotonic())
        if not len(pending.times):
            pending.finish(self.state.version)
            return pending
        # Now, not in the commit: a row whose partition has no name must not fail those of others.
        for begin in set(begins_of(pending.times, self._commits.granularity, self.identity.unit).tolist()):
            self._commits.name_of(begin)
        self._queue.put(pending)
        return pending

    def _fitting(self, rows: object) -> tuple[HotLayout, pa.Table]:
        """The rows with the table's columns. Rows that do not fit those that are known are tried with the newest."""
        read = read_rows(rows, is_kept=True)
        try:
            return self._conformed(list(read()), _SCHEMA_SECONDS)
        except SchemaMismatch:
            return self._conformed(list(read()), 0.0)

    def _conformed(self, runs: list[pa.Table], staleness: float) -> tuple[HotLayout, pa.Table]:
        head = self._table.head(staleness)
        if head.revision.id != self.identity.revision:
            raise Inconsistent(
                "the table was replaced since this writer was opened: its rows would be in no table",
                place=self._table.name,
                hint="Close the writer, and open one for the new table.",
            )
        definition = head.root.definition
        layout = self._layout_of(definition)
        checks = checks_of(definition)
        done, first = [], 0
        for run in runs:
            rows = conform(run, layout.schema, first_row=first)
            if checks is not None:
                checks.verify(rows, first_row=first)
            done.append(rows)
            first += rows.num_rows
        return layout, done[0] if len(done) == 1 else pa.concat_tables(done)

    def _layout_of(self, definition: Definition) -> HotLayout:
        return hot_layout(definition, self.identity.column, is_deduplicated=self.identity.is_deduplicated)

    def _check_open(self) -> None:
        if os.getpid() != self._process:
            raise InvalidRequest("the hot writer belongs to the process that this one was forked from")
        if not self._thread.is_alive():
            raise closed_writer()

    def _raise_failed(self) -> None:
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def _is_blocked(self, one: PendingAppend) -> bool:
        held = self._frozen.union(partition.timestamp for partition in self.state.sealing)
        if not held:
            return False
        begins = begins_of(one.times, self._commits.granularity, self.identity.unit)
        return not held.isdisjoint(begins.tolist())

    def _run(self) -> None:
        try:
            while (taken := self._queue.take(self._is_blocked)) is not None:
                appends, calls = taken
                for call in calls:
                    call()
                if appends:
                    self._commit(appends)
                if time.monotonic() - self._purged > _PURGE_SECONDS:
                    self._purged = time.monotonic()
                    self._commits.purge(self._reader_age_seconds)
        finally:
            self._queue.close()
            for one in self._queue.drain():
                one.finish(-1, closed_writer())
            self._commits.close()

    def _commit(self, appends: list[PendingAppend]) -> None:
        try:
            version = self._write(appends)
        except BaseException as error:  # each caller raises it
            if len(appends) > 1 and isinstance(error, SchemaMismatch):
                for one in appends:  # one of them fits the newest columns no longer: the others must not suffer
                    self._commit([one])
                return
            for one in appends:
                one.finish(-1, error)
                if not one.is_awaited:
                    self._failed = error
            if not isinstance(error, UnderlayError):
                raise
            return
        for one in appends:
            one.finish(version)

    def _write(self, appends: list[PendingAppend]) -> int:
        layout = appends[-1].layout
        if any(one.layout is not layout for one in appends):
            layout = self.newest_layout()
        tables = [follow_schema(one.rows, one.layout.schema, layout.schema) for one in appends]
        rows = tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()
        return self._commits.append(rows, layout.times(rows), layout).version

    def _compact(self, partitions: Sequence[int] | None) -> TxnRecord:
        known = [one.timestamp for one in self.state.partitions if not one.is_sealing]
        chosen = known if partitions is None else [one for one in partitions if one in known]
        return self._commits.compact([one for one in chosen if one not in self._frozen], self.newest_layout(0.0))
