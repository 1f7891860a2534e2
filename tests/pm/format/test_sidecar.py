"""Decoding: what is refused, and that views and gathers agree."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pm.examples import NUMBER, TEXT, THREE, TIMESTAMP, block, patched, sidecar_bytes, version
from underlay.errors import (
    ChecksumMismatch,
    Damaged,
    InvalidRequest,
    Malformed,
    Truncated,
    Unsupported,
    VersionNotFound,
)
from underlay.pm.format.encode import append, create
from underlay.pm.format.footers import walk
from underlay.pm.format.sidecar import decode
from underlay.pm.format.statistics import byte_bounds, fixed_bounds, null_counts
from underlay.pm.format.values import Header, SidecarColumn

FULL_HEADER = Header(
    columns=THREE.columns, designated_timestamp=0, sorting=(0, 1), bloom_columns=(1, 2), squash_tracker=5
)


def full_sidecar() -> bytes:
    blocks = [block(i, text="a long bound, out of line", blooms={1: bytes(range(32)), 2: bytes(64)}) for i in range(3)]
    return create(FULL_HEADER, blocks, version(seq_txn=3, scratchpad=((1, b"x"), (2, b"yy"))))


def test_every_prefix_is_refused():
    data = full_sidecar()
    for length in range(len(data)):
        with pytest.raises(Truncated):
            decode(data[:length])


def test_every_flipped_bit_is_detected():
    data = full_sidecar()
    for at in range(len(data)):
        covered = 8 <= at < len(data) - 4
        for bit in range(8):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            with pytest.raises((ChecksumMismatch, Truncated) if covered else (Damaged, Unsupported)):
                decode(bytes(damaged))


def test_bytes_behind_the_committed_size_are_not_looked_at():
    data = full_sidecar()
    assert decode(data + b"\xff" * 99).size == len(data)


COLUMN_COUNT = len(FULL_HEADER.columns)
NAMES_END = 32 + 32 * COLUMN_COUNT + 4 * 2 + len("tsntext")


@pytest.mark.parametrize(
    ("at", "kind", "value", "error", "place"),
    [
        (8, "Q", 1 << 32, Unsupported, "feature_flags"),
        (8, "Q", 2, Malformed, "feature_flags"),
        (16, "i", -2, Malformed, "designated_timestamp"),
        (16, "i", COLUMN_COUNT, Malformed, "designated_timestamp"),
        (24, "I", 1 << 31, Truncated, "column_count"),
        (20, "I", 1 << 31, Truncated, "column_count"),
        (32, "Q", 8, Truncated, "column descriptor 0"),
        (64, "Q", 1 << 40, Truncated, "column descriptor 1"),
        (64, "Q", (1 << 63) - 1, Truncated, "column descriptor 1"),
        (64, "Q", (1 << 64) - 1, Truncated, "column descriptor 1"),
        (88, "I", 0xFFFFFFFF, Truncated, "column descriptor 1"),
        (NAMES_END, "I", 0, Malformed, "bloom columns"),
        (NAMES_END, "I", COLUMN_COUNT + 1, Malformed, "bloom columns"),
        (NAMES_END + 4, "I", 2, Malformed, "bloom columns"),
        (NAMES_END + 8, "I", COLUMN_COUNT, Malformed, "bloom columns"),
    ],
)
def test_a_bad_header_field_is_named(at, kind, value, error, place):
    with pytest.raises(error, match=place):
        decode(patched(full_sidecar(), at, kind, value))


def test_a_bad_name_is_found_among_many_columns_too():
    header = Header(columns=tuple(SidecarColumn(name=f"c{i}", physical_type=1) for i in range(200)))
    data = create(header, [], version())
    for value in (8, 1 << 40, (1 << 63) - 1, (1 << 64) - 1):
        with pytest.raises(Truncated, match=rf"column descriptor 150 .*found {value} \+ 4"):
            _ = decode(patched(data, 32 + 32 * 150, "Q", value)).columns
    assert [column.name for column in decode(data).columns] == [f"c{i}" for i in range(200)]


def test_sorting_by_the_designated_timestamp_needs_one():
    data = create(Header(columns=(NUMBER,)), [], version())
    with pytest.raises(Malformed, match="designated_timestamp"):
        decode(patched(data, 8, "Q", 4))


def footer_offset(data: bytes) -> int:
    return decode(data).footer.offset


@pytest.mark.parametrize(
    ("offset", "kind", "value", "error", "place"),
    [
        (12, "I", 1 << 30, Truncated, "row_group_count"),
        (32, "Q", 1 << 63 | 3, Unsupported, "feature_flags"),
        (40, "I", 0, Truncated, "block offset 0"),
        (44, "I", 0xFFFFFFFF, Truncated, "block offset 1"),
        (40 + 12 + 24 + 8, "I", 0, Malformed, "SCRATCHPAD"),
        (40 + 12 + 24 + 8, "I", 99, Truncated, "SCRATCHPAD"),
        (40 + 12 + 24 + 8 + 8, "I", 1 << 31, Truncated, "SCRATCHPAD"),
    ],
)
def test_a_bad_footer_field_is_named(offset, kind, value, error, place):
    data = full_sidecar()
    with pytest.raises(error, match=place):
        decode(patched(data, footer_offset(data) + offset, kind, value))


@pytest.mark.parametrize("length", [0, 43, 44 + 12 - 1, 1 << 20, 0xFFFFFFFF])
def test_a_bad_trailer_is_refused(length: int):
    data = sidecar_bytes()
    with pytest.raises((Damaged, Unsupported)):
        decode(patched(data, len(data) - 4, "I", length))


@pytest.mark.parametrize("size", [0, 1, 31, 79, 1 << 40, (1 << 64) - 1])
def test_a_bad_committed_size_is_refused(size: int):
    with pytest.raises(Truncated):
        decode(patched(full_sidecar(), 0, "Q", size, mend=False))


def test_footer_bytes_that_no_flag_announces_are_refused():
    data = create(Header(columns=(NUMBER,)), [], version(extra=b"1234", other_flags=1 << 9))
    with pytest.raises(Malformed, match="no flag announces"):
        decode(patched(data, footer_offset(data) + 32, "Q", 0))


def test_a_name_that_is_not_utf8_is_refused_when_it_is_asked_for():
    sidecar = decode(patched(full_sidecar(), NAMES_END - 1, "B", 0xFF))
    assert sidecar.row_group_count == 3
    with pytest.raises(Malformed, match="UTF-8"):
        _ = sidecar.columns


def test_required_flags_of_a_newer_version_do_not_hide_an_older_one():
    data = sidecar_bytes()
    tail = append(decode(data), [0, 1, 2], version(900, seq_txn=1))
    longer = patched(data + tail.data, len(data) + 32, "Q", 1 << 50)
    longer = patched(longer, 0, "Q", tail.size)
    with pytest.raises(Unsupported):
        decode(longer)
    assert decode(longer, parquet_size=708).size == len(data)


def test_a_chain_that_does_not_go_back_is_refused():
    data = sidecar_bytes()
    for previous in (footer_offset(data) + 1, len(data), len(data) + 1, 1 << 60):
        looped = patched(data, footer_offset(data) + 24, "Q", previous)
        with pytest.raises(Malformed, match="does not point to an earlier version"):
            list(walk(looped, len(looped)))
        assert decode(looped).parquet_size == 708


@pytest.mark.parametrize("previous", [1, 35, 79])
def test_a_chain_into_the_header_is_refused(previous: int):
    data = sidecar_bytes()
    with pytest.raises(Truncated):
        list(walk(patched(data, footer_offset(data) + 24, "Q", previous), len(data)))


def test_blocks_that_cannot_all_have_room_are_refused():
    """Else a small file could make a reader gather an array of any size."""
    data = create(THREE, [block(0)], version())
    tail = append(decode(data), [0] * 200, version(900))
    with pytest.raises(Malformed, match="overlap"):
        decode(patched(data + tail.data, 0, "Q", tail.size))


def test_a_version_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(VersionNotFound, match=r"999 bytes.*708"):
        decode(sidecar_bytes(), parquet_size=999)


def test_a_checksum_error_says_what_was_computed_and_what_to_do():
    data = patched(sidecar_bytes(), 200, "B", 7, mend=False)
    with pytest.raises(ChecksumMismatch, match=r"0x[0-9a-f]{8}.*pm build"):
        decode(data)
    assert decode(data, check=False).row_group_count == 3


@pytest.mark.parametrize("rows", [1 << 63, (1 << 64) - 1, 1 << 62])
def test_more_rows_than_can_be_counted_are_refused(rows: int):
    data = sidecar_bytes(blocks=3)
    for offset in decode(data).block_offsets.tolist():
        data = patched(data, offset, "Q", rows)
    with pytest.raises(Malformed, match=r"block 0 at byte \d+, num_rows"):
        _ = decode(data).num_rows


def test_views_and_gathers_agree():
    even = decode(create(THREE, [block(i) for i in range(6)], version()))
    uneven = decode(create(THREE, [block(i, text="x" * (9 + i)) for i in range(6)], version()))
    data = create(THREE, [block(i) for i in (9, 9, 2, 3, 4, 5)], version())
    tail = append(decode(data), [block(0), block(1), 2, 3, 4, 5], version(900))
    moved = decode(patched(data + tail.data, 0, "Q", tail.size))
    for sidecar in (even, uneven, moved):
        assert sidecar.num_rows.tolist() == [3] * 6
        assert sidecar.chunks.shape == (6, 3)
        for column in range(3):
            assert (sidecar.column_chunks(column) == sidecar.chunks[:, column]).all()
        bounds = fixed_bounds(sidecar, 1, "<i8")
        assert bounds.minimum.tolist() == [0, 1000, 2000, 3000, 4000, 5000]
        assert bounds.maximum.tolist() == [999, 1999, 2999, 3999, 4999, 5999]
        assert bounds.has_minimum.all()
        assert bounds.has_maximum.all()
    assert byte_bounds(uneven, 2, "max").to_pylist() == [b"x" * (9 + i) for i in range(6)]
    assert byte_bounds(even, 2, "max").to_pylist() == [None] * 6


def test_reading_an_even_sidecar_copies_no_chunk_record():
    sidecar = decode(create(THREE, [block(i) for i in range(6)], version()))
    bounds = fixed_bounds(sidecar, 1, "<i8")
    raw = np.frombuffer(sidecar.data, np.uint8)
    assert np.shares_memory(bounds.minimum, raw)
    assert np.shares_memory(sidecar.chunks, raw)


def test_a_bound_of_another_width_is_not_a_bound():
    sidecar = decode(sidecar_bytes())
    assert not fixed_bounds(sidecar, 1, "<i4").has_minimum.any()


def test_a_reference_outside_its_block_is_no_bound():
    data = create(THREE, [block(0, text="0123456789")], version())
    slot = decode(data).block_offsets[0] + 8 + 2 * 64 + 48
    for reference in (11 << 16 | 10, 5 << 16 | 0, (1 << 48) - 1 << 16 | 0xFFFF):
        assert byte_bounds(decode(patched(data, int(slot), "Q", reference)), 2, "min").to_pylist() == [None]


def test_a_null_count_above_the_number_of_values_is_not_known():
    data = sidecar_bytes(blocks=2)
    at = int(decode(data).block_offsets[1]) + 8 + 64 + 32
    counts, known = null_counts(decode(patched(data, at, "Q", 4)).column_chunks(1))
    assert known.tolist() == [True, False]
    assert counts.tolist() == [0, 0]


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(InvalidRequest, match="no such column"):
        decode(sidecar_bytes()).column_chunks(3)


def test_a_sidecar_without_columns_or_row_groups_reads():
    empty = decode(create(Header(columns=()), [], version()))
    assert (empty.columns, empty.chunks.shape, empty.num_rows.tolist()) == ((), (0, 0), [])
    no_groups = decode(create(Header(columns=(TIMESTAMP, TEXT)), [], version()))
    assert no_groups.chunks.shape == (0, 2)
    assert fixed_bounds(no_groups, 0, "<i8").minimum.tolist() == []
    assert byte_bounds(no_groups, 1, "min").to_pylist() == []
