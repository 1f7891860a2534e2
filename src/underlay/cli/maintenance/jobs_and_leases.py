"""`underlay jobs` and `underlay leases`: list who works with tables, and the runs that ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from underlay.api.jobs_and_leases import JobInfo, LeaseInfo
from underlay.api.lake import Lake
from underlay.api.run_info import RunInfo
from underlay.cli.common.lake_choice import show_place
from underlay.cli.common.output import print_json, print_table, printable, say, show_bytes
from underlay.cli.common.table_choice import with_near_names
from underlay.errors import TableNotFound

T = TypeVar("T")

_TIME = "%Y-%m-%d %H:%M:%S"
_RUN_STATES = {"nothing": "nothing to do"}
_REASON_CHARACTERS = 200


def show_jobs(lake: Lake, name: str | None, *, most: int, json: bool) -> None:
    """The jobs of a table, or of all, then the newest runs that ended."""
    found = _ask(lake.jobs, lake, name)
    runs = lake.runs(name, most=most) if most else []
    if json:
        for job in found:
            print_json(_job_json(job))
        for run in runs:
            print_json(_run_json(run))
        return
    if not found:
        say(f"{name or show_place(lake.url)}: no job is writing")
    else:
        print_table(
            ("table", "job", "state", "started (UTC)", "renewed (UTC)", "ttl (s)", "epoch", "owner", "note"),
            [
                (job.table, f"{job.job} (exclusive)" if job.is_exclusive else job.job, _state(job),
                 _show_time(job.started), _show_time(job.renewed), f"{job.ttl.total_seconds():g}",
                 _known(job.epoch), _known(job.owner), job.note)
                for job in found
            ],
        )  # fmt: skip
    if runs:
        if found:
            print()
        _print_runs(runs)


def show_leases(lake: Lake, name: str | None, *, json: bool) -> None:
    """The leases on a table, or on all."""
    found = _ask(lake.leases, lake, name)
    if json:
        for lease in found:
            print_json(_lease_json(lease))
    elif not found:
        say(f"{name or show_place(lake.url)}: no reader keeps a version")
    else:
        print_table(
            ("table", "version", "reader", "state", "started (UTC)", "renewed (UTC)", "ttl (s)", "owner"),
            [
                (lease.table, _known(lease.version), lease.reader, _state(lease), _show_time(lease.started),
                 _show_time(lease.renewed), f"{lease.ttl.total_seconds():g}", _known(lease.owner))
                for lease in found
            ],
        )  # fmt: skip


def _ask(listing: Callable[[str | None], list[T]], lake: Lake, name: str | None) -> list[T]:
    try:
        return listing(name)
    except TableNotFound as error:
        raise with_near_names(error, lake, name or "") from None


def _state(holder: JobInfo | LeaseInfo) -> str:
    if holder.problem is not None:
        return "unreadable"
    if isinstance(holder, JobInfo) and holder.is_fenced:
        return "taken over"
    return "alive" if holder.is_alive else "expired"


def _known(value: int | str | None) -> int | str:
    return "?" if value is None else value


def _show_time(moment: datetime | None) -> str:
    return "?" if moment is None else f"{moment:{_TIME}}"


def _time_json(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _job_json(job: JobInfo) -> dict[str, object]:
    return {
        "kind": "job",
        "table": job.table,
        "job": job.job,
        "owner": job.owner,
        "epoch": job.epoch,
        "started": _time_json(job.started),
        "renewed": job.renewed.isoformat(),
        "ttl_seconds": job.ttl.total_seconds(),
        "note": job.note,
        "is_exclusive": job.is_exclusive,
        "is_alive": job.is_alive,
        "is_fenced": job.is_fenced,
        "problem": job.problem,
    }


def _lease_json(lease: LeaseInfo) -> dict[str, object]:
    return {
        "table": lease.table,
        "revision": lease.revision,
        "reader": lease.reader,
        "owner": lease.owner,
        "version": lease.version,
        "started": _time_json(lease.started),
        "renewed": lease.renewed.isoformat(),
        "ttl_seconds": lease.ttl.total_seconds(),
        "is_alive": lease.is_alive,
        "problem": lease.problem,
    }


def _print_runs(runs: Sequence[RunInfo]) -> None:
    """Print the runs as a table, in the given order."""
    print_table(
        ("table", "run", "state", "started (UTC)", "sources", "rows", "rejected", "bytes", "seconds", "version",
         "owner", "reason"),
        [
            (run.table, run.run, _RUN_STATES.get(run.state, run.state), _show_time(run.started), f"{run.sources:,}",
             f"{run.row_count:,}", f"{run.rejected_count:,}", show_bytes(run.source_bytes), f"{run.seconds:.1f}",
             _show_versions(run), run.owner, _show_reason(run))
            for run in runs
        ],
    )  # fmt: skip


def _run_json(run: RunInfo) -> dict[str, object]:
    """A run for programs."""
    return {
        "kind": "run",
        "table": run.table,
        "run": run.run,
        "owner": run.owner,
        "operation": run.operation,
        "state": run.state,
        "started": _time_json(run.started),
        "ended": run.ended.isoformat(),
        "seconds": run.seconds,
        "asked": run.asked,
        "workers": run.workers,
        "sources": run.sources,
        "known": run.known,
        "skipped": run.skipped,
        "failed": run.failed,
        "claimed": run.claimed,
        "replaced": run.replaced,
        "rows": run.row_count,
        "rejected": run.rejected_count,
        "bytes": run.source_bytes,
        "versions": run.versions,
        "version_count": run.version_count,
        "reason": run.reason,
        "problem": run.problem,
    }


def _show_versions(run: RunInfo) -> str | None:
    """The version, or the first and the last of several."""
    if not run.versions:
        return None
    return str(run.versions[0]) if len(run.versions) == 1 else f"{run.versions[0]}–{run.versions[-1]}"


def _show_reason(run: RunInfo) -> str:
    text = printable(run.reason or run.problem or "")
    return text if len(text) <= _REASON_CHARACTERS else f"{text[: _REASON_CHARACTERS - 1]}…"
