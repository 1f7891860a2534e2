"""How commands speak: data on stdout, words on stderr, one JSON object a line when asked for.

Commands that take something away do it only when they are told twice.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO, NoReturn, Protocol, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from underlay.errors import InvalidRequest, UnderlayError, exit_code

T = TypeVar("T")

UNKNOWN = "–"
"""What a table shows for a value that nobody stored."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_LARGE = 1024


class Tell(Protocol):
    """Told how much of how much is done, and some words more to show beside it."""

    def __call__(self, done: int, total: int, words: str = "", /) -> None:
        """Show it."""


def say(text: str) -> None:
    """Words for a person: stderr."""
    print(text.rstrip(), file=sys.stderr)


def print_json(value: Mapping[str, object]) -> None:
    """One object on one line, in ASCII so that it passes through any terminal and locale: stdout."""
    print(json.dumps(value, separators=(",", ":")))


def print_table(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """A table on stdout; numbers are aligned to the right, None is –.

    It is folded to the width of a terminal, and left as wide as it is for a file or another program.
    """
    cells = [[UNKNOWN if cell is None else printable(str(cell)) for cell in row] for row in rows]
    is_number = [_are_numbers([row[index] for row in cells]) for index in range(len(headings))]
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        _print_plain([list(headings), *cells], is_number)
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading, to_the_right in zip(headings, is_number, strict=True):
        table.add_column(heading, justify="right" if to_the_right else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    console.print(table)


def _print_plain(lines: list[list[str]], is_number: list[bool]) -> None:
    widths = [max(len(line[index]) for line in lines) for index in range(len(is_number))]
    for line in lines:
        padded = (
            cell.rjust(width) if to_the_right else cell.ljust(width)
            for cell, width, to_the_right in zip(line, widths, is_number, strict=True)
        )
        print("  ".join(padded).rstrip())


_NUMBER = re.compile(r"-?[0-9][0-9,]*(\.[0-9]+)?(e[+-]?[0-9]+)?|-?inf|nan")


def _are_numbers(texts: list[str]) -> bool:
    """Whether there are numbers, and beside them nothing but gaps."""
    known = [text for text in texts if text not in ("", UNKNOWN)]
    return bool(known) and all(_NUMBER.fullmatch(text) for text in known)


def printable(text: str) -> str:
    """The text with line breaks and control characters written as escapes: names and values may hold any."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def show_bytes(size: int) -> str:
    """A size as people read it: `512 B`, `1.4 MiB`."""
    value = float(size)
    for unit in _UNITS:
        if value < _LARGE or unit == _UNITS[-1]:
            return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= _LARGE
    raise AssertionError("unreachable: the last unit always returns")


def show_count(count: int, noun: str) -> str:
    """`1 row group`, `2 row groups`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def binary_output() -> BinaryIO:
    """Stdout for bytes. Raises InvalidRequest when it is a terminal, which they would upset."""
    if sys.stdout.isatty():
        raise InvalidRequest("this is no text for a terminal", hint='Send it to a file or a program: "> FILE", "| …".')
    return sys.stdout.buffer


def try_each(items: Sequence[T], act: Callable[[T], None], what: str) -> UnderlayError | None:
    """Act on each item; a failure is said and the others still get their turn. The first failure, or None.

    A single item's failure is raised.
    """
    if len(items) == 1:
        act(items[0])
        return None
    first: UnderlayError | None = None
    for item in track(items, what):
        try:
            act(item)
        except UnderlayError as error:
            first = first or error
            say(f"error: {error}")
    return first


def end_with(failure: UnderlayError | None) -> None:
    """End the command with the exit code of a failure that has been said; go on if there is none."""
    if failure is not None:
        raise typer.Exit(exit_code(failure))


def track(items: Sequence[T], what: str) -> Iterator[T]:
    """The items one by one, with a progress bar on stderr when there are many and a person looks."""
    console = Console(stderr=True)
    if len(items) < 2 or not console.is_terminal:
        yield from items
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Rich prints what is written to stdout above its bar, so on stderr: right on a terminal, wrong for a pipe.
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as progress:
        yield from progress.track(items, description=what)


@contextmanager
def progress_bar(what: str) -> Iterator[Tell]:
    """A function to be told how much of how much is done, which shows it on stderr when a person looks."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total, words="": None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as progress:
        task = progress.add_task(what, total=None)

        def tell(done: int, total: int, words: str = "") -> None:
            progress.update(task, completed=done, total=total, description=f"{what} {words}".rstrip())

        yield tell


def need_yes(what: str) -> NoReturn:
    """Say what would be done, and end the command without doing it."""
    say(f"{what}.\nNothing was changed; add --yes to do it.")
    raise typer.Exit(exit_code(InvalidRequest("")))
