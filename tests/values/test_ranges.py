from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from underlay.values.ranges import ByteRange, coalesce

RANGES = st.lists(st.builds(lambda a, n: ByteRange(a, a + n), st.integers(0, 60), st.integers(0, 9)))


def covered(ranges) -> set[int]:
    return {i for r in ranges for i in range(r.begin, r.end)}


@given(RANGES)
def test_without_a_gap_exactly_the_wanted_bytes_are_covered(ranges: list[ByteRange]):
    joined = coalesce(ranges)
    assert covered(joined) == covered(ranges)
    assert all(a.end < b.begin for a, b in pairwise(joined))


@given(RANGES, st.integers(0, 9))
def test_ranges_closer_than_the_gap_are_joined(ranges: list[ByteRange], gap: int):
    joined = coalesce(ranges, gap_bytes=gap)
    assert covered(joined) >= covered(ranges)
    assert all(b.begin - a.end > gap for a, b in pairwise(joined))
    assert sum(r.size_bytes for r in joined) <= len(covered(ranges)) + gap * max(len(ranges) - 1, 0)
