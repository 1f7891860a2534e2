"""Commands on a lake and the tables in it: `init`, `trust`, `tables`, `rename`, `drop` and `revisions`."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.lake_choice import open_lake
from underlay.cli.common.options import Json, LakeUrl, StoreOptions, TableName, Yes
from underlay.cli.common.output import need_yes, print_json, print_table, say, show_bytes
from underlay.errors import TableNotFound


def init(
    url: Annotated[str | None, typer.Argument(metavar="[LAKE]", hidden=True, show_default=False)] = None,
    config: Annotated[
        bool, typer.Option(help="Write an underlay.toml to the current directory unless it has one.")
    ] = True,
    registry: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The lake's metadata database: postgresql://user@host/database, sqlite:///path, or none. Written to"
            " underlay.toml unless it holds a password. Default: UNDERLAY_REGISTRY, else a SQLite file, in a"
            " directory's _registry or in the user's state directory.",
        ),
    ] = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Create a lake: a place for tables.

    LAKE is a directory or a URL (s3://bucket/lake, gs://…, az://…). A store on which commits would not be safe is
    refused; an existing lake is left as it is. The command also writes an underlay.toml to the current directory, which
    tells other commands the lake and its registry. Options that may be secrets are not written to it.

    \b
    Examples:
      underlay init data/lake
      underlay init s3://bucket/lake --option region=eu-central-1 --no-config
    """
    from underlay.cli.tables.lake_init import init_lake

    init_lake(url, lake, option, config=config, json=json, registry=registry)


def trust(
    path: Annotated[str | None, typer.Argument(metavar="[PATH]", hidden=True, show_default=False)] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Withdraw the confirmation. Default: no.")] = False,
    json: Json = False,
) -> None:
    """Confirm an underlay.toml that names where to send credentials.

    Commands do not use a file that names an endpoint or a database server, or that others may write to, until you
    confirm it: they would send credentials of the environment to what it names.
    PATH is the file or its directory; by default the file that commands here would use. The confirmation holds until
    the file changes.

    \b
    Examples:
      underlay trust
      underlay trust ~/projects/lake/underlay.toml --forget
    """
    from underlay.cli.tables.trust_file import trust_file

    trust_file(path, forget=forget, json=json)


def tables(
    long: Annotated[
        bool, typer.Option("--long", "-l", help="Open each table: version, rows, files, size. Default: names only.")
    ] = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """List the tables of the lake.

    Names take one request to the store; --long takes a few more per table. Times are UTC.

    \b
    Examples:
      underlay tables
      underlay tables --long --lake s3://bucket/lake
    """
    from underlay.cli.tables.listing import list_tables

    list_tables(lake=lake, option=option, json=json, long=long)


def rename(
    name: Annotated[str, typer.Argument(metavar="OLD", hidden=True, show_default=False)],
    new_name: Annotated[str, typer.Argument(metavar="NEW", hidden=True, show_default=False)],
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Rename a table.

    Files, versions and tags stay as they are. OLD and NEW are DATASET.TABLE.

    \b
    Examples:
      underlay rename taxi.trips taxi.yellow_trips
      underlay rename staging.trips taxi.trips --lake data/lake
    """
    from underlay.cli.common.table_choice import with_near_names

    opened = open_lake(lake, option)
    try:
        opened.rename_table(name, new_name)
    except TableNotFound as error:
        raise with_near_names(error, opened, name) from None
    if json:
        print_json({"table": new_name, "was": name})
    else:
        say(f"{name} is now called {new_name}")


def drop(
    name: TableName, yes: Yes = False, lake: LakeUrl = None, option: StoreOptions = None, json: Json = False
) -> None:
    """Drop a table with all its versions.

    Without --yes this only prints what would be dropped, and ends with exit code 2. Files stay in the store.

    \b
    Examples:
      underlay drop taxi.trips
      underlay drop taxi.trips --yes
    """
    from underlay.cli.common.table_choice import open_newest
    from underlay.cli.tables.description import newest_of, show_size, version_json

    opened = open_lake(lake, option)
    now = newest_of(open_newest(opened, name))
    size = f"{show_size(now)}, {show_bytes(now.data_bytes)}"
    if not yes:
        if json:
            print_json({"table": name, "is_done": False, **version_json(now)})
        need_yes(
            f"{name}: this would drop versions 0 to {now.version} and all tags; the newest version has {size}."
            " Data files would stay in the store, and registered files where they are"
        )
    opened.drop_table(name)
    if json:
        print_json({"table": name, "is_done": True, **version_json(now)})
    else:
        say(f"{name}: dropped, {size}; its files are still in the store")


def revisions(name: TableName, lake: LakeUrl = None, option: StoreOptions = None, json: Json = False) -> None:
    """List the revisions of a table, oldest first.

    A revision is one physical incarnation of a table; exactly one is active. Times are UTC.

    \b
    Examples:
      underlay revisions taxi.trips
      underlay revisions taxi.trips --json
    """
    from underlay.cli.common.table_choice import with_near_names

    opened = open_lake(lake, option)
    try:
        found = opened.revisions(name)
    except TableNotFound as error:
        raise with_near_names(error, opened, name) from None
    if json:
        for one in found:
            print_json({"id": one.id, "is_active": one.is_active, "created": one.created.isoformat()})
        return
    print_table(
        ("revision", "created (UTC)", "active"),
        [(one.id, f"{one.created:%Y-%m-%d %H:%M:%S}", "yes" if one.is_active else "no") for one in found],
    )
