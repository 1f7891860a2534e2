"""How commands speak: data on stdout, messages on stderr, one JSON object per line on request.

Rich and Typer are imported where they are used: most output needs neither, and they take long to load.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import BinaryIO, NoReturn, Protocol, TypeVar
from unicodedata import combining, east_asian_width

from underlay.errors import InvalidRequest, UnderlayError, exit_code

T = TypeVar("T")

UNKNOWN = "–"
"""A table's text for null, and for statistics that are not stored."""

_ELLIPSIS = "…"
_GAP = "  "
_SHORTEST_TEXT = 12
"""Texts are not shortened below this to make room for other columns."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_LARGE = 1024


class Tell(Protocol):
    """Takes how much is done out of how much, and a note to show beside it."""

    def __call__(self, done: int, total: int, words: str = "", /) -> None:
        """Show it."""


def say(text: str) -> None:
    """A message for people: stderr."""
    print(text.rstrip(), file=sys.stderr)


def print_json(value: Mapping[str, object]) -> None:
    """One object on one line, in ASCII so that it passes through any terminal and locale: stdout."""
    print(json.dumps(value, separators=(",", ":")))


def print_table(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """A table on stdout; numbers are aligned to the right, None is –.

    On a terminal, long cells continue on the next line. For a file or another program, lines are not broken.
    """
    cells = _texts(rows)
    is_number = _number_columns(headings, cells)
    if not sys.stdout.isatty():
        _print_plain([list(headings), *cells], is_number)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading, to_the_right in zip(headings, is_number, strict=True):
        table.add_column(heading, justify="right" if to_the_right else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    Console(highlight=False, markup=False, emoji=False).print(table)


def print_rows(headings: Sequence[str], rows: Iterable[Iterable[object]], whole: Collection[int] = ()) -> int:
    """Rows of data as a table on stdout, one line each. Returns how many columns were left out.

    A table too wide for the terminal is made narrower: first texts are shortened, then columns in the middle are left
    out. Numbers are never shortened: a number that lacks digits is another number. Nor are columns that are `whole`.
    """
    cells = _texts(rows)
    is_number = _number_columns(headings, cells)
    names = [printable(heading) for heading in headings]
    if not sys.stdout.isatty():
        _print_plain([names, *cells], is_number)
        return 0
    width = get_terminal_size().columns
    is_whole = [number or at in whole for at, number in enumerate(is_number)]
    widths = _fitting_widths(names, cells, is_whole, width)
    shown, is_cut = _outer_columns(widths, width)
    picked = [[_shortened(row[at], widths[at]) for at in shown] for row in (names, *cells)]
    if is_cut is not None:
        for row in picked:
            row.insert(is_cut, _ELLIPSIS)
        shown.insert(is_cut, -1)
    _print_plain(picked, [at >= 0 and is_number[at] for at in shown])
    return len(names) - len(shown) + (is_cut is not None)


def _fitting_widths(names: list[str], cells: list[list[str]], is_whole: list[bool], width: int) -> list[int]:
    """The widths of columns, with texts and headings shortened until all fit, but not below a few characters."""
    heading = [cell_width(name) for name in names]
    content = [max((cell_width(row[at]) for row in cells), default=0) for at in range(len(names))]
    longest = max([*heading, *content], default=0)
    for limit in range(max(longest, _SHORTEST_TEXT), _SHORTEST_TEXT - 1, -1):
        widths = [
            max(min(head, limit), body if whole else min(body, limit))
            for head, body, whole in zip(heading, content, is_whole, strict=True)
        ]
        if sum(widths) + len(_GAP) * (len(widths) - 1) <= width:
            break
    return widths


def _outer_columns(widths: list[int], width: int) -> tuple[list[int], int | None]:
    """The columns that fit, chosen from both ends inward, and the position of the gap between them; None without a
    gap.
    """
    if sum(widths) + len(_GAP) * (len(widths) - 1) <= width or len(widths) < 2:
        return list(range(len(widths))), None
    left: list[int] = [0]
    right: list[int] = []
    used = widths[0] + len(_GAP) + len(_ELLIPSIS)
    for turn in range(1, len(widths)):
        at = len(left) if turn % 2 == 0 else len(widths) - 1 - len(right)
        used += len(_GAP) + widths[at]
        if used > width:
            break
        if turn % 2 == 0:
            left.append(at)
        else:
            right.insert(0, at)
    return left + right, len(left)


def _shortened(text: str, width: int) -> str:
    if cell_width(text) <= width:
        return text
    kept = ""
    for character in text:
        if cell_width(kept + character) >= width:
            break
        kept += character
    return kept + _ELLIPSIS


def cell_width(text: str) -> int:
    """How many terminal columns a text takes: two for wide East Asian characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1 for character in text)


def _texts(rows: Iterable[Iterable[object]]) -> list[list[str]]:
    return [[UNKNOWN if cell is None else printable(str(cell)) for cell in row] for row in rows]


def _number_columns(headings: Sequence[str], cells: list[list[str]]) -> list[bool]:
    return [_are_numbers([row[index] for row in cells]) for index in range(len(headings))]


def _print_plain(lines: list[list[str]], is_number: list[bool]) -> None:
    widths = [max(cell_width(line[index]) for line in lines) for index in range(len(is_number))]
    for line in lines:
        padded = (
            " " * (width - cell_width(cell)) + cell if to_the_right else cell + " " * (width - cell_width(cell))
            for cell, width, to_the_right in zip(line, widths, is_number, strict=True)
        )
        print(_GAP.join(padded).rstrip())


_NUMBER = re.compile(r"-?[0-9][0-9,]*(\.[0-9]+)?(e[+-]?[0-9]+)?|-?inf|nan")


def _are_numbers(texts: list[str]) -> bool:
    """Whether there are numbers, and nothing else but gaps."""
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
    """Stdout for bytes. Raises InvalidRequest for a terminal."""
    if sys.stdout.isatty():
        raise InvalidRequest("the output is binary", hint='Send it to a file or a program: "> FILE", "| …".')
    return sys.stdout.buffer


def try_each(items: Sequence[T], act: Callable[[T], None], what: str) -> UnderlayError | None:
    """Act on each item. A failure is printed, and the others still get their turn. Returns the first failure, or None.

    The failure of a single item is raised.
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
    """End the command with the exit code of a failure that was printed; do nothing for None."""
    if failure is not None:
        import typer

        raise typer.Exit(exit_code(failure))


def track(items: Sequence[T], what: str) -> Iterator[T]:
    """The items one by one, with a progress bar on stderr if there are several and it is a terminal."""
    if len(items) < 2 or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Rich prints what is written to stdout above its bar, so on stderr: right on a terminal, wrong for a pipe.
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as progress:
        yield from progress.track(items, description=what)


@contextmanager
def progress_bar(what: str) -> Iterator[Tell]:
    """A function that takes progress reports, and shows them on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total, words="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as progress:
        task = progress.add_task(what, total=None)

        def tell(done: int, total: int, words: str = "") -> None:
            progress.update(task, completed=done, total=total, description=f"{what} {words}".rstrip())

        yield tell


def is_confirmed(what: str) -> bool:
    """Ask on the terminal whether to do it. Ctrl-C and the end of the input mean no."""
    import typer

    try:
        is_wanted = typer.confirm(f"{what}. Do it?", err=True)
    except typer.Abort:
        say("")  # the answer's line has no end
        is_wanted = False
    if not is_wanted:
        say("Nothing was changed.")
    return is_wanted


def need_yes(what: str) -> NoReturn:
    """Print what would be done, and end the command without doing it."""
    import typer

    say(f"{what}.\nNothing was changed; add --yes to do it.")
    raise typer.Exit(exit_code(InvalidRequest("")))
