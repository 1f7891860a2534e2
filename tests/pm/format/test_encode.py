"""Creating and appending versions."""

from __future__ import annotations

import struct
import zlib

import pytest

from tests.pm.examples import INLINE_EXACT, NUMBER, TEXT, THREE, TIMESTAMP, block, sidecar_bytes, version
from underlay.errors import InvalidRequest
from underlay.pm.format.blocks import block_value, empty_chunks, inline_bloom, lay_out
from underlay.pm.format.encode import append, create
from underlay.pm.format.footers import walk
from underlay.pm.format.sidecar import committed_size, decode
from underlay.pm.format.values import Header, SidecarColumn, VersionFields


def grown(data: bytes, blocks, fields, *, base: int | None = None, size: int | None = None) -> bytes:
    """`data` with one more version, as the file protocol would leave it."""
    tail = append(decode(data, size=size), blocks, fields, base=base)
    return struct.pack("<Q", tail.size) + data[8 : tail.begin] + tail.data


def timestamp_block(begin: int, low: int, high: int):
    chunks = empty_chunks(1)
    chunks["codec"], chunks["encodings"], chunks["stat_flags"], chunks["stat_sizes"] = 7, 4, INLINE_EXACT, 0x88
    chunks["num_values"], chunks["begin"], chunks["size"] = 3, begin, 120
    chunks["min_stat"], chunks["max_stat"] = low, high
    return lay_out(3, chunks, {}, {})


def test_the_smallest_sidecar_is_eighty_bytes():
    data = create(Header(columns=()), [], VersionFields(parquet_footer_offset=0, parquet_footer_length=0))
    assert len(data) == 80
    assert data[72:] == struct.pack("<II", 0x59BA3980, 0x2C)


def test_the_layout_of_the_worked_example():
    header = Header(columns=(TIMESTAMP,), designated_timestamp=0, sorting=(0,))
    data = create(header, [timestamp_block(4, 1000, 3000)], version())
    sidecar = decode(data)
    assert sidecar.header.feature_flags == 4
    assert sidecar.header.end == 66
    assert sidecar.block_offsets.tolist() == [72]
    assert sidecar.footer.offset == 144
    assert sidecar.parquet_size == 708
    assert len(data) == 196
    assert struct.unpack_from("<I", data, 192) == (48,)

    longer = grown(
        data,
        [0, timestamp_block(504, 4000, 5000)],
        VersionFields(parquet_footer_offset=900, parquet_footer_length=260, unused_bytes=208, seq_txn=7),
    )
    second = decode(longer)
    assert second.block_offsets.tolist() == [72, 200]
    assert second.footer.offset == 272
    assert second.size == 336
    assert second.sections.seq_txn == 7
    assert second.footer.previous_size == 196


def test_a_resumed_checksum_is_the_checksum_of_all_bytes():
    data = sidecar_bytes()
    for number in range(5):
        data = grown(data, [0, 1, 2, block(number)], version(1000 + number))
    stored = struct.unpack_from("<I", data, len(data) - 8)[0]
    assert stored == zlib.crc32(data[8 : len(data) - 8])


def test_append_writes_only_what_is_new():
    data = create(THREE, [block(i) for i in range(2000)], version())
    tail = append(decode(data), [*range(2000), block(2000)], version(900))
    assert len(tail.data) < 8 + 8 + 3 * 64 + 40 + 4 * 2001 + 8 + 8
    assert tail.begin == len(data)


def test_unchanged_blocks_keep_their_offsets_wherever_the_new_one_stands():
    data = sidecar_bytes(blocks=4)
    before = decode(data)
    after = decode(grown(data, [0, block(9), 2, 3, 1], version(900)))
    assert after.block_offsets[[0, 2, 3, 4]].tolist() == before.block_offsets[[0, 2, 3, 1]].tolist()
    assert after.column_chunks(1)["min_stat"].tolist() == [0, 9000, 2000, 3000, 1000]


def test_a_replaced_block_takes_its_own_bloom_filter_and_others_keep_theirs():
    header = Header(columns=(TIMESTAMP, NUMBER, TEXT), designated_timestamp=0, bloom_columns=(1, 2))
    bits = [bytes([i + 1]) * 32 for i in range(5)]
    data = create(header, [block(i, blooms={1: bits[i], 2: bits[i]}) for i in range(3)], version())
    data = grown(data, [0, block(7, blooms={1: bits[3]}), block(8, blooms={2: bits[4]})], version(900))
    sidecar = decode(data)
    found = [[inline_bloom(sidecar, r, c) for c in (1, 2)] for r in range(3)]
    assert found == [[bits[0], bits[0]], [bits[3], None], [None, bits[4]]]


def test_after_a_crash_the_append_base_is_the_published_size_and_the_dead_version_leaves_the_chain():
    data = sidecar_bytes()
    published = grown(data, [0, 1, block(5)], version(2000))
    again = grown(published, [0, 1, block(6)], version(3000), base=len(published), size=len(data))
    assert again[8 : len(published)] == published[8:]
    assert [f.parquet_size for f in walk(again, committed_size(again))] == [3208, 708]
    assert decode(again).column_chunks(1)["min_stat"].tolist() == [0, 1000, 6000]


def test_bytes_behind_the_committed_size_are_overwritten_by_the_next_append():
    data = sidecar_bytes()
    junk = data + b"\xff" * 1000
    tail = append(decode(junk), [0, 1, 2, block(3)], version(900), base=len(data))
    assert tail == append(decode(data), [0, 1, 2, block(3)], version(900))


def test_a_version_may_not_lose_row_groups():
    with pytest.raises(InvalidRequest, match="fewer row groups"):
        append(decode(sidecar_bytes()), [0, 1], version(900))


@pytest.mark.parametrize("base", [0, 100, 10_000])
def test_an_append_base_outside_the_file_is_refused(base: int):
    with pytest.raises(InvalidRequest, match="append base"):
        append(decode(sidecar_bytes()), [0, 1, 2], version(900), base=base)


def test_a_row_group_that_is_not_there_cannot_be_kept():
    with pytest.raises(InvalidRequest, match="no such row group"):
        append(decode(sidecar_bytes()), [0, 1, 3], version(900))


def test_a_block_of_another_width_is_refused():
    with pytest.raises(InvalidRequest, match="one chunk per column"):
        create(Header(columns=(TIMESTAMP,)), [block(0)], version())


def test_a_bloom_filter_for_a_column_that_the_header_does_not_name_is_refused():
    with pytest.raises(InvalidRequest, match="bloom filter"):
        create(THREE, [block(0, blooms={1: bytes(32)})], version())


def test_a_bound_longer_than_its_length_field_is_refused():
    with pytest.raises(InvalidRequest, match="too long"):
        block(0, text="x" * 65536)


def test_a_scratchpad_above_a_mebibyte_is_refused():
    with pytest.raises(InvalidRequest, match="scratchpad"):
        sidecar_bytes(scratchpad=((1, bytes(1 << 20)),))


@pytest.mark.parametrize(
    ("header", "flagged"),
    [
        (Header(columns=(TIMESTAMP, NUMBER), designated_timestamp=0, sorting=(0,)), True),
        (Header(columns=(TIMESTAMP, NUMBER), sorting=(0,)), False),
        (Header(columns=(TIMESTAMP, NUMBER), designated_timestamp=0, sorting=(0, 1)), False),
        (Header(columns=(TIMESTAMP, NUMBER), designated_timestamp=0, sorting=(1,)), False),
        (
            Header(
                columns=(SidecarColumn(name="t", physical_type=2, flags=0x10),), designated_timestamp=0, sorting=(0,)
            ),
            False,
        ),
    ],
    ids=["ascending", "no designated", "two", "another", "descending"],
)
def test_one_flag_says_ascending_by_the_designated_timestamp_and_nothing_else(header: Header, flagged: bool):
    data = create(header, [], version())
    view = decode(data).header
    assert bool(view.feature_flags & 4) is flagged
    assert view.sorting == header.sorting
    assert view.value() == header
    plain = create(Header(columns=header.columns, designated_timestamp=header.designated_timestamp), [], version())
    assert len(data) - len(plain) == (0 if flagged else 4 * len(header.sorting))


@pytest.mark.parametrize("tracker", [None, 0, 7, -2, -(1 << 63)])
@pytest.mark.parametrize("blooms", [(), (0, 2)])
@pytest.mark.parametrize("seq_txn", [None, 0, -5, 1 << 62])
@pytest.mark.parametrize("scratchpad", [(), ((1, b""), (1, b"second"), (9, b"\x00" * 40))])
def test_every_optional_section_survives(tracker, blooms, seq_txn, scratchpad):
    header = Header(columns=THREE.columns, bloom_columns=blooms, squash_tracker=tracker)
    rows = [block(i, text="long bound " * 3, blooms={c: bytes(range(32)) for c in blooms}) for i in range(2)]
    fields = version(seq_txn=seq_txn, scratchpad=scratchpad)
    data = create(header, rows, fields)
    sidecar = decode(data)
    assert sidecar.header.value() == header
    assert sidecar.version_fields() == fields
    assert create(header, [block_value(sidecar, i) for i in range(2)], fields) == data


def test_unknown_optional_flags_and_their_payload_survive():
    header = Header(columns=THREE.columns, other_flags=1 << 20)
    fields = version(other_flags=1 << 9, extra=b"from the future")
    data = create(header, [block(0)], fields)
    sidecar = decode(data)
    assert sidecar.header.value() == header
    assert sidecar.version_fields() == fields


def test_external_blooms_are_places_in_the_parquet_file():
    header = Header(columns=THREE.columns, bloom_columns=(1,), external_blooms=True)
    fields = version(external_blooms=(((5000, 47),), ((0, 0),)))
    sidecar = decode(create(header, [block(0), block(1)], fields))
    assert sidecar.version_fields() == fields
    assert inline_bloom(sidecar, 0, 1) is None


def test_named_flags_cannot_be_smuggled_in():
    with pytest.raises(InvalidRequest, match="other_flags"):
        create(Header(columns=(), other_flags=1), [], version())
    with pytest.raises(InvalidRequest, match="other_flags"):
        create(Header(columns=()), [], version(other_flags=1 << 40))


def test_the_scratchpad_is_inherited_unless_it_is_set():
    data = sidecar_bytes(scratchpad=((7, b"kept"),))
    inherited = grown(data, [0, 1, 2], version(900, scratchpad=None))
    assert decode(inherited).sections.scratchpad == ((7, b"kept"),)
    assert decode(grown(data, [0, 1, 2], version(900, scratchpad=()))).sections.scratchpad == ()
    replaced = grown(inherited, [0, 1, 2], version(950, scratchpad=((8, b"new"),)))
    assert decode(replaced).sections.scratchpad == ((8, b"new"),)


def test_a_tracker_or_transaction_of_minus_one_is_not_stored():
    header = Header(columns=THREE.columns, squash_tracker=-1)
    sidecar = decode(create(header, [block(0)], version(seq_txn=-1)))
    assert (sidecar.header.squash_tracker, sidecar.sections.seq_txn) == (None, None)
    assert sidecar.header.feature_flags & 8 == 0
    assert sidecar.footer.feature_flags == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: create(Header(columns=(SidecarColumn(name="x", physical_type=300),)), [], version()),
        lambda: create(Header(columns=(SidecarColumn(name="x", physical_type=1, id=1 << 40),)), [], version()),
        lambda: create(Header(columns=(SidecarColumn(name="\ud800", physical_type=1),)), [], version()),
        lambda: create(Header(columns=()), [], version(-1)),
        lambda: create(Header(columns=()), [], version(seq_txn=1 << 63)),
        lambda: create(Header(columns=()), [], version(scratchpad=((-1, b""),))),
        lambda: create(Header(columns=(), squash_tracker=1 << 70), [], version()),
        lambda: create(Header(columns=(NUMBER,), sorting=(-1,)), [], version()),
        lambda: create(Header(columns=()), [], version(extra=b"without a flag")),
        lambda: lay_out(-1, empty_chunks(1), {}, {}),
        lambda: lay_out(1, empty_chunks(1), {}, {1: bytes(32)}),
        lambda: lay_out(1, empty_chunks(1), {}, {0: bytes(33)}),
    ],
)
def test_what_does_not_fit_the_format_is_refused_clearly(make):
    with pytest.raises(InvalidRequest):
        make()
