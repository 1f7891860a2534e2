"""Commits the rows of a run's claimed sources together with their records, while the claims are still its own (R9).

The records are checked in the head that the commit follows (see `commit_once`), so a run that was paused, and whose
claims were taken over meanwhile, cannot commit: it raises ClaimLost, and redoes its work without those sources. After
CommitUnknown the caller repeats the call: if the first one was committed, the records bear the run's name, and nothing
is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from underlay.change.rows.append import Appended
from underlay.change.rows.staged import Staged
from underlay.errors import ClaimLost, InvalidRequest
from underlay.index.operation import Operation
from underlay.index.outline import VersionSummary
from underlay.index.root import Root, SourceRecord
from underlay.ingest.exactly_once.claim import Claims
from underlay.ingest.exactly_once.commit_once import Repeated, add_staged, commit_once, newest_base, rows_of
from underlay.ingest.exactly_once.replaced import SOURCE_COLUMN, check_replaceable, delete_rows_of
from underlay.ingest.source.source import Source
from underlay.scan.read.file_stores import FileStores
from underlay.table.commit.transaction import Transaction
from underlay.table.open_table import Head

ERROR_CHARACTERS = 500
"""At most this much of a failed source's error is kept: the root of the version holds it."""
_SHOWN = 3


class SourceOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one source: its rows, why it could not be read, or columns that the table lacks.

    Made by the worker that read the source, and passed on unchanged.
    """

    uri: str
    row_count: int = 0
    rejected_count: int = 0
    """The number of rejected rows of a source that failed for having too many; these rows are not recorded."""
    error: str | None = None
    is_rejected: bool = False
    """Whether it failed because every row was rejected; these rows are recorded."""
    content: str | None = None
    """Size and hash of its bytes, if known."""
    options: str | None = None
    """If it failed, a fingerprint of the options that it was read with."""
    new_columns: bytes | None = None
    """An Arrow schema, if columns have to be added before the source is read again; none of its rows were written."""

    @property
    def has_recorded_rejects(self) -> bool:
        """Whether its rejected rows are in the table of rejected rows."""
        return self.error is None or self.is_rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """What one commit contains."""

    claims: Claims
    staged: Sequence[Staged]
    outcomes: Mapping[str, SourceOutcome]
    found: Mapping[str, Source]
    stores: FileStores
    seconds: float


def commit_claimed(
    claims: Claims,
    staged: Iterable[Staged],
    outcomes: Iterable[SourceOutcome],
    *,
    stores: FileStores | None = None,
    seconds: float = 0.0,
) -> Appended:
    """Commit the rows of some or all claimed sources with their records, in one version. Nothing is deleted.

    `staged` holds the rows of exactly the sources that `outcomes` say were read; it was written for `claims.head`. A
    source that could not be read is recorded as failed. The same version deletes the old rows of replaced sources.
    `stores` reach the table's files outside the lake; `seconds` is how long the work took.

    Raises ClaimLost, which names the sources that are no longer this run's: nothing was changed, and `staged`, which
    holds their rows too, must not be committed. Raises CommitConflict when the table was changed so that the rows no
    longer fit, or another writer changed old rows, RevisionClosed, and CommitUnknown, after which the same call may be
    repeated.
    """
    table = claims.run.table
    batch = _Batch(
        claims=claims,
        staged=tuple(staged),
        outcomes={one.uri: one for one in outcomes},
        found={one.uri: one for one in claims.found},
        stores=stores or FileStores(table.lake.store),
        seconds=seconds,
    )
    _check(batch)
    if not batch.outcomes:
        return Appended(version=claims.head.root.version, row_count=0, file_count=0)
    base = newest_base(table, claims.head)
    return commit_once(table, base, Operation.INGEST, lambda change, head: _prepare(batch, change, head))


def check_claims(claims: Claims) -> None:
    """Raise ClaimLost when another run holds one of the claims in the newest version. A claim may still be lost right
    after.
    """
    table, run = claims.run.table, claims.run.id
    records = table.snapshot(table.head()).find_sources([one.uri for one in claims.found])
    own = {uri for uri, record in records.items() if record.owner == run}
    if lost := [one.uri for one in claims.found if one.uri not in own]:
        raise _lost(claims, lost, records)


def run_of(root: Root | VersionSummary) -> str | None:
    """The run that committed this version; None if no ingest run did."""
    owners = {record.owner for record in root.delta.sources} if root.operation is Operation.INGEST else set()
    return min((owner for owner in owners if owner is not None), default=None)


def _check(batch: _Batch) -> None:
    foreign = batch.outcomes.keys() - batch.found.keys()
    if foreign:
        raise InvalidRequest("cannot commit a source that was not claimed", found=min(foreign))
    expected = sum(one.row_count for one in batch.outcomes.values() if one.error is None)
    if (rows := rows_of(batch.staged)) != expected:
        raise InvalidRequest(
            "the number of staged rows differs from that of the sources",
            place=batch.claims.run.table.name,
            expected=f"{expected} rows",
            found=rows,
        )


def _prepare(batch: _Batch, transaction: Transaction, head: Head) -> None:
    table = batch.claims.run.table
    records = table.snapshot(head).find_sources(list(batch.outcomes))
    _check_claims(batch, records)
    add_staged(transaction, batch.staged)
    for uri, outcome in batch.outcomes.items():
        transaction.add_source(_record(batch.found[uri], outcome, records[uri]))
    replaced = [uri for uri, one in batch.outcomes.items() if one.error is None and records[uri].row_count]
    check_replaceable(head, replaced)
    delete_rows_of(transaction, SOURCE_COLUMN, replaced, batch.stores)
    for name, number in _counts(batch, len(replaced)).items():
        transaction.count(name, number)


def _check_claims(batch: _Batch, records: Mapping[str, SourceRecord]) -> None:
    """Raise Repeated when this run committed all of it before, ClaimLost when a claim is no longer its own."""
    run = batch.claims.run.id
    lost = [uri for uri in batch.outcomes if not _is_claimed_by(run, records.get(uri))]
    if not lost:
        return
    if all(_is_done_by(run, records.get(uri), batch.found[uri]) for uri in batch.outcomes):
        raise Repeated(max(records[uri].version for uri in batch.outcomes))
    raise _lost(batch.claims, lost, records)


def _lost(claims: Claims, uris: Sequence[str], records: Mapping[str, SourceRecord]) -> ClaimLost:
    more = f" and {len(uris) - _SHOWN} more" if len(uris) > _SHOWN else ""
    record = records.get(uris[0]) if uris else None
    return ClaimLost(
        f"{len(uris)} sources are no longer claimed by this run: {', '.join(uris[:_SHOWN])}{more}",
        place=claims.run.table.name,
        expected=claims.run.id,
        found=(record and record.owner) or "no claim",
        hint="Nothing was changed. Redo the work without these sources.",
    ).of(uris)


def _is_claimed_by(run: str, record: SourceRecord | None) -> bool:
    return record is not None and record.status == "claimed" and record.owner == run


def _is_done_by(run: str, record: SourceRecord | None, found: Source) -> bool:
    is_settled = record is not None and record.status in ("done", "failed")
    return record is not None and is_settled and record.owner == run and record.identity == found.identity


def _record(found: Source, outcome: SourceOutcome, claim: SourceRecord) -> SourceRecord:
    is_read = outcome.error is None
    return SourceRecord(
        uri=found.uri,
        identity=found.identity,
        version=0,
        status="done" if is_read else "failed",
        owner=claim.owner,
        row_count=outcome.row_count if is_read else claim.row_count,
        error=None if outcome.error is None else outcome.error[:ERROR_CHARACTERS],
        content=outcome.content if is_read else claim.content,
        options=None if is_read else outcome.options,
    )


def _counts(batch: _Batch, replaced: int) -> dict[str, int]:
    read = [one for one in batch.outcomes.values() if one.error is None]
    return {
        "sources": len(read),
        "sources_failed": len(batch.outcomes) - len(read),
        "sources_replaced": replaced,
        "source_bytes": sum(batch.found[one.uri].size_bytes for one in read),
        "rows_rejected": sum(one.rejected_count for one in batch.outcomes.values() if one.has_recorded_rejects),
        "duration_ms": round(batch.seconds * 1000),
    }
