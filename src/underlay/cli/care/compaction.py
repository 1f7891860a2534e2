"""Declares `compact`; what it does is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.options import Json, LakeUrl, StoreOptions, TableName, Where

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would be done. Default: do it.")]
Files = Annotated[list[str] | None, typer.Argument(metavar="[FILES]...", hidden=True, show_default=False)]
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


def import_registered(
    name: TableName,
    files: Files = None,
    dry_run: DryRun = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Make registered files the table's own, by copying.

    FILES are paths, folders, URLs or patterns, as for "underlay unregister"; without them all registered files are
    imported. They stay where they are. Blocks are copied byte for byte, and encoded again where their statistics could
    mislead other engines.

    \b
    Examples:
      underlay import taxi.trips --dry-run
      underlay import taxi.trips 's3://nyc/yellow_2024-*.parquet'
    """
    from underlay.cli.care.compaction_reports import import_into_table
    from underlay.cli.common.table_choice import newest_table

    import_into_table(newest_table(lake, option, name), files or [], dry_run=dry_run, json=json)
