"""Deletion vectors are sets of row positions, and no bytes make them crash."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from underlay.errors import InvalidRequest, Malformed
from underlay.index import deletion_vectors as deletes

LARGEST = deletes.MAX_ROWS - 1

positions_sets = st.one_of(
    st.sets(st.integers(0, 200)),
    st.sets(st.integers(0, LARGEST), max_size=30),
    st.builds(
        lambda b, n, s: set(range(b, b + n * s, s)), st.integers(0, 200_000), st.integers(0, 9000), st.integers(1, 3)
    ),
)

EXAMPLES = {
    "empty": (),
    "array": (1, 2, 70, 70_000, LARGEST),
    "bitmap": range(0, 20_000, 2),
    "run": range(100, 100_000),
    "all kinds, with offsets": (*range(9000), *range(1 << 16, 90_000, 3), 200_000, 300_000, *range(400_000, 400_900)),
}
KINDS = pytest.mark.parametrize("positions", EXAMPLES.values(), ids=EXAMPLES.keys())


def use(data: bytes) -> None:
    """Everything that walks through the bytes."""
    deletes.unpack(data)
    deletes.union(data, data)
    deletes.difference(data, data)
    deletes.counts_in_blocks(data, np.array([0, 10]))


@given(positions_sets)
def test_positions_come_back_ascending(positions: set[int]) -> None:
    data = deletes.pack(positions)
    assert deletes.unpack(data).tolist() == sorted(positions)
    assert deletes.count(data) == len(positions)


@given(positions_sets, positions_sets)
def test_set_operations_are_those_of_sets(a: set[int], b: set[int]) -> None:
    packed_a, packed_b = deletes.pack(a), deletes.pack(b)
    assert deletes.union(packed_a, packed_b) == deletes.pack(a | b)
    assert deletes.difference(packed_a, packed_b) == deletes.pack(a - b)
    assert deletes.intersects(packed_a, packed_b) == bool(a & b)


def test_nothing_is_the_empty_vector() -> None:
    some = deletes.pack([3])
    assert deletes.union(None, some) == some
    assert deletes.difference(some, None) == some


@given(positions_sets, st.sets(st.integers(1, 300_000), max_size=20))
def test_counts_in_blocks_are_those_of_a_loop(positions: set[int], begins: set[int]) -> None:
    edges = [0, *sorted(begins)]
    expected = [sum(a <= p < b for p in positions) for a, b in zip(edges, [*edges[1:], deletes.MAX_ROWS], strict=True)]
    assert deletes.counts_in_blocks(deletes.pack(positions), np.array(edges)).tolist() == expected


@pytest.mark.parametrize("positions", [[-1], [deletes.MAX_ROWS], [1 << 70], np.array([-5])])
def test_a_position_out_of_range_is_refused(positions: list[int]) -> None:
    with pytest.raises(InvalidRequest):
        deletes.pack(positions)


def test_arrays_of_any_integer_type_can_be_packed() -> None:
    for kind in (np.int64, np.uint64, np.int32, np.uint8):
        assert deletes.pack(np.array([7, 5, 7], kind)) == deletes.pack([5, 7])


def test_a_row_past_the_end_of_the_file_is_refused() -> None:
    deletes.check(deletes.pack([0, 9]), 10)
    deletes.check(deletes.pack([]), 0)
    with pytest.raises(Malformed, match="past the end"):
        deletes.check(deletes.pack([10]), 10)


@KINDS
def test_bytes_are_plain_portable_roaring(positions: range) -> None:
    assert BitMap.deserialize(deletes.pack(positions)) == BitMap(positions)
    assert deletes.unpack(BitMap(positions).serialize()).tolist() == list(positions)


@KINDS
def test_every_prefix_and_every_longer_one_is_malformed(positions: range) -> None:
    data = deletes.pack(positions)
    for end in {*range(min(len(data), 400)), len(data) - 1}:
        with pytest.raises(Malformed):
            deletes.unpack(data[:end])
    with pytest.raises(Malformed):
        deletes.unpack(data + b"\0")


@KINDS
def test_every_changed_byte_is_malformed_or_another_proper_set(positions: range) -> None:
    data = deletes.pack(positions)
    for at in range(min(len(data), 300)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= flip
            try:
                found = deletes.unpack(bytes(damaged))
            except Malformed:
                continue
            assert bool((np.diff(found) > 0).all())
            use(bytes(damaged))


@given(st.binary(max_size=64), st.sampled_from([b"", b"\x3a\x30\0\0", b"\x3b\x30\0\0", b"\x3b\x30\x04\0"]))
def test_any_bytes_are_malformed_or_a_set(rest: bytes, cookie: bytes) -> None:
    try:
        deletes.unpack(cookie + rest)
    except Malformed:
        return
    use(cookie + rest)


def test_a_wrong_offset_is_malformed() -> None:
    data = bytearray(deletes.pack([1, 70_000]))
    data[16] ^= 1
    with pytest.raises(Malformed, match="offsets"):
        deletes.unpack(bytes(data))


def test_a_bitmap_with_a_wrong_cardinality_is_malformed() -> None:
    data = bytearray(BitMap(range(0, 20_000, 2)).serialize())
    data[10:12] = (5000).to_bytes(2, "little")
    with pytest.raises(Malformed, match="cardinality"):
        deletes.unpack(bytes(data))
