"""`underlay jobs` and `underlay leases`: who works with tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from underlay.api.job import JobInfo
from underlay.api.lake import Lake
from underlay.api.lease import LeaseInfo
from underlay.cli.lake_choice import show_place
from underlay.cli.output import print_json, print_table, say
from underlay.cli.table_choice import with_near_names
from underlay.errors import TableNotFound

T = TypeVar("T")

_TIME = "%Y-%m-%d %H:%M:%S"


def show_jobs(lake: Lake, name: str | None, *, json: bool) -> None:
    """The jobs of a table, or of all."""
    found = _ask(lake.jobs, lake, name)
    if json:
        for job in found:
            print_json(_job_json(job))
    elif not found:
        say(f"{name or show_place(lake.url)}: no job writes")
    else:
        print_table(
            ("table", "job", "state", "started (UTC)", "renewed (UTC)", "ttl (s)", "epoch", "owner", "note"),
            [
                (job.table, f"{job.job} (exclusive)" if job.is_exclusive else job.job, _state(job),
                 f"{job.started:{_TIME}}", f"{job.renewed:{_TIME}}", f"{job.ttl.total_seconds():g}", job.epoch,
                 job.owner, job.note)
                for job in found
            ],
        )  # fmt: skip


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
                (lease.table, lease.version, lease.reader, "alive" if lease.is_alive else "expired",
                 f"{lease.started:{_TIME}}", f"{lease.renewed:{_TIME}}", f"{lease.ttl.total_seconds():g}", lease.owner)
                for lease in found
            ],
        )  # fmt: skip


def _ask(listing: Callable[[str | None], list[T]], lake: Lake, name: str | None) -> list[T]:
    try:
        return listing(name)
    except TableNotFound as error:
        raise with_near_names(error, lake, name or "") from None


def _state(job: JobInfo) -> str:
    if job.is_fenced:
        return "taken over"
    return "alive" if job.is_alive else "expired"


def _job_json(job: JobInfo) -> dict[str, object]:
    return {
        "table": job.table,
        "job": job.job,
        "owner": job.owner,
        "epoch": job.epoch,
        "started": job.started.isoformat(),
        "renewed": job.renewed.isoformat(),
        "ttl_seconds": job.ttl.total_seconds(),
        "note": job.note,
        "is_exclusive": job.is_exclusive,
        "is_alive": job.is_alive,
        "is_fenced": job.is_fenced,
    }


def _lease_json(lease: LeaseInfo) -> dict[str, object]:
    return {
        "table": lease.table,
        "revision": lease.revision,
        "reader": lease.reader,
        "owner": lease.owner,
        "version": lease.version,
        "started": lease.started.isoformat(),
        "renewed": lease.renewed.isoformat(),
        "ttl_seconds": lease.ttl.total_seconds(),
        "is_alive": lease.is_alive,
    }
