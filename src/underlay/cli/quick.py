"""The short commands that are run most, `tables` and `sql`, without Typer: importing it takes longer than they do.

This module reads only arguments that are certainly valid. In all other cases Typer reads them again, and reports
errors; a test compares the options with Typer's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from underlay.cli.common.formats import RowsAs
from underlay.cli.main import Without
from underlay.errors import InvalidRequest

_REGISTRY_SECONDS = 5.0
_INTERRUPTED = 130


class QuickOption(NamedTuple):
    """An option: its parameter, and how its text is read; flags take no text."""

    parameter: str
    read: Callable[[str], object] | None = str
    is_list: bool = False


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(text)
    return int(text)


_COMMON = {
    "--lake": QuickOption("lake"),
    "--option": QuickOption("option", is_list=True),
    "--json": QuickOption("json", read=None),
}
QUICK: Mapping[str, Mapping[str, QuickOption]] = {
    "tables": _COMMON,
    "sql": {
        **_COMMON,
        "--param": QuickOption("param", is_list=True),
        "--limit": QuickOption("limit", read=_number),
        "--format": QuickOption("format", read=RowsAs),
        "--output": QuickOption("output"),
        "-o": QuickOption("output"),
        "--file": QuickOption("file"),
        "-f": QuickOption("file"),
        "--yes": QuickOption("yes", read=None),
    },
}
"""The options of each command that this module parses."""


def run_quickly(command: str, arguments: Sequence[str]) -> None:
    """Run the command and exit. Returns if Typer must read the arguments."""
    values = parse(command, arguments)
    if values is None:
        return
    from underlay.cli.ending import run_to_its_end

    try:
        run_to_its_end(lambda: _act(command, values), _REGISTRY_SECONDS)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    sys.exit(0)


def parse(command: str, arguments: Sequence[str]) -> dict[str, object] | None:
    """The values of all of the command's parameters, with defaults; None if Typer must read them."""
    options = QUICK[command]
    values: dict[str, object] = dict.fromkeys(option.parameter for option in options.values())
    values["json"] = False
    if command == "sql":
        values |= {"text": None, "yes": False}
    left = list(arguments)
    while left:
        given = left.pop(0)
        if not given.startswith("-") or given == "-":
            if "text" not in values or values["text"] is not None:
                return None
            values["text"] = given
            continue
        name, has_value, text = given.partition("=") if given.startswith("--") else (given, "", "")
        option = options.get(name)
        if option is None or (option.read is None and has_value):
            return None
        if option.read is None:
            values[option.parameter] = True
            continue
        if not has_value:
            if not left or (left[0].startswith("-") and left[0] != "-"):
                return None
            text = left.pop(0)
        try:
            value = option.read(text)
        except ValueError:
            return None
        if option.is_list:
            known = values[option.parameter]
            value = [*(known if isinstance(known, list) else ()), value]
        values[option.parameter] = value
    return values


_READING = frozenset(("DESC", "DESCRIBE", "FROM", "PIVOT", "SHOW", "SUMMARIZE", "TABLE", "UNPIVOT"))
"""Each query that reads a table contains one of these words."""


def is_of_values(text: str) -> bool:
    """Whether this is certainly a SELECT that reads no table, such as `select 1`."""
    from underlay.local.text.words import WordType, words_of

    try:
        words = words_of(text)
    except InvalidRequest:
        return False
    are_known = _READING.isdisjoint(word.text.upper() for word in words)
    is_one = all(word.token_type is not WordType.SEMICOLON for word in words[:-1])
    return bool(words) and words[0].text.upper() == "SELECT" and are_known and is_one


def _load_arrow_alone() -> None:
    """Arrow without numpy, which takes as long to import. Arrow needs it for numpy's arrays only, and a query that
    reads no table has none."""
    if "numpy" in sys.modules:
        return
    without = Without("numpy")
    sys.meta_path.insert(0, without)
    try:
        import pyarrow  # noqa: F401
    finally:
        sys.meta_path.remove(without)


def _act(command: str, values: Mapping[str, object]) -> None:
    from underlay.cli.main import drop_output

    try:
        if command == "tables":
            from underlay.cli.tables.listing import list_tables

            list_tables(**values)  # type: ignore[arg-type]  # `parse` read them by their types
        else:
            text = values["text"]
            if isinstance(text, str) and is_of_values(text):
                _load_arrow_alone()
            from underlay.cli.rows.query import sql_command

            sql_command(**values)  # type: ignore[arg-type]
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        sys.exit(0)
