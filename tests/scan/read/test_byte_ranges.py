from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from underlay.scan.read.file_read import WASTE_SHARE, Fetch, plan_fetch
from underlay.values.ranges import ByteRange

GAP = 4096


@st.composite
def apart(draw: st.DrawFn) -> list[ByteRange]:
    """Chunks that do not overlap, in any order; some are empty, some touch."""
    found, at = [], 0
    for gap, size in draw(st.lists(st.tuples(st.integers(0, 3 * GAP), st.integers(0, 100_000)), max_size=20)):
        found.append(ByteRange(at + gap, at + gap + size))
        at += gap + size
    return draw(st.permutations(found))


def size(ranges: list[ByteRange]) -> int:
    return sum(one.size_bytes for one in ranges)


@given(apart())
def test_every_chunk_lies_in_one_range_and_little_is_fetched_in_vain(chunks: list[ByteRange]):
    fetch = plan_fetch(chunks, gap_bytes=GAP)
    for chunk in chunks:
        if chunk.size_bytes:
            assert [1 for one in fetch.ranges if one.begin <= chunk.begin and chunk.end <= one.end] == [1]
    wanted = size(chunks)
    assert wanted <= fetch.size_bytes <= wanted + wanted // WASTE_SHARE


@given(apart())
def test_ranges_are_ascending_and_apart(chunks: list[ByteRange]):
    ranges = plan_fetch(chunks, gap_bytes=GAP).ranges
    assert all(before.end < after.begin for before, after in pairwise(ranges))
    assert all(one.size_bytes for one in ranges)


@given(apart())
def test_positions_are_those_in_the_ranges_put_end_to_end(chunks: list[ByteRange]):
    chunks = [chunk for chunk in chunks if chunk.size_bytes]
    fetch = plan_fetch(chunks, gap_bytes=GAP)
    joined = [at for one in fetch.ranges for at in (one.begin, one.end)]
    for chunk, position in zip(chunks, fetch.positions([chunk.begin for chunk in chunks]), strict=True):
        before = sum(one.size_bytes for one in fetch.ranges if one.end <= chunk.begin)
        holder = next(one for one in fetch.ranges if one.begin <= chunk.begin < one.end)
        assert position == before + chunk.begin - holder.begin
    assert joined == sorted(joined)


def test_bytes_cut_out_by_their_positions_are_the_chunks():
    data = bytes(range(256)) * 40
    chunks = [ByteRange(5_000, 9_000), ByteRange(10, 1_000), ByteRange(1_010, 4_000)]
    fetch = plan_fetch(chunks, gap_bytes=GAP)
    buffer = b"".join(data[begin:end] for begin, end in fetch.ranges)
    positions = fetch.positions([chunk.begin for chunk in chunks])
    assert [buffer[at : at + c.size_bytes] for at, c in zip(positions, chunks, strict=True)] == [
        data[c.begin : c.end] for c in chunks
    ]


def test_small_gaps_are_joined_first():
    """A budget of 128 bytes pays for the gaps of 20 and 60, and not for that of 70."""
    chunks = [ByteRange(0, 4_096), ByteRange(4_166, 6_000), ByteRange(6_060, 8_000), ByteRange(8_020, 8_342)]
    fetch = plan_fetch(chunks, gap_bytes=GAP)
    assert fetch.ranges == (ByteRange(0, 4_096), ByteRange(4_166, 8_342))


def test_a_gap_that_is_too_wide_is_not_joined_however_much_is_wanted():
    chunks = [ByteRange(0, 10_000_000), ByteRange(10_005_000, 20_000_000)]
    assert plan_fetch(chunks, gap_bytes=GAP).ranges == tuple(chunks)


def test_no_gap_is_joined_where_the_store_joins_none():
    chunks = [ByteRange(0, 10_000), ByteRange(10_001, 20_000)]
    assert plan_fetch(chunks, gap_bytes=0).ranges == tuple(chunks)


def test_nothing_wanted_is_nothing_fetched():
    assert plan_fetch([ByteRange(7, 7)], gap_bytes=GAP) == Fetch(())
    assert Fetch(()).positions([]) == []
