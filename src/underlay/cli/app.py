"""All commands, as one Typer application."""

from __future__ import annotations

import sys
import traceback
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from underlay import __version__
from underlay.cli.care import compaction, deletions, imports, service
from underlay.cli.changing import commands as changing
from underlay.cli.ending import run_to_its_end
from underlay.cli.hot.commands import app as hot
from underlay.cli.ingest import commands as ingest
from underlay.cli.interop import commands as interop
from underlay.cli.main import drop_output
from underlay.cli.maintenance import commands as maintenance
from underlay.cli.pm.commands import app as pm
from underlay.cli.registry.commands import app as registry
from underlay.cli.rows import commands as rows
from underlay.cli.serve import commands as serving
from underlay.cli.tables import lake_commands as lake
from underlay.cli.tables import table_commands as table

_REGISTRY_SECONDS = 5.0
"""How long a command that wrote waits for the registry to catch up before it exits."""


class _Commands(TyperGroup):
    """The group of all commands. A reader that closes the pipe early, as `head` does, is not an error."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # click's Context, private in Typer
        """Accept `--debug` after the command too."""
        own = args[: args.index("--")] if "--" in args else args
        if "--debug" in own:
            args = ["--debug", *(text for text in own if text != "--debug"), *args[len(own) :]]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  # click's Context, private in Typer
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            drop_output()
            raise typer.Exit(0) from None
        except typer.Exit:
            raise
        except Exception:  # any fault: --debug shows its traceback, then it becomes a message
            if ctx.params["debug"]:
                traceback.print_exc()
            raise


class _SqlCommand(TyperCommand):
    """`underlay sql`: a query that begins with a comment (`-- …`) is a query, not an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # click's Context, private in Typer
        takes_value = {name for option in self.params if not getattr(option, "is_flag", True) for name in option.opts}
        for at, text in enumerate(args):
            is_value = at > 0 and args[at - 1] in takes_value
            if text == "--":
                break
            if text.startswith("--") and not is_value and any(map(str.isspace, text.partition("=")[0])):
                args = [*args[:at], *args[at + 1 :], "--", text]
                break
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="underlay",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_VERBS = (
    lake.init,
    lake.trust,
    table.create,
    changing.alter,
    ingest.ingest,
    rows.append,
    changing.upsert,
    changing.update,
    changing.delete,
    rows.register,
    rows.unregister,
    imports.import_table,
    imports.sync,
    lake.tables,
    table.show,
    rows.scan,
    rows.sql,
    rows.plan,
    changing.changes,
    table.history,
    table.tag,
    table.rollback,
    lake.revisions,
    lake.rename,
    lake.drop,
    compaction.compact,
    deletions.expire,
    deletions.sweep,
    deletions.vacuum,
    deletions.health,
    service.care,
    interop.export,
    serving.serve,
    maintenance.verify,
    maintenance.jobs,
    maintenance.leases,
)
"""The commands in the order of the help."""
for _verb in _VERBS:
    name = "import" if _verb is imports.import_table else None
    app.command(name, cls=_SqlCommand if _verb is rows.sql else None)(_verb)
app.add_typer(registry, name="registry")
app.add_typer(pm, name="pm")
app.add_typer(hot, name="hot")
app.add_typer(serving.token, name="token")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"underlay {__version__}")
        raise typer.Exit


@app.callback()
def main(
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="UNDERLAY_DEBUG", help="Show a traceback when something fails. Default: no."),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The metadata layer under Parquet: tables of Parquet files, and queries that read only what they need.

    \b
    Examples:
      underlay init data/lake
      underlay create taxi.trips --from trips.csv
      underlay append taxi.trips trips.csv
      underlay sql "select count(*) from taxi.trips"
    """


_group = cache(lambda: get_command(app))
"""Typer inspects the signatures of all commands, which takes longer than many a command; a program that runs several,
as tests do, builds them once."""


def run_command() -> None:
    """Run the command that the arguments name. Exit codes are those of `errors.EXIT_CODES`, 1 for a check that found
    something, and 130 after Ctrl-C."""
    run_to_its_end(lambda: _group()(prog_name="underlay"), _REGISTRY_SECONDS)
