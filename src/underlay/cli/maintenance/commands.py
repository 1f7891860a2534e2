"""`underlay verify`, `jobs` and `leases`. Only declarations: `--help` loads no library that reads data."""

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

    Of one table, or of all tables of the lake. "alive" is a job whose process renewed it within its time to live;
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


def verify(
    names: Annotated[list[str] | None, typer.Argument(metavar="DATASET.TABLE", hidden=True)] = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Read all data files too, and compare every statistic with the rows. Takes as long as reading the"
            " tables, and disk space in TMPDIR for four files at a time. Default: no.",
        ),
    ] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Rebuild sidecars and the registry where they are wrong, and nothing else. Default: no."
        ),
    ] = False,
    no_registry: Annotated[
        bool,
        typer.Option(
            "--no-registry", help="Do not compare the registry, which reads every version again. Default: no."
        ),
    ] = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Check that everything a table consists of is there and whole.

    Looks at the catalog and, for each table or the ones named, at every version: roots, segments, pages of the source
    tree, data files, sidecars. What is lost is named, with the versions that need it and the newest version that is
    intact. The registry is brought up to date, as by every command, and compared with all of the store. Nothing in the
    lake is changed without --repair. Exit code 0 when nothing is wrong, 1 when something is.

    \b
    Examples:
      underlay verify
      underlay verify taxi.trips --deep
      underlay verify taxi.trips --repair --json
    """
    from underlay.cli.common.lake_choice import choose_lake
    from underlay.cli.maintenance.verify_report import verify_lake

    verify_lake(choose_lake(lake, option), names, deep=deep, repair=repair, registry=not no_registry, json=json)
