"""Finds the records of a JSON source: lines, elements of one array, or objects over several lines.

An array, and objects over several lines, are cut by their brackets outside of strings, with numpy. Memory is bounded by
a block and the longest record that is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from underlay.errors import SourceUnreadable
from underlay.ingest.csv.blocks import Blocks, CsvBlock
from underlay.ingest.csv.records import LINES
from underlay.ingest.rows.reading import RAW_BYTES, Rejected
from underlay.ingest.source.utf8_text import PlainBytes

Integers = NDArray[np.int64]

_QUOTE, _BACKSLASH, _COMMA = b'"'[0], b"\\"[0], b","[0]
_STEPS = np.zeros(256, np.int8)
_STEPS[[*b"[{"]] = 1
_STEPS[[*b"]}"]] = -1
_IS_MARK = _STEPS != 0
_IS_MARK[_COMMA] = True
_HEAD_BYTES = 1 << 10
"""The first bytes, which show how the records are written."""
_SPACES = b" \t\r\n"
_CUT_SHORT = "It may be cut short."


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonBatch:
    """Complete records, without blank ones. `place` returns the line and the byte at which a record begins."""

    texts: Sequence[bytes]
    place: Callable[[int], tuple[int, int]]
    rejected: tuple[Rejected, ...] = ()
    """Text that is no record for any table."""


def json_batches(plain: PlainBytes, *, block_bytes: int, record_bytes: int) -> Iterator[JsonBatch]:
    """The records of a source, in order. Raises SourceUnreadable for an array or an object that does not end, and for
    text after an array.
    """
    blocks = Blocks(plain, block_bytes=block_bytes, record_bytes=record_bytes)
    head = blocks.begin()
    while len(head) < _HEAD_BYTES and len(longer := blocks.more()) > len(head):
        head = longer
    head = head.lstrip(_SPACES)
    first, line_break, _ = head.partition(b"\n")
    if head.startswith(b"["):
        return _Cutter(plain.name, record_bytes, is_array=True).cut(blocks)
    if line_break and first.strip(_SPACES) == b"{":
        return _Cutter(plain.name, record_bytes, is_array=False).cut(blocks)
    return (_lines(block, record_bytes) for block in blocks.cut(LINES))


def _lines(block: CsvBlock, record_bytes: int) -> JsonBatch:
    lines = block.data.split(b"\n")
    begins: list[Integers] = []

    def place(at: int) -> tuple[int, int]:
        if not begins:
            begins.append(np.cumsum([0, *(len(line) + 1 for line in lines)]))
        return block.line + at, block.offset + int(begins[0][at])

    rejected: tuple[Rejected, ...] = () if block.rejected is None else (block.rejected,)
    if len(block.data) > record_bytes:
        long = [at for at, line in enumerate(lines) if len(line.removesuffix(b"\r")) > record_bytes]
        rejected += tuple(_too_long(lines[at], *place(at), record_bytes) for at in long)
        for at in long:
            lines[at] = b" " * len(lines[at])
    return JsonBatch(texts=lines, place=place, rejected=rejected)


def _too_long(raw: bytes, line: int, offset: int, record_bytes: int) -> Rejected:
    reason = f"the record is longer than {record_bytes} bytes"
    return Rejected(line=line, offset=offset, reason=reason, raw=raw[:RAW_BYTES])


class _JsonMarks:
    """Finds brackets and commas outside of strings, piece by piece."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_quoted = False
        self._slashes = 0
        """The number of backslashes at the end of the last piece."""

    def find(self, piece: bytes) -> tuple[Integers, Integers, Integers]:
        """Their positions, by how much each changes the depth, and the depth after it."""
        octets = np.frombuffer(piece, np.uint8)
        quotes = self._quotes(piece, octets)
        marks = np.flatnonzero(_IS_MARK[octets])
        marks = marks[(np.searchsorted(quotes, marks) + self._is_quoted) % 2 == 0]
        self._is_quoted ^= bool(len(quotes) % 2)
        steps = _STEPS[octets[marks]].astype(np.int64)
        depths = self._depth + np.cumsum(steps)
        self._depth = int(depths[-1]) if len(depths) else self._depth
        return marks, steps, depths

    def _quotes(self, piece: bytes, octets: NDArray[np.uint8]) -> Integers:
        """Quotes that begin or end a string: those after an even number of backslashes."""
        quotes = np.flatnonzero(octets == _QUOTE)
        slashes = self._slashes
        trailing = len(piece) - len(piece.rstrip(b"\\"))
        self._slashes = trailing + (slashes if trailing == len(piece) else 0)
        if not len(quotes) or not (slashes or b"\\" in piece):
            return quotes
        others = np.where(octets == _BACKSLASH, -1, np.arange(len(octets)))
        last_other = np.append(-1, np.maximum.accumulate(others))[quotes]
        runs = quotes - 1 - last_other + np.where(last_other < 0, slashes, 0)
        return np.asarray(quotes[runs % 2 == 0], np.int64)


class _Cutter:
    """Cuts pieces of a source after each element of its array, or after each object."""

    def __init__(self, name: str, record_bytes: int, *, is_array: bool) -> None:
        self._name = name
        self._record_bytes = record_bytes
        self._is_array = is_array
        self._marks = _JsonMarks()
        self._is_begun = not is_array
        self._has_ended = False
        self._count = 0
        self._held: list[bytes] = []
        """The kept beginning of an unfinished record, with the whitespace before it."""
        self._kept_bytes = self._held_bytes = self._held_lines = 0
        self._line = 1
        self._offset = 0
        """The byte offset at which it begins."""
        self._texts: list[bytes] = []
        self._places: list[tuple[int, int]] = []
        self._rejected: list[Rejected] = []

    def cut(self, blocks: Blocks) -> Iterator[JsonBatch]:
        """The records that end in each piece."""
        self._offset = blocks.offset
        for piece in blocks.pieces():
            self._take(piece)
            yield JsonBatch(texts=self._texts, place=self._places.__getitem__, rejected=tuple(self._rejected))
            self._texts, self._places, self._rejected = [], [], []
        if self._is_array and not self._has_ended:
            raise self._unreadable("the JSON array does not end", _CUT_SHORT)
        if b"".join(self._held).strip(_SPACES):
            raise self._unreadable("a JSON object does not end", _CUT_SHORT)

    def _take(self, piece: bytes) -> None:
        if self._has_ended:
            self._refuse_rest(piece)
            return
        positions, steps, depths = self._marks.find(piece)
        begin = 0
        if not self._is_begun and len(positions):
            begin = int(positions[0]) + 1
            self._pass(piece[:begin])
            self._is_begun = True
            positions, steps, depths = positions[1:], steps[1:], depths[1:]
        is_last = (steps < 0) & (depths <= 0)
        is_end = is_last | ((steps == 0) & (depths == 1)) if self._is_array else is_last
        for position, ends, depth in zip(
            positions[is_end].tolist(), is_last[is_end].tolist(), depths[is_end].tolist(), strict=True
        ):
            end = position if self._is_array else position + 1
            self._hold(piece[begin:end])
            self._finish(is_last=ends)
            begin = position + 1
            self._pass(piece[end:begin])
            if depth < 0 or (self._is_array and ends and piece[position:begin] != b"]"):
                raise self._unreadable("a bracket is closed that was not opened", "It is not valid JSON.")
            if self._is_array and ends:
                self._has_ended = True
                self._refuse_rest(piece[begin:])
                return
        self._hold(piece[begin:])

    def _pass(self, data: bytes) -> None:
        self._line += data.count(b"\n")
        self._offset += len(data)

    def _hold(self, data: bytes) -> None:
        if self._held_bytes <= self._record_bytes:
            self._held.append(data)
            self._kept_bytes += len(data)
        self._held_bytes += len(data)
        self._held_lines += data.count(b"\n")

    def _finish(self, *, is_last: bool) -> None:
        raw = b"".join(self._held)
        text = raw.lstrip(_SPACES)
        before = raw[: len(raw) - len(text)]
        line, offset = self._line + before.count(b"\n"), self._offset + len(before)
        text = text.rstrip(_SPACES)
        if not text:
            if self._count or not is_last:
                reason = "an element is missing beside a comma"
                self._rejected.append(Rejected(line=line, offset=offset, reason=reason, raw=b""))
        elif len(text) > self._record_bytes or self._kept_bytes < self._held_bytes:
            self._rejected.append(_too_long(text, line, offset, self._record_bytes))
        else:
            self._texts.append(text)
            self._places.append((line, offset))
        self._count += 1
        self._line += self._held_lines
        self._offset += self._held_bytes
        self._held, self._kept_bytes, self._held_bytes, self._held_lines = [], 0, 0, 0

    def _refuse_rest(self, data: bytes) -> None:
        if data.strip(_SPACES):
            raise self._unreadable("text follows the JSON array", "A source is one array, or JSON lines.")

    def _unreadable(self, problem: str, hint: str) -> SourceUnreadable:
        return SourceUnreadable(problem, place=f"{self._name}, line {self._line + self._held_lines}", hint=hint)
