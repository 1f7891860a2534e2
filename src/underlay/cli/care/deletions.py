"""Declares `expire`, `sweep` and `vacuum`, which delete; what they do is imported when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.options import Json, LakeUrl, StoreOptions, TableName, Yes

OlderThan = Annotated[
    str | None,
    typer.Option(
        metavar="SPAN",
        help="Versions whose successor is older, such as 7d, 12h or 30m. Default: the table's care.keep_for, else 7d.",
    ),
]
Keep = Annotated[
    int | None,
    typer.Option(metavar="N", help="Keep the newest N versions. Default: the table's care.keep_versions, else 10."),
]

OptionalName = Annotated[str | None, typer.Argument(metavar="[DATASET.TABLE]", hidden=True, show_default=False)]
Grace = Annotated[
    str,
    typer.Option(metavar="SPAN", help="Keep objects that are younger, such as 1d, 12h or 90m.", show_default=True),
]


def expire(
    name: TableName,
    older_than: OlderThan = None,
    keep: Keep = None,
    yes: Yes = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Expire old versions, which can then no longer be read.

    A version expires when it is old enough and not among the newest. Versions with a tag, versions that a reader
    holds a lease on, and those that a running job may need are kept. Records of runs of that age are deleted as well.
    Nothing is changed without --yes. Files that only expired versions had stay until "underlay sweep" deletes them.

    \b
    Examples:
      underlay expire taxi.trips
      underlay expire taxi.trips --older-than 30d --keep 100 --yes
    """
    from underlay.cli.care.deletion_reports import expire_versions
    from underlay.cli.common.table_choice import newest_table

    expire_versions(newest_table(lake, option, name), older_than, keep, yes=yes, json=json)


def sweep(
    grace: Grace = "1d",
    yes: Yes = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Delete objects that no version references.

    Those are files of writers that died or lost a race, of expired versions, of tables that were dropped and of
    revisions that were replaced. It deletes only objects that Underlay named, and none that a running job may need.
    Nothing is deleted without --yes. The next sweep continues one that was interrupted.

    \b
    Examples:
      underlay sweep
      underlay sweep --grace 3d --yes
    """
    from underlay.cli.care.deletion_reports import sweep_objects
    from underlay.cli.common.lake_choice import open_existing_lake

    sweep_objects(open_existing_lake(lake, option), grace, yes=yes, json=json)


def vacuum(
    name: OptionalName = None,
    older_than: OlderThan = None,
    keep: Keep = None,
    grace: Grace = "1d",
    yes: Yes = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Compact tables, expire old versions, and sweep.

    Does what "underlay compact", "underlay expire" and "underlay sweep" do, in this order, for one table or for all of
    the lake. Nothing is changed without --yes.

    \b
    Examples:
      underlay vacuum taxi.trips
      underlay vacuum --older-than 3d --keep 5 --yes
    """
    from underlay.cli.care.deletion_reports import vacuum_lake, vacuum_table
    from underlay.cli.common.lake_choice import open_existing_lake
    from underlay.cli.common.table_choice import newest_table

    if name is None:
        vacuum_lake(open_existing_lake(lake, option), older_than, keep, grace, yes=yes, json=json)
    else:
        vacuum_table(newest_table(lake, option, name), older_than, keep, grace, yes=yes, json=json)


def health(name: TableName, lake: LakeUrl = None, option: StoreOptions = None, json: Json = False) -> None:
    """Show what slows a table down, and how to fix it.

    Looks at metadata only: small files, deleted rows that files still hold, files that overlap in the sort column,
    versions, and files that no version has, of a sample. Each finding names the command that fixes it.

    \b
    Examples:
      underlay health taxi.trips
      underlay health taxi.trips --json
    """
    from underlay.cli.care.deletion_reports import show_health
    from underlay.cli.common.table_choice import newest_table

    show_health(newest_table(lake, option, name), json=json)
