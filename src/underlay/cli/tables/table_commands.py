"""Commands on a table and its versions. Only declarations: `--help` loads no library that reads data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from underlay.cli.common.options import AsOf, Json, LakeUrl, StoreOptions, TableName, Tag, VersionNumber, Yes


def create(
    name: TableName,
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS", help='Columns as SQL, such as "id bigint not null, at timestamp". Default: none.'
        ),
    ] = None,
    schema_file: Annotated[
        Path | None, typer.Option("--schema-file", metavar="FILE", help="A file with such text. Default: none.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DATA",
            help="Columns as this Parquet, CSV, JSON lines or Arrow file has them; its rows are not added."
            " Default: none.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of the key, with bloom filters; repeatable. Default: no key."),
    ] = None,
    sort_by: Annotated[
        list[str] | None,
        typer.Option(
            "--sort-by",
            metavar="COLUMN",
            help='Sort the rows of a file by it; "fare desc" for descending; repeatable. Default: as they come.',
        ),
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            "--partition-by",
            metavar="TRANSFORM",
            help="Keep files apart by zone, month(pickup), bucket(16, id), …; repeatable. Default: no partitions.",
        ),
    ] = None,
    comment: Annotated[str | None, typer.Option(metavar="TEXT", help="What the table is. Default: none.")] = None,
    property: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="KEY=VALUE",
            help="How files are written: block_rows, block_bytes, file_bytes, codec, bloom; repeatable."
            " Default: 1048576 rows or 128 MiB a block, 512 MiB a file, zstd, bloom filters on the key.",
        ),
    ] = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Create a table without rows.

    The columns come from one of --schema, --schema-file and --from.

    \b
    Examples:
      underlay create taxi.trips --schema "id bigint not null, pickup timestamp, fare double" --key id --sort-by pickup
      underlay create taxi.trips --from trips.csv --partition-by "month(pickup)"
    """
    from underlay.cli.common.lake_choice import open_existing_lake
    from underlay.cli.tables.table_create import create_table

    create_table(
        open_existing_lake(lake, option),
        name,
        schema=schema,
        schema_file=schema_file,
        data=data,
        key=key or (),
        sort_by=sort_by or (),
        partition_by=partition_by or (),
        comment=comment,
        properties=property or (),
        json=json,
    )


def show(
    name: TableName,
    version: VersionNumber = None,
    as_of: AsOf = None,
    tag: Tag = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Show what a table is: columns, layout, size, tags.

    DATASET.TABLE@7 is version 7 of a table, and DATASET.TABLE@audit the one tagged so.

    \b
    Examples:
      underlay show taxi.trips
      underlay show taxi.trips@7 --json
    """
    from underlay.cli.common.table_choice import chosen_table
    from underlay.cli.tables.table_show import show_table

    show_table(chosen_table(lake, option, name, version=version, as_of=as_of, tag=tag), json=json)


def history(
    name: TableName,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The newest N versions only. Default: all.")
    ] = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """List the versions of a table, newest first.

    Each with its time (UTC), what it did, and the rows and files that the table then had.

    \b
    Examples:
      underlay history taxi.trips
      underlay history taxi.trips --limit 5 --json
    """
    from underlay.cli.common.table_choice import chosen_table
    from underlay.cli.tables.table_versions import list_history

    list_history(chosen_table(lake, option, name), limit=limit, json=json)


def tag(
    name: TableName,
    tag: Annotated[str, typer.Argument(metavar="NAME", hidden=True, show_default=False)],
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", help="The version to name. Default: the newest.")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Take the name away. Default: give it.")] = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Give a version of a table a name, or take it away.

    A tag that stands for another version moves.

    \b
    Examples:
      underlay tag taxi.trips audit --version 7
      underlay tag taxi.trips audit --delete
    """
    from underlay.cli.common.table_choice import newest_table
    from underlay.cli.tables.table_versions import tag_version

    tag_version(newest_table(lake, option, name), tag, version=version, delete=delete, json=json)


def rollback(
    name: TableName,
    version: Annotated[int, typer.Argument(metavar="VERSION", hidden=True, show_default=False)],
    yes: Yes = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Make a new version that has what an older one had.

    Without --yes this only says what would change, and ends with exit code 2. No version is lost.

    \b
    Examples:
      underlay rollback taxi.trips 5
      underlay rollback taxi.trips 5 --yes
    """
    from underlay.cli.common.table_choice import newest_table
    from underlay.cli.tables.table_versions import roll_back

    roll_back(newest_table(lake, option, name), version, yes=yes, json=json)
