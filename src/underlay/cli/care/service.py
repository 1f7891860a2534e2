"""Declares `care`; what it does is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.options import Json, LakeUrl, StoreOptions

Watch = Annotated[bool, typer.Option("--watch", help="Keep running until Ctrl-C. Default: once.")]
Interval = Annotated[str, typer.Option(metavar="SPAN", help="How often --watch looks: 30s, 5m.", show_default=True)]


def care(
    watch: Watch = False,
    interval: Interval = "60s",
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Do for tables what their properties care.* ask for.

    Compacts a table that has care.compact_after_files small files, expires versions by care.keep_for and
    care.keep_versions, and sweeps the lake: once, or with --watch once a day. Tables without such properties are left.
    Only one process at a time looks after a table.

    \b
    Examples:
      underlay care
      underlay care --watch --interval 5m
    """
    from underlay.cli.care.care_rounds import care_once, watch_care
    from underlay.cli.common.lake_choice import open_existing_lake

    opened = open_existing_lake(lake, option)
    if watch:
        watch_care(opened, interval, json=json)
    else:
        care_once(opened, json=json)
