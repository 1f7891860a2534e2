"""Half-open byte ranges, and how neighbours are fetched together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class ByteRange(NamedTuple):
    """The bytes `begin <= i < end` of an object."""

    begin: int
    end: int

    @property
    def size_bytes(self) -> int:
        """How many bytes the range holds."""
        return self.end - self.begin


def coalesce(ranges: Iterable[ByteRange], *, gap_bytes: int = 0) -> list[ByteRange]:
    """The ranges in ascending order; what overlaps or lies at most `gap_bytes` apart is joined, empty ones dropped."""
    joined: list[ByteRange] = []
    for begin, end in sorted(r for r in ranges if r[1] > r[0]):
        if joined and begin - joined[-1].end <= gap_bytes:
            joined[-1] = ByteRange(joined[-1].begin, max(joined[-1].end, end))
        else:
            joined.append(ByteRange(begin, end))
    return joined
