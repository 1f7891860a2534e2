"""The `underlay` command: the only place where errors become messages and exit codes."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from underlay import __version__
from underlay.cli.common.lake_choice import finish_registries
from underlay.cli.common.output import say
from underlay.cli.ingest import commands as ingest
from underlay.cli.maintenance import commands as maintenance
from underlay.cli.pm.commands import app as pm
from underlay.cli.registry.commands import app as registry
from underlay.cli.rows import commands as rows
from underlay.cli.tables import lake_commands as lake
from underlay.cli.tables import table_commands as table
from underlay.errors import Unavailable, UnderlayError, exit_code

_REGISTRY_SECONDS = 5.0
"""How long a command that wrote waits, when it is done, until that is in the registry."""


class _Notes(logging.Handler):
    """What the library says of a registry that is not used, as commands say it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Say it."""
        say(f"note: {record.getMessage()}")


_NOTES = _Notes()


class _Commands(TyperGroup):
    """Commands whose output may be cut off by its reader, as `head` does: that is no failure of ours."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  # click's Context, which Typer keeps to itself
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            raise typer.Exit(0) from None
        except typer.Exit:
            raise
        except Exception:  # any fault: shown as it is, then passed on to become a message
            if ctx.params["debug"]:
                traceback.print_exc()
            raise


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
    table.create,
    ingest.ingest,
    rows.append,
    rows.register,
    lake.tables,
    table.show,
    rows.scan,
    rows.sql,
    rows.plan,
    table.history,
    table.tag,
    table.rollback,
    lake.revisions,
    lake.rename,
    lake.drop,
    maintenance.verify,
    maintenance.jobs,
    maintenance.leases,
)
"""In the order in which help lists them."""
for _verb in _VERBS:
    app.command()(_verb)
app.add_typer(registry, name="registry")
app.add_typer(pm, name="pm")


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


def run() -> None:
    """Entry point: data on stdout, words on stderr, no traceback unless asked for.

    Exit codes are those of `errors.EXIT_CODES`, 1 for a check that found something, and 130 after Ctrl-C.
    """
    if hasattr(sys.stdout, "reconfigure"):
        # A file name need not be text, and a terminal need not know every character.
        sys.stdout.reconfigure(errors="backslashreplace")
    logging.getLogger("underlay.registry").addHandler(_NOTES)
    try:
        try:
            app()
        finally:
            with suppress(KeyboardInterrupt):
                finish_registries(_REGISTRY_SECONDS)
    except UnderlayError as error:
        _fail(str(error), exit_code(error))
    except OSError as error:
        _drop_output()
        _fail(str(Unavailable(error.strerror or str(error), place=error.filename)), exit_code(Unavailable("")))
    except Exception as error:  # noqa: BLE001  # the last resort: whatever comes here is a fault of ours, and is said so
        _fail(
            f"this is a fault in Underlay: {type(error).__name__}: {error}\n"
            'Please report it with what "underlay --debug …" prints.',
            exit_code(UnderlayError("")),
        )


def _fail(message: str, code: int) -> NoReturn:
    print(f"error: {message.rstrip()}", file=sys.stderr)
    sys.exit(code)


def _drop_output() -> None:
    """Forget what stdout still holds: writing it once more when Python ends would fail again, and say so."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
