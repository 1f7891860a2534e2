"""Deletion vectors: the row positions of one file that are deleted, as Roaring bitmaps.

The bytes are the portable serialisation of a 32-bit Roaring bitmap
(https://github.com/RoaringBitmap/RoaringFormatSpec), run-optimised, with nothing before or after it, so every Roaring
library reads them. Equal sets give equal bytes. A position is a row's number in its file, from 0; a file has at most
2^32 rows, far more than any Parquet writer puts into one.

Everything here that takes bytes raises Malformed when they are damaged. pyroaring bounds its reads from 1.2 on and
validates order and cardinalities of every container, so damaged bytes cannot mislead it; it skips offsets and bytes
after the end, so we check these here.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from underlay.errors import InvalidRequest, Malformed

MAX_ROWS = 1 << 32
"""Rows of a file that has deletions."""

Positions = npt.NDArray[np.int64]
"""Row positions, ascending and distinct."""


def pack(positions: Iterable[int] | npt.NDArray[np.integer]) -> bytes:
    """The vector of these positions, in any order and possibly repeated. InvalidRequest below 0 or from 2^32 on."""
    wide = positions if isinstance(positions, np.ndarray) else np.array(list(positions), dtype=object)
    if wide.size and (int(wide.min()) < 0 or int(wide.max()) >= MAX_ROWS):
        raise InvalidRequest("a row position is out of range", expected=f"0 to {MAX_ROWS - 1}")
    return _bytes(BitMap(array("I", wide.astype(np.uint32).tobytes())))


def unpack(data: bytes | memoryview) -> Positions:
    """The positions, ascending."""
    return np.frombuffer(_bitmap(data).to_array(), np.uint32).astype(np.int64)


def union(a: bytes | None, b: bytes) -> bytes:
    """Positions in either; None is the empty vector."""
    return _bytes(_bitmap(b) if a is None else _bitmap(a) | _bitmap(b))


def difference(a: bytes, b: bytes | None) -> bytes:
    """Positions in `a` and not in `b`; None is the empty vector."""
    return _bytes(_bitmap(a) if b is None else _bitmap(a) - _bitmap(b))


def intersects(a: bytes, b: bytes) -> bool:
    """Whether a position is in both."""
    return bool(_bitmap(a).intersect(_bitmap(b)))


def count(data: bytes | memoryview) -> int:
    """How many positions there are."""
    return len(_bitmap(data))


def counts_in_blocks(data: bytes | memoryview, block_begins: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The number of positions in each block, given the first row of each, ascending from 0; the last has no end."""
    positions = unpack(data)
    return np.diff(np.searchsorted(positions, block_begins), append=len(positions)).astype(np.int64)


def check(data: bytes | memoryview, row_count: int) -> None:
    """Raise Malformed unless every position is a row of a file with `row_count` rows."""
    bitmap = _bitmap(data)
    if bitmap and bitmap.max() >= row_count:
        raise Malformed("a deleted row is past the end of the file", expected=f"< {row_count}", found=bitmap.max())


def _bitmap(data: bytes | memoryview) -> BitMap:
    stored = bytes(data)
    try:
        bitmap = BitMap.deserialize(stored)
    except (ValueError, IndexError) as error:
        raise Malformed(f"not a Roaring bitmap: {error}") from error
    if bitmap.serialize() != stored:
        raise Malformed("the Roaring bitmap has wrong offsets or trailing bytes")
    return bitmap


def _bytes(bitmap: BitMap) -> bytes:
    # A bitmap's containers depend on how it was built, those of a fresh one only on its positions.
    canonical = BitMap(bitmap.to_array())
    canonical.run_optimize()
    return canonical.serialize()
