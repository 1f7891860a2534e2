"""Options of `ingest`, `append` and `create --from` that describe text formats. Loads no library that reads data.

They are declared once, as the parameters of `make_dialect`. A command declares one parameter `dialect`, and is
decorated with `with_text_options`.
"""

from __future__ import annotations

import csv
import inspect
import re
from collections.abc import Callable
from typing import Annotated

import typer

from underlay.cli.common.options import NullTexts
from underlay.errors import InvalidRequest
from underlay.ingest.rows.reading import RECORD_BYTES, Dialect
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
_DIALECT = "dialect"
_TAB = {"\\t": "\t", "tab": "\t"}
_SIZE = re.compile(r"(\d+)\s*(|b|kib|mib|gib)", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}


def with_text_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a Typer command the options of `make_dialect` in place of its parameter `dialect`.

    The command is called with the dialect, checked against its parameter `format`.
    """
    options = dict(inspect.signature(make_dialect, eval_str=True).parameters)
    declared = inspect.signature(command, eval_str=True)

    def run(**given: object) -> None:
        dialect = make_dialect(**{name: given.pop(name) for name in options})  # type: ignore[arg-type]  # by Typer
        check_format(dialect, given["format"])  # type: ignore[arg-type]  # by Typer
        command(dialect=dialect, **given)

    parameters: list[inspect.Parameter] = []
    for each in declared.parameters.values():
        parameters += options.values() if each.name == _DIALECT else [each]
    keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {each.name: each.annotation for each in keywords}
    run.__signature__ = declared.replace(parameters=keywords)  # type: ignore[attr-defined]  # read by inspect
    return run


def make_dialect(
    *,
    delimiter: Delimiter = None,
    quote: Quote = None,
    no_header: NoHeader = False,
    columns: HeaderColumns = None,
    null: NullTexts = None,
    encoding: Encoding = None,
    decimal: DecimalMark = None,
    thousands: Thousands = None,
    date_format: DateFormat = None,
    timestamp_format: TimestampFormat = None,
    skip_lines: SkipLines = 0,
    comment_mark: CommentMark = None,
) -> Dialect:
    """The dialect that the options describe. Raises InvalidRequest."""
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
    if dialect != Dialect() and format not in (None, FileFormat.CSV, FileFormat.TSV):
        raise _contradicting(f"options of CSV and --format {format}")
    if format is FileFormat.TSV and dialect.delimiter is not None:
        raise _contradicting("--delimiter and --format tsv")


def read_size(text: str | None) -> int:
    """Read a size such as `1000000`, `512KiB` or `64MiB`; without a text, the default of --max-record. Raises
    InvalidRequest.
    """
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
