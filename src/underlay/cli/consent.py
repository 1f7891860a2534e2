"""Commands that take something away do it only when they are told twice."""

from __future__ import annotations

from typing import NoReturn

import typer

from underlay.cli.output import say
from underlay.errors import InvalidRequest, exit_code


def need_yes(what: str) -> NoReturn:
    """Say what would be done, and end the command without doing it."""
    say(f"{what}.\nNothing was changed; add --yes to do it.")
    raise typer.Exit(exit_code(InvalidRequest("")))
