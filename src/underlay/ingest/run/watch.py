"""Watches sources: ingests new ones as they arrive, until it is told to stop.

Every look lists the sources again; those that an earlier look settled cost nothing more. Transient errors are retried,
other errors end the watch. A watch holds no claims between two looks, so others may ingest the same sources, and a
watch that died is simply started again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import msgspec
import xxhash

from underlay.errors import Busy, CommitUnknown, InvalidRequest, NotFound, Unavailable, UnderlayError
from underlay.ingest.run.record import Keep, asked_for, make_record, new_job, new_owner, put_record
from underlay.ingest.run.summary import Summary, add
from underlay.ingest.source.find import find_sources
from underlay.ingest.source.source import Source, local_modified_us, local_path
from underlay.ingest.work.settings import Settings
from underlay.table.open_table import OpenTable

INTERVAL_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 60.0
RENEWED_SECONDS = 60.0
"""How often an unchanged record is put again."""
_LIVES = 5
"""A watch counts as lost after this many renewal periods: a long look may delay the next renewal."""
_ONCE = "Ingest it once without watching, then watch."
_PASSING = (Unavailable, Busy, CommitUnknown)

Look = Callable[[Sequence[Source], Settings, Keep], Summary]
"""Ingests these sources, and returns the summary."""
OnTrouble = Callable[[UnderlayError, float], None]
"""Called with the error, and the seconds until the retry."""


class Ready:
    """Chooses the sources to take: new, and no longer being written. Takes about 100 bytes of memory for each source
    found.

    A local file is complete when two looks found it the same, or when it was not written to for an interval. Object
    stores only show complete objects.
    """

    def __init__(self, interval_seconds: float) -> None:
        self._interval_us = interval_seconds * 1_000_000
        self._settled: set[bytes] = set()
        self._seen: dict[str, str] = {}

    def take(self, found: Sequence[Source], now_us: int) -> list[Source]:
        """The complete sources that are not settled, in order. Forgets sources that are gone."""
        marks = [_mark(one) for one in found]
        self._settled.intersection_update(marks)
        new = [one for one, mark in zip(found, marks, strict=True) if mark not in self._settled]
        taken = [one for one in new if self._is_complete(one, now_us)]
        self._seen = {one.uri: one.identity for one in new}
        return taken

    def settle(self, found: Iterable[Source]) -> None:
        """Do not take these again, unless they change."""
        self._settled.update(map(_mark, found))

    def forget(self) -> None:
        """Forget which sources are settled."""
        self._settled.clear()

    def _is_complete(self, found: Source, now_us: int) -> bool:
        if local_path(found.uri) is None or self._seen.get(found.uri) == found.identity:
            return True
        return now_us - local_modified_us(found.identity) > self._interval_us


def _mark(found: Source) -> bytes:
    return xxhash.xxh3_128_digest(f"{found.uri}\0{found.identity}".encode("utf-8", "surrogateescape"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often to look. `wait` waits for a number of seconds, and returns whether the watch should end."""

    wait: Callable[[float], bool]
    interval_seconds: float = INTERVAL_SECONDS
    on_trouble: OnTrouble = lambda error, seconds: None

    def pause(self, failures: int) -> float:
        """How long to wait after this many failed looks in a row."""
        longest = max(LONGEST_PAUSE_SECONDS, self.interval_seconds)
        return float(min(self.interval_seconds * 2 ** min(failures, 16), longest))


class WatchRecord:
    """The one record of a watch: what all its looks did.

    It is put when there is news, and otherwise once a minute. If that fails, the watch goes on.
    """

    def __init__(self, table: OpenTable, settings: Settings) -> None:
        surroundings = table.lake.surroundings
        self._table = table
        self._surroundings = surroundings
        self._begun_at = surroundings.monotonic()
        self._put_at: float | None = None
        self._is_new = False
        self._version_count = 0
        self._total = Summary(
            table=table.name,
            run=new_job(),
            owner=new_owner(surroundings),
            asked=asked_for(settings),
            started_us=surroundings.now_us(),
            seconds=0.0,
            sources=0,
        )

    @property
    def total(self) -> Summary:
        """What all looks did so far."""
        return replace(self._total, seconds=self._surroundings.monotonic() - self._begun_at)

    def keep(self, table: OpenTable, summary: Summary, error: BaseException | None) -> None:
        """Add what a look did."""
        self._version_count += len(summary.versions)
        self._total = add(self._total, summary)
        self._is_new = True
        self.renew()

    def renew(self) -> None:
        """Put the record, if something is new or a minute has passed, and if the table exists."""
        now = self._surroundings.monotonic()
        if self._is_new or self._put_at is None or now - self._put_at >= RENEWED_SECONDS:
            self._put(None, is_over=False)
            self._put_at, self._is_new = now, False

    def end(self, error: BaseException | None) -> None:
        """Say how the watch ended; without an error it was told to stop."""
        self._put(error or KeyboardInterrupt(), is_over=True)

    def _put(self, error: BaseException | None, *, is_over: bool) -> None:
        record = make_record(self.total, error, self._surroundings)
        record = msgspec.structs.replace(record, version_count=self._version_count)
        if not is_over:
            record = msgspec.structs.replace(
                record, state="watching", ttl_us=round(_LIVES * RENEWED_SECONDS * 1_000_000)
            )
        with suppress(UnderlayError):
            put_record(self._table, record)


class Watch:
    """A watch over sources. Iterating it does the work, and yields a summary for each look that found something."""

    def __init__(self, table: OpenTable, settings: Settings, look: Look, pace: Pace) -> None:
        if settings.again:
            raise InvalidRequest("a watch reads no source again", found=", ".join(settings.again), hint=_ONCE)
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
        """Raises errors that are not transient. The record says how the watch ended."""
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
        """Look once. Returns what was done; None when there is nothing to report."""
        found = self._find()
        self._follow()
        taken = self._ready.take(found, self._table.lake.surroundings.now_us())
        done = self._look(taken, self._settings, self._record.keep) if taken else None
        if self._revision is None:
            self._follow()  # the look may have created the table
        is_first, self._is_first = self._is_first, False
        self._record.renew()
        if done is None:
            return None
        claimed = set(done.claimed_uris)
        self._ready.settle(one for one in taken if one.uri not in claimed)
        self._settings = replace(self._settings, retry_failed=False)
        return done if is_first or done.ingested or done.failed or done.skipped or done.changed else None

    def _find(self) -> list[Source]:
        """Find the current sources. A missing folder is an error in the first look, and transient later."""
        try:
            return find_sources(self._settings.sources, self._settings.store_options, may_be_none=True)
        except NotFound as error:
            if self._is_first:
                raise
            raise Unavailable(error.problem, place=error.place, hint=error.hint) from error

    def _follow(self) -> None:
        """Forget what is settled if the table has a new revision, as that knows other sources. One request."""
        try:
            revision = self._table.head().revision.id
        except NotFound:
            if self._revision is not None:
                raise
            return
        if revision != self._revision and self._revision is not None:
            self._ready.forget()
        self._revision = revision
