"""Commands on a lake and the names in it. Only declarations: `--help` loads no library that reads data."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.options import Json, LakeUrl, StoreOptions, TableName, Yes


def init(
    url: Annotated[str | None, typer.Argument(metavar="[LAKE]", hidden=True, show_default=False)] = None,
    config: Annotated[
        bool, typer.Option(help="Write an underlay.toml into the current directory unless one is there.")
    ] = True,
    registry: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The lake's metadata database: postgresql://user@host/database, sqlite:///path, or none. Written into"
            " underlay.toml unless it holds a password. Default: UNDERLAY_REGISTRY, else a SQLite file, in a"
            " directory's _registry or in the user's state directory.",
        ),
    ] = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Make a lake: a place for tables.

    LAKE is a directory or a URL (s3://bucket/lake, gs://…, az://…). A store on which commits would not be safe is
    refused; a lake that is there already is left as it is. An underlay.toml in the current directory then tells
    commands which lake is meant, and which registry; what may be a secret is not written into it.

    \b
    Examples:
      underlay init data/lake
      underlay init s3://bucket/lake --option region=eu-central-1 --no-config
    """
    from underlay.cli.tables.lake_init import init_lake

    init_lake(url, lake, option, config=config, json=json, registry=registry)


def tables(
    long: Annotated[
        bool, typer.Option("--long", "-l", help="Open each table: version, rows, files, size. Default: names only.")
    ] = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """List the tables of the lake.

    Names take one request to the store; --long takes some more for each table. Times are UTC.

    \b
    Examples:
      underlay tables
      underlay tables --long --lake s3://bucket/lake
    """
    from underlay.cli.common.lake_choice import open_existing_lake
    from underlay.cli.tables.table_show import list_tables

    list_tables(open_existing_lake(lake, option), long=long, json=json)


def rename(
    name: Annotated[str, typer.Argument(metavar="OLD", hidden=True, show_default=False)],
    new_name: Annotated[str, typer.Argument(metavar="NEW", hidden=True, show_default=False)],
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Give a table another name.

    Files stay where they are, and so do versions and tags. OLD and NEW are DATASET.TABLE.

    \b
    Examples:
      underlay rename taxi.trips taxi.yellow_trips
      underlay rename staging.trips taxi.trips --lake data/lake
    """
    from underlay.cli.common.lake_choice import open_lake
    from underlay.cli.tables.table_lifecycle import rename_table

    rename_table(open_lake(lake, option), name, new_name, json=json)


def drop(
    name: TableName, yes: Yes = False, lake: LakeUrl = None, option: StoreOptions = None, json: Json = False
) -> None:
    """Drop a table with all its versions.

    Without --yes this only says what would go, and ends with exit code 2. Files stay in the store.

    \b
    Examples:
      underlay drop taxi.trips
      underlay drop taxi.trips --yes
    """
    from underlay.cli.common.lake_choice import open_lake
    from underlay.cli.tables.table_lifecycle import drop_table

    drop_table(open_lake(lake, option), name, yes=yes, json=json)


def revisions(name: TableName, lake: LakeUrl = None, option: StoreOptions = None, json: Json = False) -> None:
    """List the revisions of a table, oldest first.

    A revision is one physical incarnation of a table; exactly one is active. Times are UTC.

    \b
    Examples:
      underlay revisions taxi.trips
      underlay revisions taxi.trips --json
    """
    from underlay.cli.common.lake_choice import open_lake
    from underlay.cli.tables.table_versions import list_revisions

    list_revisions(open_lake(lake, option), name, json=json)
