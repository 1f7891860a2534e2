"""Options of `ingest`, `append` and `create --from` that say how text is written. Loads no library that reads data."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from underlay.errors import InvalidRequest

if TYPE_CHECKING:
    from underlay.ingest.rows.reading import Dialect
    from underlay.ingest.source.file_format import FileFormat

Delimiter = Annotated[
    str | None,
    typer.Option(metavar="CHAR", help="The delimiter of CSV. Default: the one of , ; | and tab that fits."),
]
Quote = Annotated[str | None, typer.Option(metavar="CHAR", help="The quote of CSV; '' for none. Default: \".")]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="CSV without a header: its columns are those of the table, in order. Default: it has one.",
    ),
]
HeaderColumns = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B,C", help="The columns of CSV without a header. Default: the header's."),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The encoding of CSV: latin-1, cp1252, utf-16. Default: utf-8."),
]
DecimalMark = Annotated[
    str | None, typer.Option("--decimal", metavar="CHAR", help="The decimal mark of numbers in CSV. Default: a point.")
]
Thousands = Annotated[
    str | None, typer.Option(metavar="CHAR", help="The thousands separator of numbers in CSV. Default: none.")
]
DateFormat = Annotated[
    str | None, typer.Option(metavar="FORMAT", help="How CSV writes dates, such as %d.%m.%Y. Default: ISO 8601.")
]
TimestampFormat = Annotated[
    str | None,
    typer.Option(metavar="FORMAT", help="How CSV writes timestamps, such as '%d.%m.%Y %H:%M'. Default: ISO 8601."),
]
SkipLines = Annotated[int, typer.Option(metavar="N", min=0, help="Lines before the header of CSV. Default: 0.")]
CommentMark = Annotated[
    str | None,
    typer.Option("--comment-mark", metavar="CHAR", help="Leave out lines of CSV that begin with it. Default: none."),
]
MaxRecordBytes = Annotated[
    str | None,
    typer.Option(
        "--max-record", metavar="SIZE", help="The longest record of CSV or JSON, such as 64MiB. Default: 16MiB."
    ),
]
_TAB = {"\\t": "\t", "tab": "\t"}
_SIZE = re.compile(r"(\d+)\s*(|b|kib|mib|gib)", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}


def make_dialect(
    *,
    delimiter: str | None,
    quote: str | None,
    no_header: bool,
    columns: str | None,
    null: Sequence[str] | None,
    encoding: str | None,
    decimal: str | None,
    thousands: str | None,
    date_format: str | None,
    timestamp_format: str | None,
    skip_lines: int,
    comment_mark: str | None,
) -> Dialect:
    """The dialect that the options describe. Raises InvalidRequest."""
    from underlay.ingest.rows.reading import Dialect

    default = Dialect()
    return Dialect(
        delimiter=None if delimiter is None else _TAB.get(delimiter, delimiter),
        quote=default.quote if quote is None else quote or None,
        has_header=not no_header,
        nulls=tuple(null or ()),
        columns=() if columns is None else _names(columns),
        encoding=encoding or default.encoding,
        decimal=decimal or default.decimal,
        thousands=thousands or None,
        date_format=date_format or None,
        timestamp_format=timestamp_format or None,
        skip_lines=skip_lines,
        comment=comment_mark or None,
    )


def check_format(dialect: Dialect, format: FileFormat | None) -> None:
    """Raise InvalidRequest when options of CSV are given for another format."""
    from underlay.ingest.rows.reading import Dialect
    from underlay.ingest.source.file_format import FileFormat

    if dialect != Dialect() and format not in (None, FileFormat.CSV, FileFormat.TSV):
        raise _contradicting(f"options of CSV and --format {format}")
    if format is FileFormat.TSV and dialect.delimiter is not None:
        raise _contradicting("--delimiter and --format tsv")


def read_size(text: str | None) -> int:
    """Bytes of `1000000`, `512KiB`, `64MiB`; the default of --max-record without a text. Raises InvalidRequest."""
    from underlay.ingest.rows.reading import RECORD_BYTES

    if text is None:
        return RECORD_BYTES
    found = _SIZE.fullmatch(text.strip())
    size = int(found[1]) * _UNITS[found[2].lower()] if found is not None else 0
    if size < 1:
        raise InvalidRequest("not a size", found=text, expected="such as 1000000 or 64MiB")
    return size


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for line in csv.reader([text], skipinitialspace=True) for name in line)
    if not names or not all(names):
        raise InvalidRequest("a column has no name", found=text, expected="such as --columns id,fare")
    return names


def _contradicting(words: str) -> InvalidRequest:
    return InvalidRequest("these options contradict each other", found=words, hint="Leave one of them out.")
