"""One ingest from beginning to end: find the sources, sort out which to read, and ingest them batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, repeat

from underlay.errors import UnderlayError
from underlay.ingest.exactly_once.claim import Claims, claim, refresh
from underlay.ingest.exactly_once.ledger import Contents, Ledger, LedgerEntry, SourceChoice, sort_out
from underlay.ingest.exactly_once.replaced import check_replaceable
from underlay.ingest.exactly_once.run import Run, begin_run
from underlay.ingest.run.batch import Batch, BatchContext
from underlay.ingest.run.new_table import exists, make_table
from underlay.ingest.run.record import Keep, asked_for, keep_record
from underlay.ingest.run.summary import IngestTally, Summary, check_unchanged
from underlay.ingest.source.find import find_sources
from underlay.ingest.source.source import Source
from underlay.ingest.work.progress import IngestProgress, NoProgress
from underlay.ingest.work.settings import Settings
from underlay.ingest.work.workers import MakeWorkers, Workers
from underlay.scan.read.file_stores import FileStores
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.open_table import Head, OpenTable

_POLLS = range(4, 9)
"""The attempt numbers for `Surroundings.back_off` between two checks of another run's sources: it waits up to 2 s."""


def ingest(
    lake: LakeCatalog,
    name: str,
    settings: Settings,
    *,
    workers: MakeWorkers,
    progress: IngestProgress | None = None,
    stores: FileStores | None = None,
    open_table: Callable[[str], OpenTable] | None = None,
    found: Sequence[Source] | None = None,
    keep: Keep = keep_record,
) -> Summary:
    """Bring each source into the table once, and create the table if it is missing.

    When nothing is to be read, no run begins, `workers` is not called, and only the tree of known sources is read.
    `stores` reach the table's files outside the lake; `open_table` opens the table with what this process knows about
    it. `found` are the sources, if the caller has found them already. `keep` is told how the ingest ended, before the
    run is released; by default it leaves a record, also when there was nothing to do.

    Raises NotFound for a pattern without a match, InvalidRequest for a folder, SchemaMismatch when a new table's
    columns cannot be inferred, TooManyRejected, what a worker raises, Unavailable, RevisionClosed and CommitUnknown;
    and SourceChanged by the policy, once all other sources are ingested, unless `found` was given. Whatever it raises,
    it may be called again: committed sources are then known, and the others are free.
    """
    tally = IngestTally(name, asked_for(settings), lake.surroundings, settings.changed)
    is_once = found is None
    again: frozenset[str] = frozenset()
    if found is None:
        found, again = _find(lake, name, settings, tally, keep)
    if found and not exists(lake, name):
        tally.is_created = make_table(lake, name, found, settings)
    if found:
        context = BatchContext(
            settings=settings,
            tally=tally,
            progress=progress or NoProgress(),
            stores=stores or FileStores(lake.store),
        )
        table = open_table(name) if open_table is not None else OpenTable(lake, name)
        _Ingest(table, context, workers, keep, again).run(found)
    summary = tally.summary(len(found))
    if is_once:
        check_unchanged(summary)
    return summary


def _find(
    lake: LakeCatalog, name: str, settings: Settings, tally: IngestTally, keep: Keep
) -> tuple[list[Source], frozenset[str]]:
    """The sources, and the uris of those to read once more. If they cannot be found, that is recorded, if the table
    exists.
    """
    try:
        return find_wanted(settings)
    except UnderlayError as error:
        with suppress(UnderlayError):
            if exists(lake, name):
                keep(OpenTable(lake, name), tally.summary(0), error)
        raise


def find_wanted(settings: Settings) -> tuple[list[Source], frozenset[str]]:
    """All requested sources, ascending by uri, and the uris of those to read once more."""
    options, may_be_none = settings.store_options, settings.may_be_none
    found = {one.uri: one for one in find_sources(settings.sources, options, may_be_none=may_be_none)}
    again = {one.uri: one for one in find_sources(settings.again, options)}
    every = found | again
    return [every[uri] for uri in sorted(every)], frozenset(again)


def select(settings: Settings, head: Head, again: frozenset[str]) -> SourceChoice:
    """Which sources to read besides new ones, given this version's columns."""
    return SourceChoice(
        policy=settings.changed,
        retry_failed=settings.retry_failed,
        again=again,
        options=settings.fingerprint(head.root.definition.schema),
    )


class _Ingest:
    def __init__(
        self, table: OpenTable, context: BatchContext, make_workers: MakeWorkers, keep: Keep, again: frozenset[str]
    ) -> None:
        self._table = table
        self._context = context
        self._settings = context.settings
        self._tally = context.tally
        self._make_workers = make_workers
        self._keep = keep
        self._workers: Workers | None = None
        self._run: Run | None = None
        self._again = again
        self._selection = SourceChoice()
        self._contents = Contents(options=context.settings.store_options)

    def run(self, found: Sequence[Source]) -> None:
        with ExitStack() as held:
            try:
                self._ingest_all(held, found)
            except BaseException as error:
                self._keep(self._table, self._tally.summary(len(found)), error)
                raise
            self._keep(self._table, self._tally.summary(len(found)), None)

    def _ingest_all(self, held: ExitStack, found: Sequence[Source]) -> None:
        head = self._table.head()
        wanted, ledger = self._look(found, head)
        self._context.progress.found(ledger)
        check_replaceable(head, [one.found.uri for one in ledger.wanted(self._selection) if one.rows_there])
        if ledger.touched:
            refresh(self._table, head, ledger.touched)
        claimed = found_in(ledger.claimed)
        while True:
            if wanted:
                claimed += self._ingest(held, wanted)
            if not claimed or not self._settings.waits:
                return
            wanted, claimed = self._wait(claimed)

    def _look(self, found: Sequence[Source], head: Head | None = None) -> tuple[list[Source], Ledger]:
        """The sources that are free and to be read, and the ledger of all."""
        newest = head or self._table.head()
        ledger = sort_out(self._table, newest, found, self._contents)
        self._tally.see(ledger)
        self._selection = select(self._settings, newest, self._again)
        return found_in(ledger.wanted(self._selection)), ledger

    def _wait(self, claimed: Sequence[Source]) -> tuple[list[Source], list[Source]]:
        """Wait until some of the sources are free, or other runs claim none of them. Returns the free ones, and the
        rest.
        """
        polls = chain(_POLLS, repeat(_POLLS[-1]))
        while True:
            wanted, ledger = self._look(claimed)
            left = found_in(ledger.claimed)
            if wanted or not left:
                return wanted, left
            owners = (entry.record.owner for entry in ledger.claimed if entry.record is not None)
            self._context.progress.waiting(len(left), next(owners, None) or "another run")
            self._table.lake.surroundings.back_off(next(polls))

    def _ingest(self, held: ExitStack, wanted: Sequence[Source]) -> list[Source]:
        """Read and commit what can be claimed. Returns the sources that another run claimed first."""
        size = sum(one.size_bytes for one in wanted)
        if self._workers is None:
            self._workers = self._make_workers(size, len(wanted))
            self._tally.workers = type(self._workers).__name__.removesuffix("Workers").lower()
        if self._run is None:
            note, ttl_seconds = asked_for(self._settings), self._settings.ttl_seconds
            self._run = held.enter_context(begin_run(self._table, ttl_seconds=ttl_seconds, note=note))
            self._tally.run, self._tally.owner = self._run.id, self._run.intent.owner
        self._context.progress.begun(len(wanted), size)
        claimed: list[Source] = []
        for part in cut(wanted, self._settings.batch_sources, self._settings.batch_bytes):
            claims = self._claim(self._run, part)
            claimed += found_in(claims.ledger.claimed)
            if claims.entries and (lost := Batch(claims, self._context, self._workers).ingest()):
                self._look(lost)  # so that their state is known, whether this run waits for them or not
                claimed += lost
        return claimed

    def _claim(self, run: Run, part: Sequence[Source]) -> Claims:
        claims = claim(run, part, self._selection, most=len(part), contents=self._contents)
        self._tally.see(claims.ledger)
        return claims


def found_in(entries: Iterable[LedgerEntry]) -> list[Source]:
    """The sources of these entries."""
    return [entry.found for entry in entries]


def cut(found: Sequence[Source], most: int, most_bytes: int) -> Iterator[list[Source]]:
    """Split the sources into parts of at most `most` sources and `most_bytes` bytes; a larger source is a part by
    itself.
    """
    part: list[Source] = []
    size = 0
    for one in found:
        if part and (len(part) == most or size + one.size_bytes > most_bytes):
            yield part
            part, size = [], 0
        part.append(one)
        size += one.size_bytes
    if part:
        yield part
