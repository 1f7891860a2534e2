"""Commands on who works with tables. Only declarations: `--help` loads no library that reads data."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.options import Json, LakeUrl, StoreOptions

AnyTable = Annotated[str | None, typer.Argument(metavar="DATASET.TABLE", hidden=True, show_default=False)]


def jobs(
    name: AnyTable = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, show_default=False, help="The newest N runs that ended. Default: 20.")
    ] = 20,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """List the jobs that write tables, and the runs that ended.

    Of one table, or of all tables of the lake. "alive" is a job whose process was heard of within its time to live;
    another process can take one that is not. "taken over" is one that can no longer commit. Below them, newest first,
    are the runs of "underlay ingest" that ended, with what they did or why they failed, and those that watch. Times are
    UTC.

    \b
    Examples:
      underlay jobs
      underlay jobs taxi.trips --limit 5 --json
    """
    from underlay.cli.common.lake_choice import open_existing_lake
    from underlay.cli.maintenance.jobs_and_leases import show_jobs

    show_jobs(open_existing_lake(lake, option), name, most=limit, json=json)


def leases(name: AnyTable = None, lake: LakeUrl = None, option: StoreOptions = None, json: Json = False) -> None:
    """List the versions that readers keep.

    Of one table, or of all tables of the lake. A lease keeps its version while it is alive: renewed within its time to
    live. Times are UTC.

    \b
    Examples:
      underlay leases
      underlay leases taxi.trips --json
    """
    from underlay.cli.common.lake_choice import open_existing_lake
    from underlay.cli.maintenance.jobs_and_leases import show_leases

    show_leases(open_existing_lake(lake, option), name, json=json)
