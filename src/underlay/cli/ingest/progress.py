"""The progress of an ingest: a bar on a terminal, otherwise a line every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Lock

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from underlay.api.lake import Lake
from underlay.cli.common.output import say, show_bytes, show_count
from underlay.errors import UnderlayError
from underlay.ingest.exactly_once.ledger import Ledger

_LINE_SECONDS = 10.0
_ASKED_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    wanted: int = 0
    wanted_bytes: int = 0
    sources: int = 0
    rows: int = 0
    rejected: int = 0
    read_bytes: int = 0


class ProgressBar:
    """Shows the steps of an ingest with `show`, and says when it waits for another run."""

    def __init__(
        self, lake: Lake, name: str, show: Callable[[_Counts, float], None], clock: Callable[[], float]
    ) -> None:
        self._lake = lake
        self._name = name
        self._show = show
        self._clock = clock
        self._lock = Lock()
        self._begun_at = clock()
        self._counts = _Counts()
        self._asked_at: float | None = None

    def found(self, ledger: Ledger) -> None:
        """Nothing is read yet."""

    def begun(self, sources: int, size_bytes: int) -> None:
        """This much is to be read, in addition to what was."""
        counts = self._counts
        if not counts.sources:
            self._begun_at = self._clock()
        self._set(wanted=counts.sources + sources, wanted_bytes=counts.read_bytes + size_bytes)

    def advanced(self, *, sources: int = 0, rows: int = 0, rejected: int = 0, read_bytes: int = 0) -> None:
        """This much more was read."""
        with self._lock:
            was = self._counts
            self._counts = replace(
                was,
                sources=was.sources + sources,
                rows=was.rows + rows,
                rejected=was.rejected + rejected,
                read_bytes=was.read_bytes + read_bytes,
            )
            self._show(self._counts, self._clock() - self._begun_at)

    def waiting(self, count: int, owner: str) -> None:
        """Say every few seconds which run the ingest waits for."""
        now = self._clock()
        if self._asked_at is None or now - self._asked_at >= _ASKED_SECONDS:
            self._asked_at = now
            say(f"{self._name}: waiting for {show_count(count, 'source')} that {self._describe(owner)} has claimed")

    def committed(self, version: int) -> None:
        """The table contains what was read."""

    def _set(self, *, wanted: int, wanted_bytes: int) -> None:
        with self._lock:
            self._counts = replace(self._counts, wanted=wanted, wanted_bytes=wanted_bytes)
            self._show(self._counts, self._clock() - self._begun_at)

    def _describe(self, run: str) -> str:
        """The run, its host, and when its lease was last renewed."""
        try:
            found = next((job for job in self._lake.jobs(self._name) if job.job == run), None)
        except UnderlayError:  # only for people
            found = None
        if found is None or found.owner is None:
            return f"run {run}"
        seconds = max((datetime.now(UTC) - found.renewed).total_seconds(), 0.0)
        return f"run {run} on {found.owner.partition(':')[0]}, last renewed {seconds:.0f} s ago,"


@contextmanager
def ingest_progress(lake: Lake, name: str) -> Iterator[ProgressBar]:
    """The progress display of an ingest, on stderr."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield ProgressBar(lake, name, _Lines(name, time.monotonic).show, time.monotonic)
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TextColumn("{task.fields[words]}"))
    # Rich prints what is written to stdout above its bar, so on stderr: right on a terminal, wrong for a pipe.
    to_stdout = sys.stdout.isatty()
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True, redirect_stdout=to_stdout) as bar:
        yield ProgressBar(lake, name, _Bar(name, bar).show, time.monotonic)


class _Bar:
    """One bar, which appears when there is something to read and disappears when it is read."""

    def __init__(self, name: str, bar: Progress) -> None:
        self._name = name
        self._bar = bar
        self._task: TaskID | None = None

    def show(self, counts: _Counts, seconds: float) -> None:
        if self._task is None:
            self._task = self._bar.add_task(self._name, total=None, words="")
        total = max(counts.wanted_bytes, 1)
        self._bar.update(
            self._task,
            completed=min(counts.read_bytes, total),
            total=total,
            words=_words(counts, seconds),
            visible=counts.sources < counts.wanted,
        )


class _Lines:
    """At most one line every ten seconds."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self._name = name
        self._clock = clock
        self._said_at = clock()

    def show(self, counts: _Counts, seconds: float) -> None:
        now = self._clock()
        if now - self._said_at >= _LINE_SECONDS:
            self._said_at = now
            say(f"{self._name}: {_words(counts, seconds)}")


def _words(counts: _Counts, seconds: float) -> str:
    rate = show_bytes(int(counts.read_bytes / seconds)) if seconds > 0 else show_bytes(0)
    rejected = f", {counts.rejected:,} rejected" if counts.rejected else ""
    read = f"{show_bytes(max(counts.read_bytes, 0))} of {show_bytes(counts.wanted_bytes)}, {rate}/s"
    return f"{counts.sources:,} of {counts.wanted:,} sources, {counts.rows:,} rows, {read}{rejected}"
