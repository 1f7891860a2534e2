"""Commands on who works with tables. Only declarations: `--help` loads no library that reads data."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.options import Json, LakeUrl, StoreOptions

AnyTable = Annotated[str | None, typer.Argument(metavar="DATASET.TABLE", hidden=True, show_default=False)]


def jobs(name: AnyTable = None, lake: LakeUrl = None, option: StoreOptions = None, json: Json = False) -> None:
    """List the jobs that write tables.

    Of one table, or of all tables of the lake. "alive" is a job whose process was heard of within its time to live;
    another process can take one that is not. "taken over" is one that can no longer commit. Times are UTC, by the
    store's clock.

    \b
    Examples:
      underlay jobs
      underlay jobs taxi.trips --json
    """
    from underlay.cli.holders import show_jobs
    from underlay.cli.lake_choice import open_existing_lake

    show_jobs(open_existing_lake(lake, option), name, json=json)


def leases(name: AnyTable = None, lake: LakeUrl = None, option: StoreOptions = None, json: Json = False) -> None:
    """List the versions that readers keep.

    Of one table, or of all tables of the lake. A lease keeps its version while it is alive: renewed within its time to
    live. Times are UTC.

    \b
    Examples:
      underlay leases
      underlay leases taxi.trips --json
    """
    from underlay.cli.holders import show_leases
    from underlay.cli.lake_choice import open_existing_lake

    show_leases(open_existing_lake(lake, option), name, json=json)
