"""`underlay care`: looks after tables, once or in rounds, and reports what was done."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from threading import Event

import typer

from underlay.api.lake import Lake
from underlay.cli.care.compaction_reports import show_compacted
from underlay.cli.care.deletion_reports import show_expired, show_swept, swept_json
from underlay.cli.common.output import print_json, say, show_count
from underlay.cli.common.stopping import stoppable
from underlay.maintain.care.service import CareRound
from underlay.values.duration import read_duration

_FAILED = 1


def care_once(lake: Lake, *, json: bool) -> None:
    """Run one round. Ends with an error if a table could not be looked after."""
    found = lake.care()
    _print_round(found, json=json)
    if not json:
        print(f"{show_count(len(found.tables), 'table')} looked after")
    if found.failed:
        raise typer.Exit(_FAILED)


def watch_care(lake: Lake, interval: str, *, json: bool) -> None:
    """Run round after round. A table that could not be looked after is retried."""
    seconds = read_duration(interval, "--interval").total_seconds()
    say(f"looking after {lake.url} every {seconds:g} s; stop with Ctrl-C")
    with suppress(KeyboardInterrupt), stoppable("stopping: releasing the job; press Ctrl-C again to stop at once"):
        for found in lake.watch_care(Event().wait, every_seconds=seconds):
            _print_round(found, json=json)


def _print_round(found: CareRound, *, json: bool) -> None:
    if json:
        swept = None if found.swept is None else swept_json(found.swept)
        print_json({"tables": [asdict(one) for one in found.tables], "swept": swept, "failed": found.failed})
        return
    for one in found.tables:
        if one.compacted is not None:
            print(show_compacted(one.compacted))
        if one.expired is not None:
            print(show_expired(one.expired))
        if one.is_held:
            print(f"{one.table}: another process looks after it")
    if found.swept is not None and found.swept.object_count:
        print(show_swept(found.swept))
    for name, reason in found.failed.items():
        say(f"{name} could not be looked after: {reason}")
