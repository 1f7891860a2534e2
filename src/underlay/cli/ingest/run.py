"""`underlay ingest`, once or watching."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import typer

from underlay.api.lake import Lake
from underlay.cli.common.lake_choice import choose_lake, connect_chosen, show_place
from underlay.cli.common.output import say, show_count
from underlay.cli.common.stopping import INTERRUPTED, stoppable
from underlay.cli.ingest.choice import Choice
from underlay.cli.ingest.dry_run import show_dry_run
from underlay.cli.ingest.progress import ProgressBar, ingest_progress
from underlay.cli.ingest.report import report
from underlay.cli.ingest.watch import run_watch
from underlay.cli.ingest.workers import ChosenWorkers
from underlay.errors import InvalidRequest, NotFound, SourceUnreadable, UnderlayError, exit_code
from underlay.ingest.run.record import Ending, keep_record
from underlay.table.open_table import OpenTable

_STOPPING = "stopping: claims are given back; once more to end at once"


def run_ingest(name: str, choice: Choice, *, lake: str | None, options: Sequence[str] | None, json: bool) -> None:
    """Do what was chosen. Raises what ingesting raises; ends with exit code 4 when sources could not be read."""
    if "@" in name:
        raise InvalidRequest("a version never changes", found=name, hint="Leave out the @ and what follows.")
    opened = _open(lake, options, is_read_only=choice.dry_run)
    if choice.dry_run:
        show_dry_run(opened.dry_run(name, choice.sources, **choice.options), choice, json=json)
        return
    run = run_watch if choice.watch else _run_once
    with (
        stoppable(_STOPPING),
        ingest_progress(opened, name) as progress,
        closing(ChosenWorkers(opened, choice, progress)) as workers,
    ):
        run(opened, name, choice, workers, progress, json=json)


def _open(lake: str | None, options: Sequence[str] | None, *, is_read_only: bool) -> Lake:
    """The lake, which must be there; a dry run tells no registry of it."""
    chosen = choose_lake(lake, options)
    opened = connect_chosen(replace(chosen, registry="none") if is_read_only else chosen)
    if not opened.exists():
        raise NotFound("there is no lake here", place=show_place(opened.url), hint='Make one with "underlay init".')
    return opened


def _run_once(
    lake: Lake, name: str, choice: Choice, workers: ChosenWorkers, progress: ProgressBar, *, json: bool
) -> None:
    ended: list[Ending] = []

    def keep(table: OpenTable, ending: Ending) -> None:
        ended.append(ending)
        keep_record(table, ending)

    try:
        summary = lake.ingest(
            name, choice.sources, progress=progress, workers=workers.make, keep=keep, **choice.options
        )
    except KeyboardInterrupt:
        say(f"{name}: stopped; {_committed(ended)}")
        raise typer.Exit(INTERRUPTED) from None
    except UnderlayError:
        say(f"{name}: failed; {_committed(ended)}")
        raise
    report(lake, summary, workers=ended[-1].kind if ended else "", json=json)
    if summary.failed or summary.failed_before:
        raise typer.Exit(exit_code(SourceUnreadable("")))


def _committed(ended: Sequence[Ending]) -> str:
    """What an ingest that did not come to its end leaves in the table."""
    summary = ended[-1].summary if ended else None
    if summary is None or not summary.versions:
        return "nothing was committed"
    done = f"{show_count(summary.ingested, 'source')} with {show_count(summary.row_count, 'row')}"
    return f"{done} are in version {summary.versions[-1]}, and the next run takes the others"
