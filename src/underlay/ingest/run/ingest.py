"""One ingest from beginning to end: which sources are meant, which of them are to be read, and batch after batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, repeat

from underlay.errors import UnderlayError
from underlay.ingest.exactly_once.claim import Claims, claim
from underlay.ingest.exactly_once.ledger import Ledger, LedgerEntry, sort_out
from underlay.ingest.exactly_once.run import Run, begin_run
from underlay.ingest.run.batch import Batch, Crew
from underlay.ingest.run.new_table import exists, make_table
from underlay.ingest.run.record import Ending, Keep, asked_for, keep_record
from underlay.ingest.run.summary import Summary
from underlay.ingest.run.tally import IngestTally
from underlay.ingest.source.find import find_sources
from underlay.ingest.source.source import Source
from underlay.ingest.work.progress import IngestProgress, NoProgress
from underlay.ingest.work.settings import Settings
from underlay.ingest.work.workers import MakeWorkers
from underlay.scan.read.file_stores import FileStores
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.open_table import OpenTable

_POLLS = range(4, 9)
"""How long is waited between two looks at another run's sources, see `Surroundings.back_off`: up to 2 s."""


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
    """Bring each source into the table once, and make the table when there is none.

    When nothing is to be read, no run begins, and `workers` is not asked; the tree of known sources is looked at, and
    nothing else. `stores` are for files of the table that lie elsewhere, `open_table` opens it as this process knows
    it. `found` are the sources, where somebody has looked for them already. `keep` is told how it ended, before
    the run is released; by default it leaves a record, also when there was nothing to do.

    Raises NotFound for a pattern without a match, InvalidRequest for a folder, SourceChanged by the policy,
    SchemaMismatch when a new table's columns cannot be told, TooManyRejected, what a worker raises, Unavailable,
    RevisionClosed and CommitUnknown. Whatever it raises, it may be called again: what was committed is known then, and
    what was not is free.
    """
    tally = IngestTally(name, lake.surroundings)
    if found is None:
        found = _find(lake, name, settings, tally, keep)
    if found and not exists(lake, name):
        tally.is_created = make_table(lake, name, found, settings)
    if found:
        crew = Crew(
            settings=settings,
            make_workers=workers,
            tally=tally,
            progress=progress or NoProgress(),
            stores=stores or FileStores(lake.store),
        )
        table = open_table(name) if open_table is not None else OpenTable(lake, name)
        _Ingest(table, crew, keep).run(found)
    return tally.summary(len(found))


def _find(lake: LakeCatalog, name: str, settings: Settings, tally: IngestTally, keep: Keep) -> list[Source]:
    """The sources. That they cannot be found is told, where there is a table."""
    try:
        return find_sources(settings.sources, settings.store_options, may_be_none=settings.may_be_none)
    except UnderlayError as error:
        with suppress(UnderlayError):
            if exists(lake, name):
                keep(OpenTable(lake, name), Ending(summary=tally.summary(0), settings=settings, error=error))
        raise


class _Ingest:
    def __init__(self, table: OpenTable, crew: Crew, keep: Keep) -> None:
        self._table = table
        self._crew = crew
        self._settings = crew.settings
        self._keep = keep
        self._run: Run | None = None

    def run(self, found: Sequence[Source]) -> None:
        with ExitStack() as held:
            try:
                self._ingest_all(held, found)
            except BaseException as error:
                self._keep(self._table, self._ending(len(found), error))
                raise
            self._keep(self._table, self._ending(len(found), None))

    def _ending(self, count: int, error: BaseException | None) -> Ending:
        return Ending(
            summary=self._crew.tally.summary(count),
            settings=self._settings,
            workers="" if self._crew.workers is None else type(self._crew.workers).__name__,
            owner=None if self._run is None else self._run.intent.owner,
            error=error,
        )

    def _ingest_all(self, held: ExitStack, found: Sequence[Source]) -> None:
        wanted, ledger = self._look(found)
        self._crew.progress.found(ledger)
        claimed = found_in(ledger.claimed)
        while True:
            if wanted:
                claimed += self._ingest(held, wanted)
            if not claimed or not self._settings.waits:
                return
            wanted, claimed = self._wait(claimed)

    def _look(self, found: Sequence[Source]) -> tuple[list[Source], Ledger]:
        """Those of the sources that are to be read and free, and what is known of all."""
        ledger = sort_out(self._table, self._table.head(), found)
        self._crew.tally.see(ledger)
        return found_in(ledger.wanted(self._settings.changed, retry_failed=self._settings.retry_failed)), ledger

    def _wait(self, claimed: Sequence[Source]) -> tuple[list[Source], list[Source]]:
        """Until some of the sources are free, or none is another's any more; those that are free, and the others."""
        polls = chain(_POLLS, repeat(_POLLS[-1]))
        while True:
            wanted, ledger = self._look(claimed)
            left = found_in(ledger.claimed)
            if wanted or not left:
                return wanted, left
            owners = (entry.record.owner for entry in ledger.claimed if entry.record is not None)
            self._crew.progress.waiting(len(left), next(owners, None) or "another run")
            self._table.lake.surroundings.back_off(next(polls))

    def _ingest(self, held: ExitStack, wanted: Sequence[Source]) -> list[Source]:
        """Read and commit what can be claimed; the sources that another run was first to claim."""
        size = sum(one.size_bytes for one in wanted)
        workers = self._crew.hire(size, len(wanted))
        if self._run is None:
            note, ttl_seconds = asked_for(self._settings), self._settings.ttl_seconds
            self._run = held.enter_context(begin_run(self._table, ttl_seconds=ttl_seconds, note=note))
            self._crew.tally.run = self._run.id
        self._crew.progress.begun(len(wanted), size)
        claimed: list[Source] = []
        for part in cut(wanted, self._settings.batch_sources, self._settings.batch_bytes):
            claims = self._claim(self._run, part)
            claimed += found_in(claims.ledger.claimed)
            if claims.entries and (lost := Batch(claims, self._crew, workers).ingest()):
                self._look(lost)  # so that it is known what became of them, whether they are waited for or not
                claimed += lost
        return claimed

    def _claim(self, run: Run, part: Sequence[Source]) -> Claims:
        policy, retry_failed = self._settings.changed, self._settings.retry_failed
        claims = claim(run, part, policy=policy, retry_failed=retry_failed, most=len(part))
        self._crew.tally.see(claims.ledger)
        return claims


def found_in(entries: Iterable[LedgerEntry]) -> list[Source]:
    """The sources of these entries."""
    return [entry.found for entry in entries]


def cut(found: Sequence[Source], most: int, most_bytes: int) -> Iterator[list[Source]]:
    """The sources in parts of at most so many, and so many bytes; one that is larger is a part by itself."""
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
