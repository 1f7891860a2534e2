"""`underlay ingest --watch`: a line for each look that met something, and a summary at the end."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Event

from underlay.api.lake import Lake
from underlay.cli.common.output import print_json, say, show_count
from underlay.cli.ingest.choice import Choice
from underlay.cli.ingest.progress import ProgressBar
from underlay.cli.ingest.report import failure_lines, report, summary_json
from underlay.cli.ingest.workers import ChosenWorkers
from underlay.errors import UnderlayError
from underlay.ingest.run.summary import Summary
from underlay.ingest.run.watch import Pace


def run_watch(
    lake: Lake, name: str, choice: Choice, workers: ChosenWorkers, progress: ProgressBar, *, json: bool
) -> None:
    """Until a signal comes, which is no failure. Raises what does not pass."""
    pace = Pace(wait=Event().wait, interval_seconds=choice.interval_seconds, on_trouble=_say_trouble)
    watch = lake.watch(name, choice.sources, pace=pace, progress=progress, workers=workers.make, **choice.options)
    say(f"{name}: watching {' '.join(choice.sources)} every {choice.interval_seconds:g} s; Ctrl-C ends it")
    try:
        for summary in watch:
            _report_look(summary, json=json)
    except KeyboardInterrupt:
        pass
    report(lake, watch.total, workers="", json=json, watched=True)


def _report_look(summary: Summary, *, json: bool) -> None:
    if json:
        print_json({"event": "look", **summary_json(summary, workers="")})
        return
    counts = (
        (summary.ingested, "ingested"),
        (summary.known, "known"),
        (summary.skipped, "changed and skipped"),
        (summary.failed + summary.failed_before, "failed"),
    )
    words = ", ".join(f"{number:,} {word}" for number, word in counts if number)
    rows = f", {show_count(summary.row_count, 'row')}" if summary.ingested else ""
    rejected = f", {summary.rejected_count:,} rejected" if summary.rejected_count else ""
    version = f", version {summary.versions[-1]}" if summary.versions else ""
    say(f"{_now()} {summary.table}: {show_count(summary.sources, 'source')}: {words}{rows}{rejected}{version}")
    for line in failure_lines(summary.failures):
        say(f"  {line}")


def _say_trouble(error: UnderlayError, seconds: float) -> None:
    say(f"{_now()} {error}\n  trying again in {seconds:.0f} s")


def _now() -> str:
    return f"{datetime.now(UTC):%H:%M:%S}"
