"""Declares `export`; what it does is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.options import Json, LakeUrl, StoreOptions

Name = Annotated[str | None, typer.Argument(metavar="[DATASET.TABLE | status]", hidden=True, show_default=False)]
As = Annotated[
    str,
    typer.Option("--as", metavar="KIND", help="iceberg, or delta.", show_default=True),
]
IcebergFormat = Annotated[
    int | None,
    typer.Option("--format", metavar="N", help="Iceberg's format, 2 or 3. Default: 2 unless something needs 3."),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="What other engines call the lake's folder, such as abfss://c@account.dfs.core.windows.net/lake."
        " Default: the lake's URL.",
    ),
]
WithoutColumns = Annotated[
    str | None, typer.Option("--without", metavar="A,B", help="Columns to leave out. Default: none.")
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="URL", help="Another folder for the warehouse. Default: _iceberg in the lake."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only print what would be exported, and why not. Default: do it.")
]
Every = Annotated[bool, typer.Option("--all", help="Export all tables of the lake. Default: the named table.")]


def export(
    name: Name = None,
    kind: As = "iceberg",
    format: IcebergFormat = None,
    base_url: BaseUrl = None,
    without: WithoutColumns = None,
    to: To = None,
    dry_run: DryRun = False,
    every: Every = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Write metadata by which other engines read a table.

    Files stay as they are. Exports as iceberg are a warehouse in the folder _iceberg of the lake: engines name a table
    by its folder or, without a server, by the name that it has here. What the format cannot represent truthfully is
    refused, with what to do about it, unless it is left out. "underlay export status" lists the exports of all tables.

    \b
    Examples:
      underlay export taxi.trips
      underlay export taxi.trips --without size --dry-run
      underlay export --all --as iceberg --base-url s3://bucket/lake
      underlay export status
    """
    from underlay.cli.interop import export_reports as reports

    given = reports.Given(kind=kind, format=format, base_url=base_url, without=without, to=to, dry_run=dry_run)
    reports.run_export(lake, option, name, given, every=every, json=json)
