"""The help of every command as Typer renders it: `python -m tests.cli.help_file` writes it to the package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import typer
from typer.main import get_command

from underlay.cli.app import app
from underlay.cli.main import HELP, help_heading


def rendered() -> str:
    """The content of the file."""
    with patch.dict(os.environ, {"COLUMNS": "80"}):
        return "".join(help_heading(name) + text + "\n" for name, text in _pages(get_command(app), "underlay", None))


def _pages(command, name: str, parent: typer.Context | None) -> Iterator[tuple[str, str]]:
    context = typer.Context(command, info_name=name.split()[-1], parent=parent, **command.context_settings)
    yield name, command.get_help(context)
    for inner in getattr(command, "commands", {}):
        yield from _pages(command.commands[inner], f"{name} {inner}", context)


if __name__ == "__main__":
    Path(HELP).write_text(rendered())
