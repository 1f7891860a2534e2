"""Reads the header of a CSV source, and detects the delimiter from it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from underlay.errors import SourceEmpty, SourceUnreadable
from underlay.ingest.csv.blocks import Blocks
from underlay.ingest.csv.records import Marks, find_quoted, find_records, last_end
from underlay.ingest.rows.reading import Dialect, shown_encoding
from underlay.ingest.source.file_format import FileFormat

_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvHeader:
    """A source's marks, the names of its columns (none without a header or given names), and the header's line."""

    marks: Marks
    names: tuple[str, ...]
    line: int


def read_header(blocks: Blocks, dialect: Dialect, kind: FileFormat, name: str, record_bytes: int) -> CsvHeader:
    """The source's marks and the names of its columns (none without a header or given names). Consumes the header.

    Raises SourceEmpty when there should be a header and the source is empty, SourceUnreadable when the header is not
    UTF-8, does not end, or has a name that is too long.
    """
    size, first, marks = _first_record(blocks, dialect, kind, record_bytes)
    line = blocks.line_at(size - len(first))
    if not dialect.is_headed:
        return CsvHeader(marks=marks, names=dialect.columns, line=line)
    text, place = first.strip(b"\r\n"), f"{name}, line {line}"
    if not text:
        raise SourceEmpty("is empty: a CSV file begins with a header", place=name)
    if find_quoted(first, marks).is_open:
        raise SourceUnreadable("a quote in the header is never closed", place=place, found=text[:40])
    try:
        names = next(_fields(text.decode(), marks))
    except UnicodeDecodeError as error:
        raise SourceUnreadable(
            f"the header is not {shown_encoding(dialect)}",
            place=f"{place}, byte {error.start}",
            found=text[:40],
            hint="Name the encoding, such as latin-1: --encoding, in Python dialect={'encoding': …}.",
        ) from None
    except csv.Error as error:
        raise SourceUnreadable(f"the header is invalid: {error}", place=place, found=text[:40]) from None
    blocks.take(size)
    return CsvHeader(marks=marks, names=tuple(names), line=line)


def _first_record(blocks: Blocks, dialect: Dialect, kind: FileFormat, record_bytes: int) -> tuple[int, bytes, Marks]:
    """The first record, and how many bytes it takes together with everything before it; the whole source when it does
    not end.
    """
    data = blocks.begin(dialect.skip_lines)
    while True:
        # Most headers are short; searching fewer bytes for their end is quicker.
        for head in (_first_line(data, dialect), data):
            marks = _marks(head, dialect, kind)
            end = last_end(head, marks)
            records = find_records(head[:end], marks)
            if len(records.ends):
                return int(records.ends[0]), head[int(records.begins[0]) : int(records.ends[0])], marks
        longer = blocks.more() if len(data) <= record_bytes else data
        if len(longer) == len(data):
            records = find_records(data, marks)
            return len(data), data[int(records.begins[0]) :] if len(records.begins) else b"", marks
        data = longer


def _first_line(data: bytes, dialect: Dialect) -> bytes:
    """The bytes up to the first line break after an even number of quotes, if there is one. Looks at each byte once."""
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
    def marks(delimiter: str) -> Marks:
        return Marks(delimiter=delimiter, quote=dialect.quote, comment=dialect.comment)

    if dialect.delimiter is not None:
        return marks(dialect.delimiter)
    if kind is FileFormat.TSV:
        return marks("\t")
    counts = {delimiter: _count(data, marks(delimiter)) for delimiter in _DELIMITERS if delimiter != dialect.comment}
    return marks(max(counts, key=counts.__getitem__))


def _count(data: bytes, marks: Marks) -> int:
    """How many delimiters the first record has outside of quotes, with these marks."""
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
