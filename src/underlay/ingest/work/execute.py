"""Does a work unit: reads sources, writes their rows to files that no version references yet, and reports the outcome
of each source.

Returned files hold no row of a failed source. A source is held in memory until it is read to its end; a source too
large for that is written to files of its own, which are deleted if it fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain

import pyarrow as pa

from underlay.change.files.row_checks import checks_of
from underlay.change.files.rows import RUN_BYTES
from underlay.change.files.writer import FileWriter
from underlay.change.rows.staged import Staged, discard
from underlay.errors import Damaged, InvalidRequest, NewColumn, NotFound, UnderlayError, Unsupported
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.keys import RevisionKeys
from underlay.ingest.exactly_once.commit_claimed import SourceOutcome
from underlay.ingest.exactly_once.rejected_table import rejected_rows
from underlay.ingest.rows.reading import NewColumnsPolicy, Rejected, RowRules
from underlay.ingest.source.source import Source
from underlay.ingest.work.new_columns import find_new_columns
from underlay.ingest.work.read_source import SourceRows
from underlay.ingest.work.work_unit import WorkDone, WorkUnit, pack_rows
from underlay.schema.record import from_record
from underlay.store.store import Store
from underlay.table.commit.commit import put_all

HELD_BYTES = 128 << 20
"""At most this much Arrow memory of one source's rows waits for the source's end."""
FAULTS = (Damaged, InvalidRequest, NotFound, Unsupported)
"""Errors that mean that the source is at fault. Any other, such as Unavailable, ends the work."""
_NEW_COLUMN_HINTS: dict[NewColumnsPolicy, str] = {
    "error": 'Run it again with --new-columns add or ignore (in Python new_columns="add").',
    "add": "It cannot be added: fields are added to structs, also in lists, and not to maps of JSON. To leave it out,"
    " run it again with --new-columns ignore.",
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Advance = Callable[[int], None]


def do_work(work: WorkUnit, store: Store, advance: Advance | None = None, *, held_bytes: int = HELD_BYTES) -> WorkDone:
    """Read the sources, and put their rows as files into the lake's `store`. If it raises, it leaves no files.

    `advance` is told how many bytes of sources were read; its errors pass through. Raises Unavailable when a store does
    not answer, which is not the source's fault.
    """
    worker = _Worker(work, store, advance, held_bytes)
    try:
        return worker.do()
    except BaseException:
        worker.discard(worker.staged)
        raise


class _Worker:
    def __init__(self, work: WorkUnit, store: Store, advance: Advance | None, held_bytes: int) -> None:
        self.staged: list[Staged] = []
        self._work = work
        self._store = store
        self._advance = advance
        self._held_bytes = held_bytes
        self._reading = RowRules(
            schema=from_record(work.staging.definition.schema),
            checks=checks_of(work.staging.definition),
            dialect=work.dialect,
            new_columns=work.new_columns,
            source_column=work.source_column,
            record_bytes=work.record_bytes,
        )
        self._outcomes: list[SourceOutcome] = []
        self._rejected: list[pa.Table] = []

    def do(self) -> WorkDone:
        self._write(table for found in self._work.sources for table in self._take(found))
        return WorkDone(
            staged=Staged(
                entries=tuple(entry for one in self.staged for entry in one.entries),
                layouts=tuple({layout.id: layout for one in self.staged for layout in one.layouts}.values()),
            ),
            outcomes=tuple(self._outcomes),
            rejected=pack_rows(self._rejected),
            told_bytes=self._work.size_bytes if self._advance is not None else 0,
        )

    def discard(self, staged: Iterable[Staged]) -> None:
        with suppress(UnderlayError):  # orphaned files are swept later
            discard(self._work.staging, self._store, staged)

    def _take(self, found: Source) -> list[pa.Table]:
        """The rows of a source for shared files; none if the source failed, or was large and has its own files."""
        source = SourceRows(found, self._work, self._reading, self._advance)
        try:
            held = self._read(source)
        except FAULTS as error:
            self._outcomes.append(self._failed(found, source, error))
            held = []
        else:
            self._keep(found, source)
        source.tell_rest()
        return held

    def _read(self, source: SourceRows) -> list[pa.Table]:
        tables = source.tables()
        held: list[pa.Table] = []
        size = 0
        for table in tables:
            held.append(table)
            size += table.nbytes
            if size > self._held_bytes:
                self._write(chain(held, tables))
                return []
        return held

    def _keep(self, found: Source, source: SourceRows) -> None:
        count = len(source.rejected)
        is_rejected = bool(count and not source.row_count)
        self._outcomes.append(
            SourceOutcome(
                uri=found.uri,
                row_count=source.row_count,
                rejected_count=count,
                error=_all_rejected(source.rejected) if is_rejected else None,
                is_rejected=is_rejected,
                content=source.content,
                options=self._work.fingerprint,
            )
        )
        if count:
            at = _EPOCH + timedelta(microseconds=self._work.at_us)
            self._rejected.append(rejected_rows(found, source.rejected, self._work.run, at))

    def _failed(self, found: Source, source: SourceRows, error: UnderlayError) -> SourceOutcome:
        if isinstance(error, NewColumn) and self._work.new_columns == "add":
            try:
                columns = find_new_columns(found, self._work, self._reading)
            except FAULTS as other:
                reason = reason_of(other, found.uri, self._work.new_columns)
                return SourceOutcome(uri=found.uri, error=reason, options=self._work.fingerprint)
            if len(columns):  # none: it is inside a JSON map, which does not tell keys from fields
                return SourceOutcome(uri=found.uri, new_columns=columns.serialize().to_pybytes())
        count = len(source.rejected) if source.has_too_many_rejected else 0
        return SourceOutcome(
            uri=found.uri,
            error=reason_of(error, found.uri, self._work.new_columns),
            rejected_count=count,
            options=self._work.fingerprint,
        )

    def _write(self, rows: Iterable[pa.Table]) -> None:
        """Put these rows as files; if one of their sources fails meanwhile, put none."""
        staging = self._work.staging
        keys = RevisionKeys(staging.folder)
        entries: list[FileEntry] = []
        layouts: dict[str, FileLayout] = {}
        try:
            for file in FileWriter(staging.definition, staging.next_block).write(self._runs(rows)):
                put_all(self._store, file.objects(keys))
                entries.append(file.entry)
                layouts[file.layout.id] = file.layout
        except BaseException:
            self.discard([Staged(entries=tuple(entries))])
            raise
        self.staged.append(Staged(entries=tuple(entries), layouts=tuple(layouts.values())))

    def _runs(self, rows: Iterable[pa.Table]) -> Iterable[pa.Table]:
        """Batches that are sorted and split separately are made large."""
        definition = self._work.staging.definition
        return gather(rows, RUN_BYTES) if definition.sort_by or definition.partition_by else rows


def gather(tables: Iterable[pa.Table], size_bytes: int) -> Iterator[pa.Table]:
    """Regroup the rows into tables of about this size."""
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size >= size_bytes:
            yield pa.concat_tables(held)
            held, size = [], 0
    if held:
        yield pa.concat_tables(held)


def _all_rejected(rejected: Sequence[Rejected]) -> str:
    """The error of a source in which no row fits."""
    first = rejected[0]
    counted = "its only row was" if len(rejected) == 1 else f"all of its {len(rejected):,} rows were"
    text = f"{counted} rejected; line {first.line}: {first.reason}. Check the format, the delimiter, the header and the"
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], f"{text} columns; other options retry the source.")


def reason_of(error: UnderlayError, uri: str, new_columns: NewColumnsPolicy) -> str:
    """Why a source failed, in one line without its name. The policy determines the hint about a new column."""
    place = (error.place or "").removeprefix(uri).lstrip(":, ") or None
    hint = error.hint or (_NEW_COLUMN_HINTS.get(new_columns) if isinstance(error, NewColumn) else None)
    text = str(type(error)(error.problem, place=place, expected=error.expected, found=error.found, hint=hint))
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)
