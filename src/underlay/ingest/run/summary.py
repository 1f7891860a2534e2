"""The summary of an ingest: how it is counted, and how the summaries of a watch add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from underlay.errors import SourceChanged
from underlay.ingest.exactly_once.commit_claimed import SourceOutcome
from underlay.ingest.exactly_once.ledger import Ledger, LedgerEntry
from underlay.ingest.rows.reading import ChangedPolicy
from underlay.ingest.source.source import Source
from underlay.table.coordination.run_record import MOST_VERSIONS
from underlay.table.versions.environment import Surroundings

_MOST_FAILURES = 1000
_FATES = {"known": "known", "changed": "changed", "claimed": "claimed", "failed": "failed_before"}
"""The count of a summary for each list of a ledger. Sources in other lists are ingested."""
CHANGED = "it changed since it was ingested; --changed skip keeps its old rows, --changed replace replaces them"
_CHANGED_HINT = 'Use --changed skip (in Python changed="skip") to keep the old rows, --changed replace to replace them.'
_SHOWN = 3
_ADDED = (
    "ingested",
    "replaced",
    "known",
    "skipped",
    "changed",
    "failed",
    "failed_before",
    "row_count",
    "rejected_count",
    "source_bytes",
)
"""Counts that a watch sums over its runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFailure:
    """A source that could not be read."""

    uri: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What one ingest, or all runs of a watch, did. Counts of sources add up to `sources`."""

    table: str
    run: str | None
    """The name of the run; None if none began, as there was nothing to do."""
    owner: str | None = None
    """Host and process of the run; None if none began."""
    asked: str = ""
    """The patterns that were asked for."""
    workers: str = ""
    """Where the work was done: `local` threads or `spark`; empty if there was none."""
    started_us: int
    """Microseconds since 1970."""
    seconds: float
    sources: int
    """All sources found."""
    ingested: int = 0
    """Read and committed by this run, including `replaced`."""
    replaced: int = 0
    """Ingested sources whose older rows were replaced."""
    known: int = 0
    """Already in the table, or ingested by another run meanwhile."""
    skipped: int = 0
    """Changed since they were ingested, and skipped because of the policy."""
    changed: int = 0
    """Changed since they were ingested, an error under the policy; their old rows stay."""
    failed: int = 0
    """Could not be read by this run."""
    failed_before: int = 0
    """Could not be read by an earlier run, and not tried again."""
    claimed: int = 0
    """Claimed by another live run; see `claimed_uris`."""
    row_count: int = 0
    rejected_count: int = 0
    source_bytes: int = 0
    """Stored bytes of the ingested sources."""
    versions: tuple[int, ...] = ()
    """The versions that added their rows."""
    added_columns: tuple[str, ...] = ()
    is_created: bool = False
    """Whether this ingest created the table."""
    failures: tuple[SourceFailure, ...] = ()
    """The sources counted in `failed`, `failed_before` and `changed`, with reasons."""
    claimed_uris: tuple[str, ...] = ()


def check_unchanged(summary: Summary) -> None:
    """Raise SourceChanged when sources changed since they were ingested, if the policy makes that an error."""
    changed = [one.uri for one in summary.failures if one.reason == CHANGED]
    if not changed:
        return
    named = ", ".join(changed[:_SHOWN])
    more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
    counted = (
        "a source changed since it was" if len(changed) == 1 else f"{len(changed)} sources changed since they were"
    )
    others = f" {summary.ingested} other sources were ingested." if summary.ingested > 1 else ""
    others = " Another source was ingested." if summary.ingested == 1 else others
    raise SourceChanged(f"{counted} ingested: {named}{more}", place=summary.table, hint=f"{_CHANGED_HINT}{others}")


class IngestTally:
    """Counts what is committed, for the summary. Only a source's newest outcome counts."""

    def __init__(self, table: str, asked: str, surroundings: Surroundings, changed: ChangedPolicy = "error") -> None:
        self._changed = changed
        self._table = table
        self._asked = asked
        self._monotonic = surroundings.monotonic
        self._started_us = surroundings.now_us()
        self._begun_at = self._monotonic()
        self.run: str | None = None
        self.owner: str | None = None
        self.workers = ""
        self.is_created = False
        self.row_count = 0
        self.rejected_count = 0
        self._source_bytes = 0
        self._replaced = 0
        self._fates: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._versions: list[int] = []
        self._added: list[str] = []

    def see(self, ledger: Ledger) -> None:
        """Note the current state of sources."""
        for kind, fate in _FATES.items():
            entries: Iterable[LedgerEntry] = getattr(ledger, kind)
            for entry in entries:
                self._fates[entry.found.uri] = "skipped" if (kind, self._changed) == ("changed", "skip") else fate
                if kind == "changed":
                    self._reasons[entry.found.uri] = CHANGED
                if kind == "failed" and entry.record is not None:
                    self._reasons[entry.found.uri] = entry.record.error or "unknown reason"

    def add_columns(self, names: Iterable[str]) -> None:
        """Note columns that were added to the table."""
        self._added += names

    def commit(
        self, version: int, outcomes: Iterable[SourceOutcome], found: Mapping[str, Source], replaced: Iterable[str]
    ) -> None:
        """Note what one version committed: outcomes of sources, some of which had older rows."""
        read = []
        rejected = 0
        for outcome in outcomes:
            rejected += outcome.rejected_count if outcome.has_recorded_rejects else 0
            self._fates[outcome.uri] = "ingested" if outcome.error is None else "failed"
            if outcome.error is None:
                read.append(outcome)
            else:
                self._reasons[outcome.uri] = outcome.error
        self.row_count += sum(one.row_count for one in read)
        self.rejected_count += rejected
        self._source_bytes += sum(found[one.uri].size_bytes for one in read)
        self._replaced += len({one.uri for one in read}.intersection(replaced))
        self._versions.append(version)

    def summary(self, sources: int) -> Summary:
        """What was done so far, out of this number of sources."""
        counts = Counter(self._fates.values())
        failures = [
            SourceFailure(uri=uri, reason=self._reasons[uri])
            for uri, fate in sorted(self._fates.items())
            if fate in ("failed", "failed_before", "changed")
        ]
        return Summary(
            table=self._table,
            run=self.run,
            owner=self.owner,
            asked=self._asked,
            workers=self.workers,
            started_us=self._started_us,
            seconds=self._monotonic() - self._begun_at,
            sources=sources,
            replaced=self._replaced,
            row_count=self.row_count,
            rejected_count=self.rejected_count,
            source_bytes=self._source_bytes,
            versions=tuple(self._versions),
            added_columns=tuple(self._added),
            is_created=self.is_created,
            failures=tuple(failures),
            ingested=counts["ingested"],
            known=counts["known"],
            skipped=counts["skipped"],
            changed=counts["changed"],
            failed=counts["failed"],
            failed_before=counts["failed_before"],
            claimed=counts["claimed"],
            claimed_uris=tuple(uri for uri, fate in self._fates.items() if fate == "claimed"),
        )


def add(total: Summary, one: Summary) -> Summary:
    """Add two summaries. Claimed sources are counted as they are now."""
    sums: dict[str, Any] = {name: getattr(total, name) + getattr(one, name) for name in _ADDED}
    return replace(
        total,
        **sums,
        workers=one.workers or total.workers,
        sources=total.sources - total.claimed + one.sources,
        claimed=one.claimed,
        versions=(*total.versions, *one.versions)[-MOST_VERSIONS:],
        added_columns=(*total.added_columns, *one.added_columns),
        is_created=total.is_created or one.is_created,
        failures=(*total.failures, *one.failures)[-_MOST_FAILURES:],
    )
