from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underlay.errors import Truncated
from underlay.store.coalesce import cut, join
from underlay.values.ranges import ByteRange

DATA = bytes(range(200))

ranges = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)).map(lambda pair: ByteRange(*sorted(pair))))


@given(ranges, st.integers(0, 50))
def test_what_is_joined_is_cut_back_to_what_was_asked(wanted: list[ByteRange], gap_bytes: int):
    joined = join(wanted, gap_bytes)
    fetched = [memoryview(DATA)[begin:end] for begin, end in joined]
    assert [bytes(piece) for piece in cut(fetched, joined, wanted)] == [DATA[begin:end] for begin, end in wanted]


def test_pieces_share_the_memory_of_what_was_fetched():
    joined = [ByteRange(0, 10)]
    fetched = [memoryview(DATA)[:10]]
    (piece,) = cut(fetched, joined, [ByteRange(2, 4)])
    assert piece.obj is DATA


def test_a_short_answer_is_truncated_and_says_where_the_object_ends():
    with pytest.raises(Truncated, match=r"5\.\.10 .*found 7 bytes"):
        cut([memoryview(b"xx")], [ByteRange(5, 10)], [ByteRange(5, 10)])
