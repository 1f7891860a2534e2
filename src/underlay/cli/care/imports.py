"""Declares `import` and `sync`; what they do is imported when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.care.compaction import DryRun
from underlay.cli.common.options import Json, LakeUrl, StoreOptions, TableName

Files = Annotated[list[str] | None, typer.Argument(metavar="[SOURCE | FILES...]", hidden=True, show_default=False)]


def import_table(
    name: TableName,
    files: Files = None,
    dry_run: DryRun = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Import a table of another system, or registered files.

    With SOURCE a new table gets the columns and rows of a table that another system wrote: delta:PATH for Delta Lake,
    iceberg:PATH and iceberg+rest://HOST/NAMESPACE.TABLE for Iceberg, ducklake:FILE#SCHEMA.TABLE for DuckLake,
    questdb:PATH for QuestDB, hive:PATH for a folder of Parquet files with partitions such as year=2024. Its files stay
    where they are; "underlay sync" follows later changes.

    Without, registered files of the table are copied, and become its own: FILES, which are paths, folders, URLs or
    patterns, or all of them. Blocks are copied byte for byte, and encoded again where their statistics could mislead
    other engines.

    \b
    Examples:
      underlay import taxi.trips delta:s3://nyc/trips
      underlay import taxi.trips 's3://nyc/yellow_2024-*.parquet' --dry-run
    """
    from underlay.cli.care.import_reports import import_files_or_table

    import_files_or_table(lake, option, name, files or [], dry_run=dry_run, json=json)


def sync(name: TableName, lake: LakeUrl = None, option: StoreOptions = None, json: Json = False) -> None:
    """Bring an imported table to the newest version of its source.

    One version with the files that came and went in the other system since the last sync; none when nothing is new. It
    is refused if the source is another table now or was rolled back, and if imported files were changed here.

    \b
    Examples:
      underlay sync taxi.trips
      underlay sync taxi.trips --json
    """
    from underlay.cli.care.import_reports import sync_table
    from underlay.cli.common.table_choice import newest_table

    sync_table(newest_table(lake, option, name), json=json)
