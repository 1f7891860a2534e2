"""Writes rows to stdout or a file: as a table or a list of values for people, or in formats for programs."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, redirect_stdout

import pyarrow as pa

from underlay.cli.common.formats import BINARY, FOR_PEOPLE, RowsAs
from underlay.cli.common.output import UNKNOWN, binary_output, cell_width, print_rows, printable, say, show_count
from underlay.cli.common.row_text import python_rows
from underlay.cli.rows.output_file import written_whole
from underlay.cli.rows.row_writer import cell_text, write_batches

STDOUT = "-"
ROWS_SHOWN = 50
"""The default number of rows in formats for people."""
_COUNT_SECONDS = 2.0
"""How long rows that are not shown are counted."""
_CELL_CHARS = 200
_STREAM_ENDING = ".arrows"
_HINTS = ("--format vertical shows them", "--limit N shows more, --format csv, json or arrow all")
_SHELL_HINTS = (r"\x shows them", r"\limit N shows more, \o FILE writes all to a file")


def check_output(format: RowsAs, output: str | None) -> None:
    """Refuse bytes for a terminal before any work is done for them. Raises InvalidRequest."""
    if format in BINARY and output in (None, STDOUT):
        binary_output()


def write_rows(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    format: RowsAs,
    limit: int | None = None,
    output: str | None = None,
    is_shell: bool = False,
) -> None:
    """Write rows, at most `limit`, to stdout, or to a file that appears only once it is complete.

    Output for people shows the first rows, and says on stderr how many more there are.
    """
    with closing(_generator(batches)) as rows:
        if format in FOR_PEOPLE:
            hints = _SHELL_HINTS if is_shell else _HINTS
            _write_for_people(schema, rows, limit, output, hints, is_vertical=format is RowsAs.VERTICAL)
            return
        counted = _Counting(rows if limit is None else first_rows(rows, limit))
        if output in (None, STDOUT):
            sys.stdout.flush()
            write_batches(schema, counted, format, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            return
        with written_whole(output or "") as file:
            is_stream = (output or "").lower().endswith(_STREAM_ENDING) or not file.seekable()
            write_batches(schema, counted, format, file, is_seekable=not is_stream)
        say(f"{output}: {show_count(counted.row_count, 'row')}")


def write_text(text: str, output: str | None) -> None:
    """Write text to stdout, or to a file that appears only once it is complete."""
    if output in (None, STDOUT):
        print(text, end="")
        return
    with written_whole(output or "") as file:
        file.write(text.encode())


class _Counting:
    """Batches, and how many rows they had so far."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.row_count = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.row_count += batch.num_rows
            yield batch


def first_rows(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """The first rows. Reads no batch after the one that completes them."""
    left = limit
    for batch in batches if limit else ():
        yield batch.slice(0, left)
        left -= min(batch.num_rows, left)
        if not left:
            return


def _generator(batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
    yield from batches


def _write_for_people(
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    limit: int | None,
    output: str | None,
    hints: tuple[str, str],
    *,
    is_vertical: bool,
) -> None:
    shown = ROWS_SHOWN if limit is None else limit
    head: list[pa.RecordBatch] = []
    count = 0
    for batch in batches if shown else ():
        head.append(batch.slice(0, shown - count))
        count += batch.num_rows
        if count >= shown:
            break
    cells = [
        [None if value is None else cell_text(value, field.type) for field, value in zip(schema, row, strict=True)]
        for row in python_rows(head)
    ]
    if output in (None, STDOUT):
        hidden = _print_cells(schema, cells, is_vertical=is_vertical)
    else:
        with redirect_stdout(io.StringIO()) as text:
            hidden = _print_cells(schema, cells, is_vertical=is_vertical)
        write_text(text.getvalue(), output)
    if hidden:
        say(f"({hidden} of {len(schema.names)} columns are not shown; {hints[0]})")
    if limit is not None or count < shown:
        say(f"({show_count(len(cells), 'row')})")
        return
    total, is_exact = _count(count, batches)
    if is_exact and total == shown:
        say(f"({show_count(total, 'row')})")
    else:
        more = f"{total:,}" if is_exact else f"more than {total:,}"
        say(f"(the first {shown} of {more} rows; {hints[1]})")


def _print_cells(schema: pa.Schema, cells: list[list[str | None]], *, is_vertical: bool) -> int:
    """Returns how many columns were left out."""
    if not is_vertical:
        short = [[None if text is None else _short(text) for text in row] for row in cells]
        return print_rows(schema.names, short, {at for at, field in enumerate(schema) if _is_moment(field.type)})
    shown = [printable(name) for name in schema.names]
    width = max(map(cell_width, shown), default=0)
    for number, row in enumerate(cells, start=1):
        print(f"row {number}")
        for name, text in zip(shown, row, strict=True):
            value = UNKNOWN if text is None else printable(text)
            print(f"  {name}{' ' * (width - cell_width(name))}  {value}".rstrip())
    return 0


def _is_moment(kind: pa.DataType) -> bool:
    """Whether values are times, which must not be shortened: a time without its end is another time."""
    return pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind)


def _short(text: str) -> str:
    return text if len(text) <= _CELL_CHARS else f"{text[:_CELL_CHARS]}…"


def _count(known: int, batches: Iterator[pa.RecordBatch]) -> tuple[int, bool]:
    """The number of rows, and whether all were counted: counting is cut short, as someone is waiting."""
    end = time.monotonic() + _COUNT_SECONDS
    for batch in batches:
        known += batch.num_rows
        if time.monotonic() > end:
            return known, False
    return known, True
