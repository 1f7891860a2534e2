from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate import costly
from tests.index.segment_examples import file_entry, schema_of
from tests.plan.worlds import stored, worlds
from underlay.errors import ChecksumMismatch, Malformed, Truncated
from underlay.index.entry import FileEntry, Flag
from underlay.index.root import SegmentRef
from underlay.index.segment.directory import decode_directory, encode_directory
from underlay.index.segment.segment import Fetch, Segment
from underlay.index.segment.write import write_segment
from underlay.values.ranges import ByteRange

SCHEMA = schema_of({"id": "int64", "name": "string", "real": "float64"})
ENTRIES = [
    file_entry("a.parquet", SCHEMA, {"id": [[1, 2], [3]], "name": [[b"x", b"yy"], [None]]}, deleted=[1]),
    file_entry("b.parquet", SCHEMA, {"name": [[b"z"]], "real": [[0.5]]}, partition=(b"12345678", None)),
    file_entry("c.parquet", SCHEMA, {"id": []}),
]


def fetching(data: bytes, log: list[Sequence[ByteRange]] | None = None) -> Fetch:
    def fetch(ranges: Sequence[ByteRange]) -> list[memoryview]:
        if log is not None:
            log.append(ranges)
        return [memoryview(data)[begin:end] for begin, end in ranges]

    return fetch


def written() -> tuple[bytes, SegmentRef]:
    return write_segment(ENTRIES, SCHEMA, segment_id="s1", bounded_fields=[2])


@costly
@given(worlds())
def test_entries_come_back_as_they_were_written(world):
    for entries in world.entries:
        assert stored(entries, world.schema).entries() == entries
        assert Segment.of_entries(entries, world.schema).entries() == entries


def test_values_of_repeated_leaves_and_etags_come_back():
    first, second = ENTRIES[:2]
    counted = msgspec.structs.replace(first.columns[0], value_counts=np.array([7, 8], dtype="<i8").tobytes())
    entry = msgspec.structs.replace(
        first, etag='"e"', columns=(first.columns[1], counted), sidecar_bytes=5, sidecar_crc=2**32 - 1
    )
    assert stored([entry, second], SCHEMA).entries() == [entry, second]


def test_one_entry_can_be_asked_for():
    assert stored(ENTRIES, SCHEMA).entry(1) == ENTRIES[1]


def test_columns_that_the_schema_does_not_have_are_left_out():
    smaller = schema_of({"id": "int64"})
    assert [len(entry.columns) for entry in stored(ENTRIES, smaller).entries()] == [1, 0, 1]


def test_a_file_without_a_column_is_absent_in_all_its_blocks():
    statistics = stored(ENTRIES, SCHEMA).statistics(1)
    assert statistics is not None
    assert (statistics.flags[:2] & Flag.IS_ABSENT).tolist() == [0, 0]
    assert statistics.flags[2] == Flag.IS_ABSENT


def test_a_leaf_that_no_file_has_has_no_arrays():
    segment = stored(ENTRIES[:1], SCHEMA)
    assert segment.statistics(3) is None
    assert segment.places(3) is None


def test_blocks_know_their_file_and_first_row():
    segment = stored(ENTRIES, SCHEMA)
    assert segment.block_begin.tolist() == [0, 2, 3, 3]
    assert segment.file_of_block.tolist() == [0, 0, 1]
    assert segment.first_rows.tolist() == [0, 2, 0]
    assert segment.file_rows.tolist() == [3, 1, 0]


def test_the_reference_counts_what_the_segment_holds():
    data, ref = written()
    assert (ref.size_bytes, ref.file_count, ref.block_count, ref.row_count) == (len(data), 3, 3, 4)
    assert (ref.data_bytes, ref.deleted_rows) == (300_000, 1)


def test_the_reference_holds_bounds_over_all_files_that_have_values():
    (bound,) = write_segment(ENTRIES[:2], SCHEMA, segment_id="s", bounded_fields=[2])[1].bounds
    assert (bound.low, bound.high, bound.null_count) == (b"x", b"z", 1)


def test_a_leaf_that_one_file_does_not_have_has_no_bound_in_the_reference():
    assert write_segment(ENTRIES[:2], SCHEMA, segment_id="s", bounded_fields=[1])[1].bounds == ()


def test_wide_decimals_are_bounded_by_value_and_not_by_bytes():
    schema = schema_of({"price": "decimal(30, 2)"})
    entries = [file_entry("a", schema, {"price": [[-5, -1], [3]]})]
    (bound,) = write_segment(entries, schema, segment_id="s", bounded_fields=[1])[1].bounds
    assert int.from_bytes(bound.low or b"", "big", signed=True) == -5
    assert int.from_bytes(bound.high or b"", "big", signed=True) == 3


def test_a_prefetch_is_one_fetch_and_nothing_is_fetched_twice():
    data, ref = written()
    log: list[Sequence[ByteRange]] = []
    segment = Segment.open(ref, fetching(data, log), "s1")
    segment.prefetch([1, 2], [2])
    segment.prefetch([1], [2])
    assert segment.statistics(1) is not None
    assert segment.places(2) is not None
    assert segment.files.file_count == 3
    assert [len(ranges) for ranges in log] == [5]
    assert segment.nbytes > 0


def test_memory_that_is_held_grows_with_what_was_asked_for():
    for segment in (stored(ENTRIES, SCHEMA), Segment.of_entries(ENTRIES, SCHEMA)):
        assert segment.nbytes == 0
        segment.statistics(2)
        first = segment.nbytes
        segment.remember("more", lambda: np.zeros(1000))
        assert (first > 0, segment.nbytes) == (True, first + 8000)


def test_threads_fetch_a_piece_once():
    data, ref = written()
    log: list[Sequence[ByteRange]] = []
    segment = Segment.open(ref, fetching(data, log), "s1")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: segment.statistics(2), range(32)))
    assert len(log) == 1
    assert all(one is found[0] for one in found)


def test_pieces_begin_at_multiples_of_64_bytes():
    _, ref = written()
    assert {piece.begin % 64 for piece in decode_directory(ref.pieces, ref.size_bytes).values()} == {0}


def load_all(ref: SegmentRef, data: bytes) -> list[FileEntry]:
    return Segment.open(ref, fetching(data), "segment s1").entries()


def test_every_flipped_byte_of_a_piece_is_refused():
    data, ref = written()
    pieces = list(decode_directory(ref.pieces, ref.size_bytes).values())
    covered = [at for piece in pieces for at in range(*piece.range)]
    for at in covered[::37]:
        damaged = bytearray(data)
        damaged[at] ^= 0x10
        with pytest.raises(ChecksumMismatch, match=r"segment s1: .*(files|blocks|field)"):
            load_all(ref, bytes(damaged))


def test_every_prefix_is_refused():
    data, ref = written()
    end = max(piece.range.end for piece in decode_directory(ref.pieces, ref.size_bytes).values())
    for size in range(0, end, 97):
        with pytest.raises(Truncated, match="segment s1"):
            load_all(ref, data[:size])


@given(st.data())
def test_every_prefix_and_change_of_a_directory_is_refused_or_within_the_segment(data: st.DataObject):
    _, ref = written()
    cut = ref.pieces[: data.draw(st.integers(0, len(ref.pieces) - 1))]
    with pytest.raises(Malformed):
        decode_directory(cut, ref.size_bytes)
    changed = bytearray(ref.pieces)
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = decode_directory(bytes(changed), ref.size_bytes)
    except Malformed:
        return
    assert all(0 <= piece.range.begin <= piece.range.end <= ref.size_bytes for piece in found.values())


def test_a_piece_of_another_segment_is_refused_by_its_row_count():
    data, ref = written()
    with pytest.raises(Malformed, match="segment s1: files"):
        load_all(msgspec.structs.replace(ref, file_count=4), data)


def test_a_piece_outside_the_segment_is_refused():
    data, ref = written()
    pieces = list(decode_directory(ref.pieces, ref.size_bytes).values())
    far = msgspec.structs.replace(pieces[0], begin=ref.size_bytes)
    with pytest.raises(Malformed, match="outside"):
        Segment.open(msgspec.structs.replace(ref, pieces=encode_directory([far, *pieces[1:]])), fetching(data), "s1")


def test_packed_numbers_of_another_length_are_refused():
    broken = msgspec.structs.replace(ENTRIES[0].columns[0], sizes=b"1234567")
    entry = msgspec.structs.replace(ENTRIES[0], columns=(broken,))
    with pytest.raises(Malformed):
        write_segment([entry], SCHEMA, segment_id="s", bounded_fields=())


def test_packed_bytes_with_wrong_offsets_are_refused():
    broken = msgspec.structs.replace(ENTRIES[1].columns[0], low=np.array([0, 9], "<i4").tobytes() + b"z")
    entry = msgspec.structs.replace(ENTRIES[1], columns=(broken,))
    with pytest.raises(Malformed, match="offsets"):
        write_segment([entry], SCHEMA, segment_id="s", bounded_fields=())


def test_a_segment_of_no_files_has_no_entries():
    assert stored([], SCHEMA).entries() == []
    assert stored([], SCHEMA).block_count == 0
