"""How to read a source for a table, and the result: rows, and rejected rows with their reasons.

A null in CSV is an empty unquoted field, or one of the null texts, unquoted. A key that a JSON object lacks gets the
column's default, or null. Loads no library that reads data, since the command line declares its options from it.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from underlay.errors import InvalidRequest

if TYPE_CHECKING:
    import pyarrow as pa

    from underlay.change.files.row_checks import RowChecks
    from underlay.schema.table_schema import TableSchema

ChangedPolicy = Literal["error", "skip", "replace"]
"""The treatment of a source whose content changed since it was ingested: fail the run, keep the old rows, or replace
them by the new ones."""
NewColumnsPolicy = Literal["error", "ignore", "add"]
"""The treatment of columns that the table lacks: fail their source, leave them out, or add them."""

BLOCK_BYTES = 2 << 20
RECORD_BYTES = 16 << 20
RAW_BYTES = 4 << 10
_SHOWN_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How CSV is written. The default delimiter is the one of `,` `;` `|` and tab that occurs most often in the header.

    Raises InvalidRequest for a mark that is not one character, for equal marks, and for an unknown encoding or format.
    """

    delimiter: str | None = None
    quote: str | None = '"'
    has_header: bool = True
    """Without a header, the columns are those of the table in order, except the source column."""
    nulls: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    """Column names for a source without a header; setting them implies that it has none."""
    encoding: str = "utf-8"
    """Python's name for the encoding: `latin-1`, `cp1252`, `utf-16`. A byte order mark of UTF-16 overrides UTF-8."""
    decimal: str = "."
    """The decimal separator."""
    thousands: str | None = None
    """The separator of groups of three digits."""
    date_format: str | None = None
    """The format of dates, such as `%d.%m.%Y`; ISO 8601 by default."""
    timestamp_format: str | None = None
    skip_lines: int = 0
    """The number of lines to skip before the header or the first record."""
    comment: str | None = None
    """The prefix of lines to skip."""

    @property
    def is_positional(self) -> bool:
        """Whether columns are identified by their order alone: there is no header, and they are not named here."""
        return not (self.is_headed or self.columns)

    @property
    def is_headed(self) -> bool:
        """Whether the source itself names its columns."""
        return self.has_header and not self.columns

    @property
    def has_own_forms(self) -> bool:
        """Whether numbers, dates or times have a format other than the default."""
        is_default = (self.decimal, self.thousands, self.date_format, self.timestamp_format) == (".", None, None, None)
        return not is_default

    def __post_init__(self) -> None:
        for what, mark in (("delimiter", self.delimiter), ("quote", self.quote), ("comment mark", self.comment)):
            if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in "\r\n"):
                raise InvalidRequest(f"the {what} of CSV must be one ASCII character", found=repr(mark))
        if self.delimiter is not None and self.delimiter == self.quote:
            raise InvalidRequest("the delimiter and the quote of CSV are the same", found=repr(self.quote))
        if self.comment is not None and self.comment in (self.delimiter, self.quote):
            raise InvalidRequest("the comment mark of CSV is its delimiter or quote", found=repr(self.comment))
        if isinstance(self.columns, str) or isinstance(self.nulls, str):
            raise InvalidRequest("columns and null texts of CSV are lists", found=repr(self.columns or self.nulls))
        if self.skip_lines < 0:
            raise InvalidRequest("the number of lines to skip cannot be negative", found=self.skip_lines)
        _check_marks_of_numbers(self.decimal, self.thousands)
        _check_encoding(self.encoding)
        for format_ in (self.date_format, self.timestamp_format):
            if format_ is not None:
                _check_format(format_)


def shown_encoding(dialect: Dialect) -> str:
    """The encoding, for messages."""
    return "UTF-8" if codecs.lookup(dialect.encoding).name == "utf-8" else dialect.encoding


def _check_marks_of_numbers(decimal: str, thousands: str | None) -> None:
    for what, mark in (("decimal mark", decimal), ("thousands separator", thousands)):
        if mark is not None and (len(mark) != 1 or mark in "+-\r\n" or mark.isalnum()):
            raise InvalidRequest(f"the {what} of CSV must be one character, no letter, digit or sign", found=repr(mark))
    if decimal == thousands:
        raise InvalidRequest("the decimal mark and the thousands separator are the same", found=repr(decimal))


def _check_encoding(encoding: str) -> None:
    try:
        "x".encode(encoding)
        codecs.getincrementaldecoder(encoding)
    except (LookupError, UnicodeError, ValueError, TypeError):
        expected = "such as utf-8, latin-1, cp1252 or utf-16"
        raise InvalidRequest("not an encoding of text", found=repr(encoding), expected=expected) from None


def _check_format(format_: str) -> None:
    """Raise InvalidRequest unless a date written in this format can be read back."""
    moment = datetime(2003, 11, 29, 22, 43, 51, tzinfo=UTC)
    try:
        read = datetime.strptime(moment.strftime(format_), format_)  # the format decides whether there is a zone
    except (ValueError, re.error):
        read = None
    if read is None or read.date() != moment.date():
        raise InvalidRequest(
            "not a format of dates or times",
            found=repr(format_),
            expected="a year, a month and a day as strptime takes them, such as %d.%m.%Y or %Y%m%d %H:%M:%S",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRules:
    """The table that rows are read for, and what is accepted."""

    schema: TableSchema
    checks: RowChecks | None = None
    """The table's checks, if it has any: a row that violates one is rejected."""
    dialect: Dialect = field(default_factory=Dialect)
    new_columns: NewColumnsPolicy = "error"
    """With `add`, a new column is an error too: it is added before the source is read again."""
    source_column: str | None = None
    """The column to fill with the source's name, whatever the source has."""
    block_bytes: int = BLOCK_BYTES
    record_bytes: int = RECORD_BYTES
    """A longer record is rejected without being held in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A record that does not fit the table. `raw` is cut to RAW_BYTES.

    `line` counts from 1, the header included; of Parquet it is the row's number. `offset` is a byte of the plain
    source, decompressed; None for Parquet.
    """

    line: int
    offset: int | None
    reason: str
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRows:
    """Rows in the source's order, with the table's schema, and the records between them that do not fit."""

    rows: pa.Table
    rejected: tuple[Rejected, ...]
    read_bytes: int
    """Bytes of the stored source that were read so far."""


def shown(value: object) -> str:
    """A value for messages, cut short."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
