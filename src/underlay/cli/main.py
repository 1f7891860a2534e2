"""The `underlay` command. Help is read from a file, since importing Typer takes ten times as long as printing the help.

Imports only `os` and `sys`. Everything else is imported when a command runs: with `underlay.cli.app`, or, for the short
commands that are run most, with `underlay.cli.quick`, which needs no Typer.
"""

from __future__ import annotations

import os
import sys

from underlay._version import __version__

HELP = os.path.join(os.path.dirname(__file__), "help.txt")  # pathlib is slow to import
"""Typer's help of each command on terminals of 80 columns and more: it never uses more than 80. A test compares them,
and `python -m tests.cli.help_file` rewrites them."""

_COLUMNS = 80
_GARBAGE_OBJECTS = 50_000


def run() -> None:
    """Entry point: data on stdout, messages on stderr, no traceback unless requested."""
    if hasattr(sys.stdout, "reconfigure"):
        # A file name need not be text, and a terminal need not support every character.
        sys.stdout.reconfigure(errors="backslashreplace")
    answer = _stored_answer(sys.argv[1:])
    if answer is not None:
        _print(answer)
        sys.exit(0)
    _be_brief()
    if sys.argv[1:2] in (["tables"], ["sql"]) and not os.environ.get("UNDERLAY_DEBUG"):
        from underlay.cli.quick import run_quickly

        run_quickly(sys.argv[1], sys.argv[2:])
    from underlay.cli.app import run_command

    run_command()


class Without:
    """Hides a module: put into `sys.meta_path` while modules are imported that can do without it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise an error for this module, and find none of the others."""
        if name == self._name:
            raise ModuleNotFoundError(f"underlay's commands do without {name}", name=name)


def _be_brief() -> None:
    """Save start-up time. Only for our own process: one that uses Arrow already may need pandas later. No command needs
    it, but Arrow imports it with the first value that it converts, which takes longer than the rest of a query. Garbage
    collection is made rare, as imports leave no garbage: it would interrupt them a hundred times.
    """
    if "pandas" not in sys.modules and "pyarrow" not in sys.modules:
        import gc

        gc.set_threshold(_GARBAGE_OBJECTS, 20, 20)
        sys.meta_path.insert(0, Without("pandas"))


def help_heading(command: str) -> str:
    """The line before a command's help in the file."""
    return f"\f{command}\n"


def _stored_answer(given: list[str]) -> str | None:
    """The text for arguments that only ask for help or the version; None if a command must run."""
    if given == ["--version"]:
        return f"underlay {__version__}\n"
    if not given or given[-1] not in ("-h", "--help"):
        return None
    if _terminal_columns() < _COLUMNS:
        return None
    with open(HELP, encoding="utf-8") as file:
        _, _, found = file.read().partition(help_heading(" ".join(["underlay", *given[:-1]])))
    return found.partition("\f")[0] or None


def _terminal_columns() -> int:
    """Like `shutil.get_terminal_size`, which is slow to import."""
    text = os.environ.get("COLUMNS", "")
    if text.isdecimal() and int(text) > 0:
        return int(text)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or _COLUMNS  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return _COLUMNS


def _print(text: str) -> None:
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        drop_output()


def drop_output() -> None:
    """Forget what stdout still buffers. Python would write it at exit, fail again, and report that."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
