"""Leaves out a block's pages without wanted rows, so that they are neither decompressed nor decoded.

It cuts where pages of all columns begin at the same row, as those of our writer and of Arrow's do. With columns of
lists it cuts only the end: not every header of theirs has the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa

from underlay.errors import Malformed
from underlay.parquet.footer.minimal import Chunk
from underlay.parquet.footer.pages import Page, read_pages

WORTH_BYTES = 64 << 10
"""Blocks with fewer bytes are decoded whole: that takes no longer than reading their pages' headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCut:
    """Some rows of a block, and the chunks that hold them, by their position in `data`."""

    first: int
    end: int
    chunks: Mapping[int, Chunk]
    data: bytes


def cut_pages(
    buffer: pa.Buffer, chunks: Mapping[int, Chunk], row_count: int, rows: tuple[int, int], lists: frozenset[int]
) -> PageCut | None:
    """The pages of a block that hold a range of its rows; None when the block must be decoded whole.

    `lists` are the leaves whose values and rows differ in number. Every header is read, and the values are counted: if
    one is damaged, the block is decoded whole, which raises the error.
    """
    if sum(chunk.size for chunk in chunks.values()) < WORTH_BYTES:
        return None
    view = memoryview(buffer).cast("B")  # Arrow's buffers have signed bytes
    try:
        pages = {leaf: list(read_pages(view, one.begin, one.begin + one.size)) for leaf, one in chunks.items()}
    except Malformed:
        return None
    if any(sum(page.value_count for page in pages[leaf]) != chunk.value_count for leaf, chunk in chunks.items()):
        return None
    first, end = rows
    starts = {leaf: _starts(found) for leaf, found in pages.items() if leaf not in lists}
    common: set[int] = (
        reduce(set.intersection, map(set, starts.values())) if starts and not lists & pages.keys() else {0}
    )
    begin = max((start for start in common if start <= first), default=0)
    pieces: list[memoryview] = []
    cut: dict[int, Chunk] = {}
    at = 0
    for leaf, found in pages.items():
        kept, values = found, chunks[leaf].value_count
        if leaf in starts:
            wanted = [page for page, start in zip(_data(found), starts[leaf], strict=True) if begin <= start < end]
            kept = [page for page in found if page.is_dictionary] + wanted
            values = sum(page.value_count for page in wanted)
        pieces += [view[page.begin : page.end] for page in kept]
        size = sum(page.end - page.begin for page in kept)
        cut[leaf] = Chunk(begin=at, size=size, codec=chunks[leaf].codec, value_count=values)
        at += size
    return PageCut(first=begin, end=min(end, row_count), chunks=cut, data=b"".join(pieces))


def _data(pages: Sequence[Page]) -> list[Page]:
    return [page for page in pages if not page.is_dictionary]


def _starts(pages: Sequence[Page]) -> list[int]:
    """The row that each page of values begins with, in a column that has a value for each row."""
    found, row = [], 0
    for page in _data(pages):
        found.append(row)
        row += page.value_count
    return found
