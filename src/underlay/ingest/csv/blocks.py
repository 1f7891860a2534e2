"""Splits a source of CSV or JSON lines into blocks of whole records, each with the byte and the line at which it
begins.

Memory is bounded by the block size and the longest record that is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from underlay.ingest.csv.records import Marks, count_lines, find_breaks, find_quoted, last_end
from underlay.ingest.rows.reading import RAW_BYTES, Rejected
from underlay.ingest.source.utf8_text import PlainBytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvBlock:
    """Whole records; or no bytes, and one record that is too long or does not end."""

    data: bytes
    offset: int
    line: int
    rejected: Rejected | None = None


class Blocks:
    """The rest of a source, cut between records."""

    def __init__(self, plain: PlainBytes, *, block_bytes: int, record_bytes: int) -> None:
        self._plain = plain
        self._block_bytes = block_bytes
        self._record_bytes = record_bytes
        self._held = b""
        self._offset = 0
        self._line = 1
        self._marks = Marks(delimiter=",", quote=None)

    def begin(self, skip_lines: int = 0) -> bytes:
        """The first bytes, after the UTF-8 byte order mark and `skip_lines` lines. They are not consumed yet."""
        self._held = self._plain.read(self._block_bytes)
        if self._held.startswith(b"\xef\xbb\xbf"):
            self.take(3)
        self._skip_lines(skip_lines)
        return self._held

    def _skip_lines(self, count: int) -> None:
        """Skip lines without holding them in memory."""
        while count:
            breaks = find_breaks(self._held, self._marks)
            if self._held.endswith(b"\r"):  # it may be half of a line break
                breaks = breaks[:-1]
            if len(breaks) >= count:
                self.take(int(breaks[count - 1]))
                break
            count -= len(breaks)
            self.take(len(self._held) - self._held.endswith(b"\r"))
            piece = self._plain.read(self._block_bytes)
            if not piece:
                self.take(len(self._held))
                return
            self._held += piece
        if not self._held:
            self._held = self._plain.read(self._block_bytes)

    def more(self) -> bytes:
        """The held bytes, extended by the next piece; unchanged at the end."""
        self._held += self._plain.read(self._block_bytes)
        return self._held

    @property
    def offset(self) -> int:
        """The offset of the held bytes in the source."""
        return self._offset

    def pieces(self) -> Iterator[bytes]:
        """The rest in pieces as they are read, for callers that find the records themselves."""
        piece, self._held = self._held, b""
        while piece:
            yield piece
            piece = self._plain.read(self._block_bytes)

    def line_at(self, size: int) -> int:
        """The line number after the first `size` held bytes."""
        return self._line + count_lines(self._held[:size], self._marks)

    def take(self, size: int) -> bytes:
        """Consume this many of the held bytes, and return them."""
        taken = self._held[:size]
        self._held = self._held[size:]
        self._offset += len(taken)
        self._line += count_lines(taken, self._marks)
        return taken

    def cut(self, marks: Marks) -> Iterator[CsvBlock]:
        """The blocks, in order."""
        self._marks = marks
        while True:
            piece = self._plain.read(self._block_bytes - min(len(self._held), self._block_bytes // 2))
            if not piece:
                yield from self._rest(marks)
                return
            size = self._size_without_quotes(piece, marks)
            if size:
                yield self._join(piece, size)
                continue
            self._held += piece
            end = last_end(self._held, marks)
            if end:
                yield self._block(end)
            elif len(self._held) > self._record_bytes:
                yield self._skip(marks)

    def _size_without_quotes(self, piece: bytes, marks: Marks) -> int:
        """How many bytes of a piece complete whole records, together with the held bytes, if nothing is quoted; else
        0.
        """
        quote = (marks.quote or "").encode()
        return 0 if quote and (quote in self._held or quote in piece) else piece.rfind(b"\n") + 1

    def _join(self, piece: bytes, size: int) -> CsvBlock:
        """A block of the held bytes and the beginning of a piece, copied only once."""
        data = b"".join((self._held, memoryview(piece)[:size]))
        block = CsvBlock(data=data, offset=self._offset, line=self._line)
        self._held = piece[size:]
        self._offset += len(data)
        self._line += count_lines(data, self._marks)
        return block

    def _block(self, size: int) -> CsvBlock:
        offset, line = self._offset, self._line
        return CsvBlock(data=self.take(size), offset=offset, line=line)

    def _rest(self, marks: Marks) -> Iterator[CsvBlock]:
        quoted = find_quoted(self._held, marks)
        if quoted.is_open:
            before = find_breaks(self._held[: int(quoted.begins[-1])], marks)
            before = before[~quoted.holds(before - 1)]
            end = int(before[-1]) if len(before) else 0
            if end:
                yield self._block(end)
            yield self._reject("a quote in this record is never closed")
        elif self._held:
            yield self._block(len(self._held))

    def _reject(self, reason: str) -> CsvBlock:
        raw = self._held[:RAW_BYTES]
        rejected = Rejected(line=self._line, offset=self._offset, reason=reason, raw=raw)
        self.take(len(self._held))
        return CsvBlock(data=b"", offset=self._offset, line=self._line, rejected=rejected)

    def _skip(self, marks: Marks) -> CsvBlock:
        """Skip a record that is too long, without holding it in memory."""
        begin = Rejected(
            line=self._line,
            offset=self._offset,
            reason=f"the record is longer than {self._record_bytes} bytes, or a quote in it is never closed",
            raw=self._held[:RAW_BYTES],
        )
        end = 0
        while not end:
            # A line break may be cut in two: keep its first half until the second arrives.
            size = len(self._held) - self._held.endswith(b"\r")
            state = _state_after(self._held[:size], marks)
            self.take(size)
            piece = self._plain.read(self._block_bytes)
            if not piece:
                self.take(len(self._held))
                break
            # The next bytes are read as if the record had just begun, in the same quoting state.
            self._held = state + self._held + piece
            self._offset -= len(state)
            end = _first_end(self._held, marks)
            self.take(end)
        return CsvBlock(data=b"", offset=self._offset, line=self._line, rejected=begin)


def _state_after(data: bytes, marks: Marks) -> bytes:
    """The shortest bytes, without a line break, that leave a reader in the same state as `data` does."""
    if marks.quote is not None:
        quote = marks.quote.encode()
        quoted = find_quoted(data, marks)
        if quoted.is_open:
            return quote
        if len(quoted.ends) and quoted.ends[-1] == len(data):
            return quote + quote
    delimiter = marks.delimiter.encode()
    return b"x" + delimiter if data.endswith(delimiter) else b"x"


def _first_end(data: bytes, marks: Marks) -> int:
    """The end of the first record that surely ends in these bytes, whatever follows them; 0 when none does."""
    breaks = find_breaks(data, marks)
    if marks.has_cr and data.endswith(b"\r"):
        breaks = breaks[:-1]
    breaks = breaks[~find_quoted(data, marks).holds(breaks - 1)]
    return int(breaks[0]) if len(breaks) else 0
