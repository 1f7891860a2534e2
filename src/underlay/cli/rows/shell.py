r"""`underlay sql` without a statement: a shell for SQL over the lake's tables.

A statement ends with a semicolon and may have many lines. Ctrl-C cancels the running statement, or clears the input;
Ctrl-D ends the shell. The history is kept in a file that only its user can read.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from underlay._version import __version__
from underlay.api.opened.layout import layout_texts
from underlay.cli.common.formats import BINARY, RowsAs, format_of_name
from underlay.cli.common.output import print_table, printable, say
from underlay.cli.rows.agreement import is_agreed
from underlay.cli.rows.completion import SqlCompleter
from underlay.cli.rows.query import run_query
from underlay.errors import InvalidRequest, UnderlayError
from underlay.local.text.words import ends_statement, split_statements

if TYPE_CHECKING:
    from underlay.api.lake import Lake

PROMPT = "underlay> "
_MORE = "     ...> "
_LEAVE = ("\\q", "exit", "quit", "exit;", "quit;")
_SWITCH = {"on": True, "off": False}
HELP = r"""Statements end with ";" and may have many lines. Enter runs one, Tab completes names.

  \d            list the tables           \d TABLE      its columns, key and layout
  \dt DATASET   the tables of a dataset   \timing       show or hide how long statements take
  \x            one line per value        \f FORMAT     table, vertical, markdown, csv, json or ndjson
  \limit N      show at most N rows       \o FILE       write the rows of the next statement to a file
  \?            this text                 \q            leave, as Ctrl-D does

Ctrl-C cancels the statement that runs, or clears what was typed."""


def run_shell(lake: Lake, *, format: RowsAs, limit: int | None, yes: bool = False) -> None:
    """Read statements from the terminal until its end."""
    shell = Shell(lake, format=format, limit=limit, yes=yes)
    session: PromptSession[str] = PromptSession(
        history=_history(),
        completer=shell.completer,
        complete_while_typing=False,
        complete_in_thread=True,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=_MORE,
    )
    say(f"underlay {__version__}, {lake.url}\nType \\? for help, \\q to leave.")
    while True:
        try:
            text = session.prompt(PROMPT)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        try:
            if not shell.run(text):
                return
        except KeyboardInterrupt:  # a second one, while the first was being handled, must not end the shell
            say("cancelled")


def is_complete(text: str) -> bool:
    """Whether Enter runs the input, rather than beginning another line of it."""
    bare = text.strip()
    return not bare or bare.startswith("\\") or bare.lower() in (*_LEAVE, "help") or ends_statement(text)


class Shell:
    """Runs the shell's input. Errors are printed, and the shell goes on."""

    def __init__(self, lake: Lake, *, format: RowsAs, limit: int | None, yes: bool = False) -> None:
        self._lake = lake
        self._yes = yes
        self._format = format
        self._before_x = RowsAs.TABLE
        self._limit = limit
        self._is_timing = True
        self._output: str | None = None
        self._commands: dict[str, Callable[[str], None]] = {
            "\\d": self._describe,
            "\\dt": self._list,
            "\\timing": self._time,
            "\\x": self._turn,
            "\\f": self._choose_format,
            "\\limit": self._choose_limit,
            "\\o": self._choose_output,
            "\\?": lambda _: print(HELP),
        }
        self.completer = SqlCompleter(lake, (*self._commands, "\\q"))

    def run(self, text: str) -> bool:
        """Run a command or statements. Returns False when the shell should end."""
        bare = text.strip()
        if bare.lower() in _LEAVE:
            return False
        try:
            if bare.lower() in ("help", "help;"):
                print(HELP)
            elif bare.startswith("\\"):
                self._command(bare.rstrip(";"))
            else:
                for statement in split_statements(text):
                    self._query(statement)
        except KeyboardInterrupt:
            say("cancelled")
        except UnderlayError as error:
            say(f"error: {error}")
        except OSError as error:
            say(f"error: {error.strerror or error}")
        except Exception as error:  # noqa: BLE001  # a bug of ours must not end the session
            say(f"error: this is a bug in Underlay: {type(error).__name__}: {error}")
        sys.stdout.flush()
        return True

    def _command(self, text: str) -> None:
        name, _, argument = text.partition(" ")
        act = self._commands.get(name)
        if act is None:
            raise InvalidRequest(f"there is no command {name}", hint="\\? lists the commands.")
        act(argument.strip())

    def _query(self, statement: str) -> None:
        self.completer.forget()
        if not is_agreed(self._lake, statement, yes=self._yes):
            return
        output, self._output = self._output, None
        format = self._format if output is None else format_of_name(output)
        begin = time.monotonic()
        run_query(self._lake, statement, None, format=format, limit=self._limit, output=output, is_shell=True)
        if self._is_timing:
            say(f"time: {time.monotonic() - begin:.3f} s")

    def _list(self, dataset: str) -> None:
        names = [table.name.partition(".") for table in self._lake.tables()]
        rows = [(one, table) for one, _, table in names if not dataset or one.lower() == dataset.lower()]
        print_table(("dataset", "table"), rows)

    def _describe(self, name: str) -> None:
        if not name:
            self._list("")
            return
        table = self._lake.table(next((t for t in self.completer.tables() if t.lower() == name.lower()), name))
        schema = table.snapshot().schema
        print_table(
            ("column", "type", "null", "comment"),
            [(one.name, one.type, "no" if one.is_required else "yes", one.comment or "") for one in schema.fields],
        )
        for what, texts in layout_texts(table.definition, schema).items():
            if texts:
                print(f"{what.replace('_', ' ')}: {printable(', '.join(texts))}")

    def _time(self, argument: str) -> None:
        self._is_timing = _switched(argument, self._is_timing)
        say(f"timing is {'on' if self._is_timing else 'off'}")

    def _turn(self, argument: str) -> None:
        is_vertical = _switched(argument, self._format is RowsAs.VERTICAL)
        if is_vertical and self._format is not RowsAs.VERTICAL:
            self._before_x = self._format
        self._format = RowsAs.VERTICAL if is_vertical else self._before_x
        say(f"format: {self._format}")

    def _choose_format(self, argument: str) -> None:
        choices = [one.value for one in RowsAs if one not in BINARY]
        if argument and argument not in choices:
            hint = "Write Parquet and Arrow with \\o FILE." if argument in BINARY else None
            raise InvalidRequest("not a format", found=argument, expected=", ".join(choices), hint=hint)
        self._format = RowsAs(argument) if argument else self._format
        say(f"format: {self._format}")

    def _choose_limit(self, argument: str) -> None:
        if argument and not (argument.isascii() and argument.isdecimal()):
            raise InvalidRequest("a limit is a number of rows", found=argument, hint="Without one, \\limit lifts it.")
        self._limit = int(argument) if argument else None
        say("no limit" if self._limit is None else f"at most {self._limit:,} rows")

    def _choose_output(self, argument: str) -> None:
        if argument:
            format_of_name(argument)
            say(f"the rows of the next statement go to {argument}")
        self._output = argument or None


def _switched(argument: str, is_on: bool) -> bool:
    if argument and argument.lower() not in _SWITCH:
        raise InvalidRequest("not a choice", found=argument, expected="on or off")
    return _SWITCH[argument.lower()] if argument else not is_on


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def history_path() -> Path:
    """The path of the history: in the user's state directory."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "underlay" / "sql_history"


def _history() -> History:
    """The history, in a file that only its user can read; in memory if that is not possible."""
    path = history_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        with suppress(OSError):
            path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
