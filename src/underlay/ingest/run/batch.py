"""Ingests a batch: sources that are claimed together, read by workers, and committed together.

When another writer interferes, only the affected work is redone: units with sources whose claims were lost are redone
without these; all units are redone when the table's definition changed so that rows must be checked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec
import pyarrow as pa

from underlay.change.define.evolution import add_columns
from underlay.change.rows.staged import discard, staging_for
from underlay.errors import Busy, ClaimLost, CommitConflict, CommitUnknown, TooManyRejected, UnderlayError
from underlay.ingest.exactly_once.claim import Claims
from underlay.ingest.exactly_once.commit_claimed import SourceOutcome, commit_claimed
from underlay.ingest.exactly_once.rejected_table import SUFFIX, reject
from underlay.ingest.exactly_once.replaced import source_column
from underlay.ingest.run.results import BatchResults
from underlay.ingest.run.summary import IngestTally
from underlay.ingest.source.source import Source
from underlay.ingest.work.groups import group
from underlay.ingest.work.new_columns import join_columns
from underlay.ingest.work.progress import IngestProgress
from underlay.ingest.work.settings import Settings
from underlay.ingest.work.work_unit import WorkDone, WorkUnit
from underlay.ingest.work.workers import Workers
from underlay.scan.read.file_stores import FileStores
from underlay.schema.convert.new_fields import lacking_names
from underlay.schema.record import from_record
from underlay.table.commit.conflicts import is_stricter

_ATTEMPTS = 20
"""How many times a batch starts again after other writers interfered."""
_UNKNOWN_ATTEMPTS = 5
_COLUMN_ROUNDS = 4
"""How often columns may be added for one batch."""
_HELD_BYTES = 8 << 20
"""At most this much of compressed rejected rows is held before it is committed."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchContext:
    """What all batches of an ingest share."""

    settings: Settings
    tally: IngestTally
    progress: IngestProgress
    stores: FileStores
    """For the table's files outside the lake."""


class Batch:
    """Claimed sources on their way into the table."""

    def __init__(self, claims: Claims, context: BatchContext, workers: Workers) -> None:
        self._claims = claims
        self._context = context
        self._workers = workers
        self._surroundings = claims.run.revision.surroundings
        self._begun_at = self._surroundings.monotonic()
        self._results = BatchResults()
        self._lost: list[Source] = []
        self._column_rounds = 0
        self._is_unknown = False
        self._may_delete = True
        """Whether the files are unreferenced and will stay so."""

    def ingest(self) -> list[Source]:
        """Read and commit. Returns the sources that other runs took over meanwhile.

        When it raises, nothing of the batch is in the table, unless what it raises is CommitUnknown; rejected rows may
        be recorded. Raises TooManyRejected, and what workers and commits raise.
        """
        try:
            for attempt in range(_ATTEMPTS):
                if not self._claims.entries or self._try_once():
                    return self._lost
                self._surroundings.back_off(min(attempt, 4))
            table = self._claims.run.table.name
            raise Busy("others keep changing the table", place=table, hint="Retry later.")
        except BaseException:
            self._drop()
            raise

    def _try_once(self) -> bool:
        """Whether it is committed; False when other writers interfered, and it has to be retried."""
        try:
            self._read()
            # Rejected rows first: if the run dies between the two commits, the next run reads the sources again and
            # replaces them. The other way round they would be lost, since the sources would be known already.
            self._record_rejected()
            self._check_rejected()
            self._commit()
        except ClaimLost as lost:
            self._leave(set(lost.uris))
        except CommitConflict:
            self._look_again()
        else:
            return True
        return False

    def _read(self) -> None:
        """Have workers read the sources that are not read yet."""
        while todo := self._unread():
            lacking: list[SourceOutcome] = []
            with closing(self._workers.run(self._works(todo))) as done:
                for one in done:
                    lacking += self._take(one)
            if lacking:
                self._add_columns(lacking)

    def _unread(self) -> list[Source]:
        read = {outcome.uri for outcome in self._results.outcomes()}
        return [found for found in self._claims.found if found.uri not in read]

    def _works(self, found: Sequence[Source]) -> list[WorkUnit]:
        settings, staging = self._context.settings, staging_for(self._claims.head)
        fingerprint = settings.fingerprint(staging.definition.schema)
        return [
            WorkUnit(
                run=self._claims.run.id,
                at_us=self._surroundings.now_us(),
                sources=sources,
                kind=settings.kind,
                staging=staging,
                dialect=settings.dialect,
                new_columns=settings.new_columns,
                source_column=source_column(from_record(staging.definition.schema)),
                record_bytes=settings.record_bytes,
                fingerprint=fingerprint,
                hive=settings.hive,
                store_options=dict(settings.store_options),
            )
            for sources in group(found, self._workers.parallelism)
        ]

    def _take(self, done: WorkDone) -> list[SourceOutcome]:
        """Keep what a work made, and return the sources for which columns have to be added first."""
        lacking = [outcome for outcome in done.outcomes if outcome.new_columns is not None]
        read = tuple(outcome for outcome in done.outcomes if outcome.new_columns is None)
        self._results.add(msgspec.structs.replace(done, outcomes=read))
        told_early = self._size(lacking) if done.told_bytes else 0
        self._tell(read, told_bytes=done.told_bytes - told_early)
        self._context.progress.advanced(read_bytes=-told_early)
        threshold = self._context.settings.max_rejected
        if threshold is not None and threshold.rows is not None:
            self._check_rejected()
        if self._results.unrecorded_bytes() > _HELD_BYTES:
            self._record_rejected()
        return lacking

    def _tell(self, read: Iterable[SourceOutcome], *, told_bytes: int = 0, sign: int = 1) -> None:
        every = list(read)
        self._context.progress.advanced(
            sources=sign * len(every),
            rows=sign * sum(outcome.row_count for outcome in every),
            rejected=sign * sum(outcome.rejected_count for outcome in every),
            read_bytes=sign * (self._size(every) - told_bytes),
        )

    def _size(self, outcomes: Iterable[SourceOutcome]) -> int:
        uris = {outcome.uri for outcome in outcomes}
        return sum(found.size_bytes for found in self._claims.found if found.uri in uris)

    def _add_columns(self, lacking: Sequence[SourceOutcome]) -> None:
        """Add the columns that the table lacks. Sources whose columns cannot be added fail; others are read again."""
        found = sorted((one.uri, one.new_columns or b"") for one in lacking)
        wanted = [(uri, pa.ipc.read_schema(pa.py_buffer(columns))) for uri, columns in found]
        schema = from_record(self._claims.head.root.definition.schema)
        columns, refused = join_columns(wanted, schema)
        self._column_rounds += 1
        if self._column_rounds > _COLUMN_ROUNDS:
            refused = {uri: "its columns keep changing while it is read" for uri, _ in wanted}
        elif len(columns):
            add_columns(self._claims.run.table, columns)
            self._context.tally.add_columns(".".join(path) for path in lacking_names(columns, schema))
        before = self._context.settings.fingerprint(self._claims.head.root.definition.schema)
        self._results.fail(refused.items(), before)
        self._look_again()

    def _record_rejected(self) -> None:
        """Commit the rejected rows of the sources that were read, which has to come before their rows."""
        uris, rows = self._results.unrecorded()
        entries = tuple(entry for entry in self._claims.entries if entry.found.uri in uris)
        if entries:
            self._repeat(lambda: reject(replace(self._claims, entries=entries), rows, stores=self._context.stores))
        self._results.recorded()

    def _check_rejected(self) -> None:
        """Raise TooManyRejected above the limit, once the rejected rows are recorded."""
        threshold, tally = self._context.settings.max_rejected, self._context.tally
        outcomes = self._results.outcomes()
        rejected = tally.rejected_count + sum(outcome.rejected_count for outcome in outcomes)
        read = rejected + tally.row_count + sum(outcome.row_count for outcome in outcomes)
        if threshold is None or not threshold.is_exceeded(rejected, read):
            return
        first = self._results.first_rejected
        self._record_rejected()
        table = self._claims.run.table.name
        raise TooManyRejected(
            f"{rejected} of {read} rows do not fit the table, such as {'; '.join(first) or 'those of earlier batches'}",
            place=table,
            expected=f"at most {threshold}",
            hint=f"This batch was not committed. See select * from {table}{SUFFIX}; fix the sources, or allow more.",
        )

    def _commit(self) -> None:
        outcomes = self._results.outcomes()
        seconds = self._surroundings.monotonic() - self._begun_at
        staged = [done.staged for done in self._results.done]
        self._may_delete = False  # from here on, the commit may have landed before an interrupt
        try:
            done = self._repeat(
                lambda: commit_claimed(self._claims, staged, outcomes, stores=self._context.stores, seconds=seconds)
            )
        except CommitConflict:
            self._may_delete = not self._is_unknown
            raise
        found = {one.uri: one for one in self._claims.found}
        self._context.tally.commit(done.version, outcomes, found, [entry.found.uri for entry in self._claims.replaced])
        self._context.progress.committed(done.version)

    def _repeat(self, call: Callable[[], T]) -> T:
        """Repeat the call while its outcome is unknown: it finds out by its own records whether it landed before."""
        for attempt in range(_UNKNOWN_ATTEMPTS):
            try:
                return call()
            except CommitUnknown:
                self._is_unknown = True
                self._surroundings.back_off(attempt + 4)
        return call()

    def _leave(self, uris: set[str]) -> None:
        """Continue without sources that another run holds now."""
        self._drop(uris)
        self._lost += [found for found in self._claims.found if found.uri in uris]
        entries = tuple(entry for entry in self._claims.entries if entry.found.uri not in uris)
        self._claims = replace(self._claims, entries=entries)

    def _look_again(self) -> None:
        """Continue from the newest version, keeping what was read unless the definition of the table got stricter."""
        before, head = self._claims.head.root.definition, self._claims.run.table.head()
        if is_stricter(before, head.root.definition):
            self._drop()
        self._claims = replace(self._claims, head=head)

    def _drop(self, uris: set[str] | None = None) -> None:
        """Discard works, all or those with these sources, and delete their files if no version can reference them."""
        dropped = self._results.drop(uris)
        self._tell((outcome for done in dropped for outcome in done.outcomes), sign=-1)
        if self._may_delete:
            with suppress(UnderlayError):  # orphaned files are swept later
                staging = staging_for(self._claims.head)
                discard(staging, self._claims.run.revision.store, [done.staged for done in dropped])
