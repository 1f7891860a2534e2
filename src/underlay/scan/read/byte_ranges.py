"""Which byte ranges bring the wanted chunks, and where each chunk then lies in one buffer.

Requests cost a round trip and bytes cost their transfer, so neighbouring ranges are joined as long as what is fetched
in vain stays below a share of what is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from underlay.values.ranges import ByteRange, coalesce

WASTE_SHARE = 64
"""At most one byte in this many may be fetched needlessly."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """The ranges to ask for, ascending, apart from each other."""

    ranges: tuple[ByteRange, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes that will be fetched."""
        return sum(wanted.end - wanted.begin for wanted in self.ranges)

    def positions(self, begins: Sequence[int]) -> list[int]:
        """Where bytes that begin at `begins` in the file lie when the fetched ranges are put end to end.

        Takes time in proportion to the number of ranges and of `begins`, which may be in any order.
        """
        order = sorted(range(len(begins)), key=begins.__getitem__)
        found = [0] * len(begins)
        base, index = 0, 0
        for number in order:
            begin = begins[number]
            while begin >= self.ranges[index].end:
                base += self.ranges[index].end - self.ranges[index].begin
                index += 1
            found[number] = base + begin - self.ranges[index].begin
        return found


def plan_fetch(chunks: Iterable[ByteRange], *, gap_bytes: int) -> Fetch:
    """The fewest ranges that hold all chunks, joined over gaps of at most `gap_bytes` while the waste stays small."""
    apart = coalesce((chunk for chunk in chunks if chunk.end > chunk.begin), gap_bytes=0)
    wanted = sum(one.end - one.begin for one in apart)
    budget = wanted // WASTE_SHARE
    gaps = sorted((after.begin - before.end, number) for number, (before, after) in enumerate(pairwise(apart)))
    joined = set()
    for gap, number in gaps:
        if gap > gap_bytes or gap > budget:
            break
        budget -= gap
        joined.add(number)
    ranges: list[ByteRange] = []
    for number, one in enumerate(apart):
        if number - 1 in joined:
            ranges[-1] = ByteRange(ranges[-1].begin, one.end)
        else:
            ranges.append(one)
    return Fetch(tuple(ranges))
