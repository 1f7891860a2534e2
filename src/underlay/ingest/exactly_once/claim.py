"""Claims sources: a tiny commit after which no other run ingests them as long as this one is alive (R9).

When runs race for the same sources, one commits first. The conflict rule for sources makes the others look again, and
they claim what is left; so each source is claimed by only one run. A claim whose run's lease expired is taken over in
the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from underlay.errors import Busy, CommitConflict, InvalidRequest, JobTakenOver
from underlay.index.operation import Operation
from underlay.index.root import SourceRecord
from underlay.ingest.exactly_once.ledger import Contents, Ledger, LedgerEntry, SourceChoice, sort_out
from underlay.ingest.exactly_once.replaced import check_replaceable
from underlay.ingest.exactly_once.run import Run
from underlay.ingest.source.source import Source
from underlay.table.commit.commit import commit
from underlay.table.open_table import Head, OpenTable

MOST = 10_000
"""The default limit of sources per claim: the root of the commit holds them all."""
_ATTEMPTS = 100
_CHANCE_DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Sources that a run claimed in one commit, and the state of the others."""

    run: Run
    head: Head
    """The version that holds the claims, or that showed nothing to claim."""
    entries: tuple[LedgerEntry, ...]
    """The claimed sources, as they were before the claim."""
    ledger: Ledger
    """All requested sources, as they were before the claim."""
    left: int = 0
    """Free sources beyond the limit of one claim."""

    @property
    def found(self) -> list[Source]:
        """The claimed sources."""
        return [entry.found for entry in self.entries]

    @property
    def replaced(self) -> list[LedgerEntry]:
        """The claimed sources that have rows in the table."""
        return [entry for entry in self.entries if entry.rows_there]


def claim(
    run: Run,
    found: Sequence[Source],
    selection: SourceChoice | None = None,
    *,
    most: int = MOST,
    contents: Contents | None = None,
) -> Claims:
    """Claim at most `most` of the sources that are free and to be ingested. No commit when there are none.

    Raises InvalidRequest when rows of a source are to be replaced in a table without the column `_source`,
    RevisionClosed, and CommitUnknown: then the sources may be claimed, and become free when the run is released.
    """
    surroundings = run.revision.surroundings
    for attempt in range(_ATTEMPTS):
        head = run.table.head()
        if head.revision.id != run.revision.id:
            raise InvalidRequest("the run belongs to another revision of the table", hint="Start a new run.")
        ledger = sort_out(run.table, head, found, contents)
        free = ledger.wanted(selection)
        entries = tuple(_choose(free, most, run.id if attempt else None))
        left = len(free) - len(entries)
        if not entries:
            return Claims(run=run, head=head, entries=(), ledger=ledger)
        check_replaceable(head, [entry.found.uri for entry in entries if entry.rows_there])
        try:
            head = _commit(run, head, entries)
        except JobTakenOver:
            raise
        except CommitConflict:  # another run claimed some of them first, or a rollback restored older records
            surroundings.back_off(min(attempt, 4))
            continue
        return Claims(run=run, head=head, entries=entries, ledger=ledger, left=left)
    raise Busy("other runs keep claiming these sources", place=run.table.name, hint="Retry later.")


def _choose(free: Sequence[LedgerEntry], most: int, run: str | None) -> Sequence[LedgerEntry]:
    """At most `most` sources. After a lost race, start at an offset derived from the run id, so that competing runs
    spread out instead of racing for the same sources again."""
    if run is None or len(free) <= most:
        return free[:most]
    begin = int(run[-_CHANCE_DIGITS:], 16) % len(free)
    return [*free[begin:], *free[:begin]][:most]


def _commit(run: Run, head: Head, entries: Sequence[LedgerEntry]) -> Head:
    transaction = run.table.begin(head, Operation.CLAIM)
    for entry in entries:
        transaction.add_source(claimed(entry, run.id))
    transaction.count("sources_claimed", len(entries))
    return Head(head.revision, commit(transaction))


def refresh(table: OpenTable, head: Head, touched: Sequence[LedgerEntry]) -> None:
    """Record the current identities of known sources, so that nobody has to hash them again. Changes no rows.

    Leaves records that another run changed meanwhile. Raises RevisionClosed, CommitUnknown.
    """
    for begin in range(0, len(touched), MOST):
        transaction = table.begin(head, Operation.CLAIM)
        for entry in touched[begin : begin + MOST]:
            if entry.record is not None:
                transaction.add_source(_touched(entry.found, entry.record))
        transaction.count("sources_touched", len(touched[begin : begin + MOST]))
        try:
            head = Head(head.revision, commit(transaction))
        except JobTakenOver:
            raise
        except CommitConflict:
            head = table.head()


def _touched(found: Source, record: SourceRecord) -> SourceRecord:
    """The record of a source whose bytes are ingested already. A run that claimed it and died must not take the rows
    for its own.
    """
    owner = None if record.status == "claimed" else record.owner
    return replace(record, identity=found.identity, status="done", owner=owner, error=None, options=None)


def claimed(entry: LedgerEntry, run: str) -> SourceRecord:
    """The record of a claim. It keeps what is known about the source's rows in the table."""
    if entry.record is not None and entry.rows_there:
        identity = "" if entry.record.status == "failed" else entry.record.identity
        return replace(entry.record, identity=identity, status="claimed", owner=run, error=None, options=None)
    return SourceRecord(uri=entry.found.uri, identity=entry.found.identity, version=0, status="claimed", owner=run)
