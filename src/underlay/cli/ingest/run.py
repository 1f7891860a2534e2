"""`underlay ingest`, once, watching, or as a dry run; in this process, or on Spark for large input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from threading import Event

import typer

from underlay.api.lake import Lake
from underlay.cli.common.lake_choice import choose_lake, connect_chosen, show_place
from underlay.cli.common.output import say, show_bytes, show_count
from underlay.cli.common.stopping import INTERRUPTED, stoppable
from underlay.cli.ingest.progress import ProgressBar, ingest_progress
from underlay.cli.ingest.report import report, report_look, show_dry_run
from underlay.errors import InvalidRequest, NotFound, SourceChanged, SourceUnreadable, UnderlayError, exit_code
from underlay.ingest.run.record import keep_record
from underlay.ingest.run.summary import Summary
from underlay.ingest.run.watch import Pace
from underlay.ingest.work.progress import IngestProgress
from underlay.ingest.work.settings import Settings
from underlay.ingest.work.workers import LocalWorkers, Workers
from underlay.store import open_store
from underlay.table.open_table import OpenTable

MUCH_BYTES = 256 << 20
"""Above this, sources are read on Spark if it is installed."""
_LOCAL_SPARK = "local[*]"
_STOPPING = "stopping: releasing claims; press Ctrl-C again to stop at once"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkChoice:
    """Whether Spark reads the sources: when there is a master or a setting for it, else for large input."""

    master: str | None
    conf: Mapping[str, str]
    is_refused: bool

    def is_for(self, size_bytes: int) -> bool:
        """Whether to read this much on Spark."""
        if self.is_refused:
            return False
        if self.master is not None or self.conf:
            return True
        return size_bytes > MUCH_BYTES and find_spec("pyspark") is not None


def run_ingest(
    name: str,
    settings: Settings,
    spark: SparkChoice,
    *,
    watch_seconds: float | None,
    dry_run: bool,
    lake: str | None,
    options: Sequence[str] | None,
    json: bool,
) -> None:
    """Ingest once, or every `watch_seconds`. Raises what ingesting raises; exits with code 4 when sources failed."""
    if "@" in name:
        raise InvalidRequest("a version never changes", found=name, hint="Leave out the @ and what follows.")
    opened = _open(lake, options, is_read_only=dry_run)
    if dry_run:
        show_dry_run(opened.dry_run(name, settings), settings.new_columns, json=json)
        return
    with (
        stoppable(_STOPPING),
        ingest_progress(opened, name) as progress,
        closing(_ChosenWorkers(opened, spark, progress)) as workers,
    ):
        if watch_seconds is None:
            _run_once(opened, name, settings, workers, progress, json=json)
        else:
            _run_watch(opened, name, settings, workers, progress, watch_seconds, json=json)


def _open(lake: str | None, options: Sequence[str] | None, *, is_read_only: bool) -> Lake:
    """The lake, which must exist. A dry run uses no registry."""
    chosen = choose_lake(lake, options)
    opened = connect_chosen(replace(chosen, registry="none") if is_read_only else chosen)
    if not opened.exists():
        raise NotFound("there is no lake here", place=show_place(opened.url), hint='Make one with "underlay init".')
    return opened


def _run_once(
    lake: Lake, name: str, settings: Settings, workers: _ChosenWorkers, progress: ProgressBar, *, json: bool
) -> None:
    done: list[Summary] = []

    def keep(table: OpenTable, summary: Summary, error: BaseException | None) -> None:
        done.append(summary)
        keep_record(table, summary, error)

    try:
        summary = lake.ingest(name, settings, progress=progress, workers=workers.make, keep=keep)
    except KeyboardInterrupt:
        say(f"{name}: stopped; {_committed(done)}")
        raise typer.Exit(INTERRUPTED) from None
    except SourceChanged:
        report(lake, done[-1], json=json)
        raise
    except UnderlayError:
        say(f"{name}: failed; {_committed(done)}")
        raise
    report(lake, summary, json=json)
    if summary.failed or summary.failed_before:
        raise typer.Exit(exit_code(SourceUnreadable("")))


def _committed(done: Sequence[Summary]) -> str:
    """What an unfinished ingest left in the table."""
    summary = done[-1] if done else None
    if summary is None or not summary.versions:
        return "nothing was committed"
    ingested = f"{show_count(summary.ingested, 'source')} with {show_count(summary.row_count, 'row')}"
    return f"{ingested} are in version {summary.versions[-1]}; the next run takes the others"


def _run_watch(
    lake: Lake,
    name: str,
    settings: Settings,
    workers: _ChosenWorkers,
    progress: ProgressBar,
    seconds: float,
    *,
    json: bool,
) -> None:
    """Watch until a signal arrives, which is not a failure. Raises errors that retrying cannot fix."""
    pace = Pace(wait=Event().wait, interval_seconds=seconds, on_trouble=_say_trouble)
    watch = lake.watch(name, settings, pace=pace, progress=progress, workers=workers.make)
    say(f"{name}: watching {' '.join(settings.sources)} every {seconds:g} s; stop with Ctrl-C")
    try:
        for summary in watch:
            report_look(summary, json=json)
    except KeyboardInterrupt:
        pass
    report(lake, watch.total, json=json, watched=True)


def _say_trouble(error: UnderlayError, seconds: float) -> None:
    say(f"{datetime.now(UTC):%H:%M:%S} {error}\n  retrying in {seconds:.0f} s")


class _ChosenWorkers:
    """Makes workers when there is something to read. A Spark session is started once, and stopped by `close`."""

    def __init__(self, lake: Lake, spark: SparkChoice, progress: IngestProgress) -> None:
        self._lake = lake
        self._spark = spark
        self._progress = progress
        self._on_spark: Workers | None = None
        self._stop: Callable[[], None] = lambda: None

    def make(self, size_bytes: int, count: int) -> Workers:
        """The workers for this many bytes."""
        if not self._spark.is_for(size_bytes):
            store = open_store(self._lake.url, self._lake.options)
            return LocalWorkers(store, progress=self._progress)
        if self._on_spark is None:
            self._on_spark = self._start(size_bytes)
        return self._on_spark

    def close(self) -> None:
        """Stop Spark, if it was started."""
        self._stop()

    def _start(self, size_bytes: int) -> Workers:
        from underlay.spark.start.open_session import start_on
        from underlay.spark.tasks.ingest_workers import SparkWorkers
        from underlay.spark.tasks.store_address import StoreAddress  # loads PySpark

        master = self._spark.master or _LOCAL_SPARK
        say(f"starting Spark on {master} to read {show_bytes(size_bytes)}")
        # Not in the main thread, where Spark would replace our signal handlers.
        with ThreadPoolExecutor(1) as pool:
            spark = pool.submit(start_on, master, self._spark.conf).result()
        self._stop = spark.stop
        return SparkWorkers(spark, StoreAddress(url=self._lake.url, options=self._lake.options))
