"""The header of a CSV source, and the delimiter that is detected from it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from underlay.errors import SourceEmpty, SourceUnreadable
from underlay.ingest.csv.blocks import Blocks
from underlay.ingest.csv.records import Marks, find_quoted, find_records, last_end
from underlay.ingest.rows.reading import Dialect
from underlay.ingest.source.file_format import FileFormat

_DELIMITERS = (",", ";", "\t", "|")


def read_header(
    blocks: Blocks, dialect: Dialect, kind: FileFormat, name: str, record_bytes: int
) -> tuple[Marks, list[str]]:
    """How the source is written and the names of its columns, none without a header. The header is taken.

    Raises SourceEmpty when there should be a header and is nothing, SourceUnreadable when it is not UTF-8, does not end
    or has a name that is longer than names are.
    """
    first, marks = _first_record(blocks, dialect, kind, record_bytes)
    if not dialect.has_header:
        return marks, []
    text = first.strip(b"\r\n")
    if not text:
        raise SourceEmpty("is empty: a CSV file begins with a header", place=name)
    if find_quoted(first, marks).is_open:
        raise SourceUnreadable("a quote in the header is never closed", place=f"{name}, line 1", found=text[:40])
    try:
        names = next(_fields(text.decode(), marks))
    except UnicodeDecodeError as error:
        raise SourceUnreadable(
            "the header is not UTF-8", place=f"{name}, line 1, byte {error.start}", found=text[:40]
        ) from None
    except csv.Error as error:
        raise SourceUnreadable(f"the header is invalid: {error}", place=f"{name}, line 1", found=text[:40]) from None
    blocks.take(len(first))
    return marks, names


def _first_record(blocks: Blocks, dialect: Dialect, kind: FileFormat, record_bytes: int) -> tuple[bytes, Marks]:
    """The first record that is not blank, with what comes before it; all there is when it does not end."""
    data = blocks.begin()
    while True:
        # Most headers are short; looking for their end in less is quicker.
        for head in (_first_line(data, dialect), data):
            marks = _marks(head, dialect, kind)
            end = last_end(head, marks)
            records = find_records(head[:end], marks)
            if len(records.ends):
                return head[: int(records.ends[0])], marks
        longer = blocks.more() if len(data) <= record_bytes else data
        if len(longer) == len(data):
            return data, marks
        data = longer


def _first_line(data: bytes, dialect: Dialect) -> bytes:
    """Up to the first break after text with an even number of quotes, if there is one. Looks at each byte once."""
    begin, end = 0, data.find(b"\n")
    has_text = is_quoted = False
    while end >= 0:
        has_text = has_text or bool(data[begin:end].strip())
        is_quoted ^= bool(dialect.quote and data.count(dialect.quote.encode(), begin, end) % 2)
        if has_text and not is_quoted:
            break
        begin, end = end, data.find(b"\n", end + 1)
    return data[: end + 1]


def _marks(data: bytes, dialect: Dialect, kind: FileFormat) -> Marks:
    if dialect.delimiter is not None:
        return Marks(delimiter=dialect.delimiter, quote=dialect.quote)
    if kind is FileFormat.TSV:
        return Marks(delimiter="\t", quote=dialect.quote)
    counts = {mark: _count(data, Marks(delimiter=mark, quote=dialect.quote)) for mark in _DELIMITERS}
    return Marks(delimiter=max(_DELIMITERS, key=counts.__getitem__), quote=dialect.quote)


def _count(data: bytes, marks: Marks) -> int:
    """How many fields more than one the first record has, if this is how it is written."""
    if marks.delimiter.encode() not in data:
        return 0
    records = find_records(data, marks)
    if not len(records.ends):
        return 0
    first = data[int(records.begins[0]) : int(records.ends[0])]
    quoted = find_quoted(first, marks)
    outside = first.count(marks.delimiter.encode())
    inside = sum(
        first.count(marks.delimiter.encode(), int(begin), int(end))
        for begin, end in zip(quoted.begins, quoted.ends, strict=True)
    )
    return outside - inside


def _fields(text: str, marks: Marks) -> Iterator[list[str]]:
    lines = io.StringIO(text, newline="")
    if marks.quote is None:
        return csv.reader(lines, delimiter=marks.delimiter, quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=marks.delimiter, quotechar=marks.quote)
