"""Declares `compact`; what it does is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.options import Json, LakeUrl, StoreOptions, TableName, Where

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would be done. Default: do it.")]
Order = Annotated[
    str | None,
    typer.Option(
        metavar="ORDER",
        help="Rewrite all files: sort, for the table's own order, or zorder(a, b), so that rows close in both columns"
        " are stored close together. Default: copy full blocks as they are.",
    ),
]


def compact(
    name: TableName,
    where: Where = None,
    order: Order = None,
    dry_run: DryRun = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Join small files, and drop deleted rows for good.

    Full blocks are copied byte for byte; only blocks that are not full, or have deleted rows, are encoded again. The
    rows stay as they are, and other writers can go on. With --where only files that may hold a row that matches. Older
    versions keep the old files until "underlay expire" and "underlay sweep".

    \b
    Examples:
      underlay compact taxi.trips --dry-run
      underlay compact taxi.trips --where "pickup >= '2024-03-01'"
      underlay compact taxi.trips --order "zorder(zone, pickup)"
    """
    from underlay.cli.care.compaction_reports import compact_table
    from underlay.cli.common.table_choice import newest_table

    compact_table(newest_table(lake, option, name), where, order, dry_run=dry_run, json=json)
