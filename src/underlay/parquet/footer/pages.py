"""The pages of a column chunk, found by their headers: where each lies, and how many values it has.

No checksum covers a header. A caller that skips pages compares the sum of the values with what the footer says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from underlay.errors import Malformed

_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3
_KIND, _SIZE, _DATA_HEADER, _DATA_2_HEADER = 1, 3, 5, 8
_VALUES = 1
_INTEGERS, _BINARY, _STRUCT = (4, 5, 6), 8, 12
_FLAGS, _BYTE, _DOUBLE = (1, 2), 3, 7
_MAX_DEPTH = 8


class Page(NamedTuple):
    """A page with its header. A dictionary has no values of the column."""

    begin: int
    end: int
    value_count: int
    is_dictionary: bool


def read_pages(data: memoryview, begin: int, end: int) -> Iterator[Page]:
    """The pages between two positions, in order. Raises Malformed when they are not a chain of pages."""
    try:
        while begin < end:
            page = _read_page(data, begin)
            if not begin < page.end <= end:
                raise Malformed("a page does not end in its chunk", place=f"byte {begin}")
            yield page
            begin = page.end
    except IndexError:
        raise Malformed("a page's header is cut short", place=f"byte {begin}") from None


def _read_page(data: memoryview, begin: int) -> Page:
    fields: dict[int, int] = {}
    counts: dict[int, int] = {}
    at = _read_struct(data, begin, fields, counts)
    kind, size = fields.get(_KIND, -1), fields.get(_SIZE, -1)
    header = {_DATA: _DATA_HEADER, _DATA_2: _DATA_2_HEADER}.get(kind)
    count = 0 if header is None else counts.get(header, -1)
    if size < 0 or count < 0 or (header is None and kind != _DICTIONARY):
        raise Malformed("not a page of values or a dictionary", place=f"byte {begin}", found=f"kind {kind}")
    return Page(begin, at + size, count, header is None)


def _read_struct(
    data: memoryview, at: int, fields: dict[int, int], counts: dict[int, int] | None = None, depth: int = 0
) -> int:
    """The position after a struct. Puts its integers into `fields`, and into `counts`, for each struct inside it, the
    number of values there, by field."""
    if depth > _MAX_DEPTH:
        raise Malformed("a page's header is nested too deeply", place=f"byte {at}")
    field = 0
    while header := data[at]:
        kind = header & 15
        at += 1
        if header >> 4:
            field += header >> 4
        else:
            number, at = _varint(data, at)
            field = (number >> 1) ^ -(number & 1)
        if kind in _INTEGERS:
            number = data[at]
            at += 1
            if number > 0x7F:
                number, at = _varint(data, at - 1)
            fields[field] = (number >> 1) ^ -(number & 1)
        elif kind == _STRUCT:
            inner: dict[int, int] = {}
            at = _read_struct(data, at, inner, None, depth + 1)
            if counts is not None:
                counts[field] = inner.get(_VALUES, -1)
        elif kind not in _FLAGS:
            at = _skip(data, at, kind)
    return at + 1


def _skip(data: memoryview, at: int, kind: int) -> int:
    """The position after a value of no interest."""
    if kind == _BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind in (_BYTE, _DOUBLE):
        return at + (1 if kind == _BYTE else 8)
    raise Malformed("a page's header has a field of no known kind", place=f"byte {at}", found=kind)


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise Malformed("a number in a page's header is too long", place=f"byte {at}")
