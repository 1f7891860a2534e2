"""What became of each source of an ingest, as far as it is known, and how many rows came of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from underlay.ingest.exactly_once.ledger import Ledger, LedgerEntry
from underlay.ingest.run.summary import SourceFailure, Summary
from underlay.ingest.source.source import Source
from underlay.ingest.work.work_unit import SourceOutcome
from underlay.table.versions.environment import Surroundings

_FATES = {"known": "known", "changed": "skipped", "claimed": "claimed", "failed": "failed_before"}
"""Which list of a ledger is which count of a summary. Those of the others are to be ingested."""


class IngestTally:
    """Counts what is committed. Of a source the newest fate counts."""

    def __init__(self, table: str, surroundings: Surroundings) -> None:
        self.table = table
        self._monotonic = surroundings.monotonic
        self._started_us = surroundings.now_us()
        self._begun_at = self._monotonic()
        self.run: str | None = None
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
        """Sources as the table knows them now."""
        for kind, fate in _FATES.items():
            entries: Iterable[LedgerEntry] = getattr(ledger, kind)
            for entry in entries:
                self._fates[entry.found.uri] = fate
                if kind == "failed" and entry.record is not None:
                    self._reasons[entry.found.uri] = entry.record.error or "no reason is known"

    def add_columns(self, names: Iterable[str]) -> None:
        """Columns that were added to the table."""
        self._added += names

    def commit(
        self, version: int, outcomes: Iterable[SourceOutcome], found: Mapping[str, Source], replaced: Iterable[str]
    ) -> None:
        """What one version has: outcomes of sources, some of which had older rows."""
        read = []
        for outcome in outcomes:
            self._fates[outcome.uri] = "ingested" if outcome.error is None else "failed"
            if outcome.error is None:
                read.append(outcome)
            else:
                self._reasons[outcome.uri] = outcome.error
        self.row_count += sum(one.row_count for one in read)
        self.rejected_count += sum(one.rejected_count for one in read)
        self._source_bytes += sum(found[one.uri].size_bytes for one in read)
        self._replaced += len({one.uri for one in read}.intersection(replaced))
        self._versions.append(version)

    def summary(self, sources: int) -> Summary:
        """All of it until now, of so many sources."""
        counts = Counter(self._fates.values())
        failures = [
            SourceFailure(uri=uri, reason=self._reasons[uri])
            for uri, fate in sorted(self._fates.items())
            if fate in ("failed", "failed_before")
        ]
        return Summary(
            table=self.table,
            run=self.run,
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
            failed=counts["failed"],
            failed_before=counts["failed_before"],
            claimed=counts["claimed"],
            claimed_uris=tuple(uri for uri, fate in self._fates.items() if fate == "claimed"),
        )
