"""`underlay registry`: the metadata database. Only declarations: `--help` loads no library that reads data."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.options import Json, LakeUrl, StoreOptions

app = typer.Typer(
    help="Look at a lake's metadata database, and rebuild it.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        help="The registry: postgresql://user@host/database or sqlite:///path. Default: UNDERLAY_REGISTRY, else what"
        " underlay.toml says, with the lake, else a SQLite file, in a directory's _registry or in the user's state"
        " directory.",
    ),
]


@app.command()
def status(registry: RegistryUrl = None, lake: LakeUrl = None, option: StoreOptions = None, json: Json = False) -> None:
    """Show whether the registry is used, and how far it is behind.

    Nothing depends on a registry: without one, or with one that is behind, commands are slower and answer the same.
    Takes a request or two for each table. Exit code 1 when the registry is not used, 0 when it is merely behind.

    \b
    Examples:
      underlay registry status
      underlay registry status --json --registry postgresql://me@host/registry
    """
    from underlay.cli.registry.choice import chosen_registry
    from underlay.cli.registry.status import show_status

    show_status(chosen_registry(lake, option, registry), json=json)


@app.command()
def follow(registry: RegistryUrl = None, lake: LakeUrl = None, option: StoreOptions = None, json: Json = False) -> None:
    """Apply to the registry what it lacks.

    Every command does so for the tables that it uses; this does it for all of them at once. A registry that belongs
    to another lake, or is ahead of the store, is refused.

    \b
    Examples:
      underlay registry follow
      underlay registry follow --lake s3://bucket/lake --json
    """
    from underlay.cli.registry.actions import follow_store
    from underlay.cli.registry.choice import chosen_registry

    follow_store(chosen_registry(lake, option, registry), json=json)


@app.command()
def restore(
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only show where the registry differs from the store, and end with exit code 1 if it does."
            " Default: no.",
        ),
    ] = False,
    registry: RegistryUrl = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Rebuild the registry from the store.

    Use it when the registry was deleted or damaged, or belongs to another lake or an older copy. It is derived from
    the store, so nothing is lost. The old one stays in use until the new one is complete. Reads every version of every
    table.

    \b
    Examples:
      underlay registry restore
      underlay registry restore --dry-run --json
    """
    from underlay.cli.registry.actions import restore_registry, show_differences
    from underlay.cli.registry.choice import chosen_registry

    chosen = chosen_registry(lake, option, registry)
    if dry_run:
        show_differences(chosen, json=json)
    else:
        restore_registry(chosen, json=json)


@app.command()
def migrate(
    registry: RegistryUrl = None, lake: LakeUrl = None, option: StoreOptions = None, json: Json = False
) -> None:
    """Bring the registry's tables to what this release needs.

    A SQLite file is migrated by itself. A PostgreSQL database is not, since machines with an older release, which
    then do without it, may be using it: migrate it when all of them have this one.

    \b
    Examples:
      underlay registry migrate
      underlay registry migrate --registry postgresql://me@host/registry
    """
    from underlay.cli.registry.actions import migrate_registry
    from underlay.cli.registry.choice import chosen_registry

    migrate_registry(chosen_registry(lake, option, registry), json=json)
