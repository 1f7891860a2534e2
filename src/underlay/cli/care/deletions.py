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
    typer.Option(metavar="N", help="Leave the newest N versions. Default: the table's care.keep_versions, else 10."),
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

    A version goes when it is old enough and not among the newest. Versions with a tag, versions that a reader holds a
    lease on, and those that a running job may need are left. Records of runs of that age go as well. Nothing is changed
    without --yes. Files that only expired versions had stay until "underlay sweep" deletes them.

    \b
    Examples:
      underlay expire taxi.trips
      underlay expire taxi.trips --older-than 30d --keep 100 --yes
    """
    from underlay.cli.care.deletion_reports import expire_versions
    from underlay.cli.common.table_choice import newest_table

    expire_versions(newest_table(lake, option, name), older_than, keep, yes=yes, json=json)
