"""Taking new sources as they come, until somebody says that it is enough.

At every look the sources that the patterns mean are listed anew; those that an earlier look settled cost nothing more.
What fails for a while is tried again, and what fails for good ends the watch. It holds nothing between two looks, so
others may ingest the same sources, and a watch that died is simply begun again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from underlay.errors import Busy, CommitUnknown, NotFound, Unavailable, UnderlayError
from underlay.ingest.run.record import Keep
from underlay.ingest.run.summary import Summary
from underlay.ingest.run.watch_record import WatchRecord
from underlay.ingest.source.find import find_sources
from underlay.ingest.source.ready import Ready
from underlay.ingest.source.source import Source
from underlay.ingest.work.settings import Settings
from underlay.table.open_table import OpenTable

INTERVAL_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 60.0
_PASSING = (Unavailable, Busy, CommitUnknown)

Look = Callable[[Sequence[Source], Settings, Keep], Summary]
"""Ingests these sources, and tells how that ended."""
OnTrouble = Callable[[UnderlayError, float], None]
"""Told what failed, and after how many seconds it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often to look. `wait` waits so many seconds, and says whether the watch is to end."""

    wait: Callable[[float], bool]
    interval_seconds: float = INTERVAL_SECONDS
    on_trouble: OnTrouble = lambda error, seconds: None

    def pause(self, failures: int) -> float:
        """How long to wait, after so many looks in a row failed."""
        longest = max(LONGEST_PAUSE_SECONDS, self.interval_seconds)
        return float(min(self.interval_seconds * 2 ** min(failures, 16), longest))


class Watch:
    """A watch over sources. Iterating it does the work, and gives what each look that met something did."""

    def __init__(self, table: OpenTable, settings: Settings, look: Look, pace: Pace) -> None:
        self._table = table
        self._settings = replace(settings, waits=False, may_be_none=True)
        self._look = look
        self._pace = pace
        self._record = WatchRecord(table, settings)
        self._ready = Ready(pace.interval_seconds)
        self._revision: str | None = None
        self._is_first = True

    @property
    def total(self) -> Summary:
        """What all looks did until now."""
        return self._record.total

    def __iter__(self) -> Iterator[Summary]:
        """Raises what does not pass. Whatever ends it, the record says so."""
        try:
            yield from self._looks()
        except BaseException as error:
            self._record.end(error)
            raise
        self._record.end(None)

    def _looks(self) -> Iterator[Summary]:
        failures = 0
        while True:
            try:
                done = self._look_once()
                failures = 0
            except _PASSING as error:
                done = None
                failures += 1
                self._pace.on_trouble(error, self._pace.pause(failures))
            if done is not None:
                yield done
            if self._pace.wait(self._pace.pause(failures)):
                return

    def _look_once(self) -> Summary | None:
        """What was done; None when there was nothing to tell."""
        found = self._find()
        self._follow()
        taken = self._ready.take(found, self._table.lake.surroundings.now_us())
        done = self._look(taken, self._settings, self._record.keep) if taken else None
        if self._revision is None:
            self._follow()  # the look may have made the table
        is_first, self._is_first = self._is_first, False
        self._record.renew()
        if done is None:
            return None
        claimed = set(done.claimed_uris)
        self._ready.settle(one for one in taken if one.uri not in claimed)
        self._settings = replace(self._settings, retry_failed=False)
        return done if is_first or done.ingested or done.failed or done.skipped else None

    def _find(self) -> list[Source]:
        """What the patterns mean now. That a folder is not there is a mistake at first, and may pass later."""
        try:
            return find_sources(self._settings.sources, self._settings.store_options, may_be_none=True)
        except NotFound as error:
            if self._is_first:
                raise
            raise Unavailable(error.problem, place=error.place, hint=error.hint) from error

    def _follow(self) -> None:
        """Another revision of the table knows other sources. One request, when the table is there."""
        try:
            revision = self._table.head().revision.id
        except NotFound:
            if self._revision is not None:
                raise
            return
        if revision != self._revision and self._revision is not None:
            self._ready.forget()
        self._revision = revision
