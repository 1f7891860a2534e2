"""The one record of a watch: what all its looks did, put again as it goes and when it ends."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from msgspec.structs import replace as changed

from underlay.errors import UnderlayError
from underlay.ingest.run.record import Ending, make_record, new_job, new_owner, put_record
from underlay.ingest.run.summary import Summary
from underlay.ingest.work.settings import Settings
from underlay.table.coordination.run_record import MOST_VERSIONS
from underlay.table.open_table import OpenTable

RENEWED_SECONDS = 60.0
_LIVES = 5
"""Renewals, of which the last may be late by a long look."""
_MOST_FAILURES = 1000


class WatchRecord:
    """Adds up looks. It is put when there is something to say, and once a minute when there is not; that it cannot be
    put is no failure of the watch."""

    def __init__(self, table: OpenTable, settings: Settings) -> None:
        surroundings = table.lake.surroundings
        self._table = table
        self._settings = settings
        self._surroundings = surroundings
        self._owner = new_owner(surroundings)
        self._begun_at = surroundings.monotonic()
        self._put_at: float | None = None
        self._is_new = False
        self._workers = ""
        self._version_count = 0
        self._total = Summary(table=table.name, run=new_job(), started_us=surroundings.now_us(), seconds=0.0, sources=0)

    @property
    def total(self) -> Summary:
        """What all looks did until now."""
        return replace(self._total, seconds=self._surroundings.monotonic() - self._begun_at)

    def keep(self, table: OpenTable, ending: Ending) -> None:
        """Add what a look did."""
        self._workers = ending.workers or self._workers
        self._version_count += len(ending.summary.versions)
        self._total = add(self._total, ending.summary)
        self._is_new = True
        self.renew()

    def renew(self) -> None:
        """Put the record, if something is new or a minute has passed. Nothing without a table."""
        now = self._surroundings.monotonic()
        if self._is_new or self._put_at is None or now - self._put_at >= RENEWED_SECONDS:
            self._put(None, is_over=False)
            self._put_at, self._is_new = now, False

    def end(self, error: BaseException | None) -> None:
        """Say how the watch ended: who is told to stop was stopped."""
        self._put(error or KeyboardInterrupt(), is_over=True)

    def _put(self, error: BaseException | None, *, is_over: bool) -> None:
        ending = Ending(
            summary=self.total, settings=self._settings, workers=self._workers, owner=self._owner, error=error
        )
        record = changed(make_record(ending, self._surroundings), version_count=self._version_count)
        if not is_over:
            record = changed(record, state="watching", ttl_us=round(_LIVES * RENEWED_SECONDS * 1_000_000))
        with suppress(UnderlayError):
            put_record(self._table, record)


def add(total: Summary, one: Summary) -> Summary:
    """Both together. Sources that were another's are counted as they are now."""
    return replace(
        total,
        sources=total.sources - total.claimed + one.sources,
        ingested=total.ingested + one.ingested,
        replaced=total.replaced + one.replaced,
        known=total.known + one.known,
        skipped=total.skipped + one.skipped,
        failed=total.failed + one.failed,
        failed_before=total.failed_before + one.failed_before,
        claimed=one.claimed,
        row_count=total.row_count + one.row_count,
        rejected_count=total.rejected_count + one.rejected_count,
        source_bytes=total.source_bytes + one.source_bytes,
        versions=(*total.versions, *one.versions)[-MOST_VERSIONS:],
        added_columns=(*total.added_columns, *one.added_columns),
        is_created=total.is_created or one.is_created,
        failures=(*total.failures, *one.failures)[-_MOST_FAILURES:],
    )
