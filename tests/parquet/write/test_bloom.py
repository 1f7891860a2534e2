from __future__ import annotations

import io
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from underlay.errors import InvalidRequest, Malformed, Truncated
from underlay.parquet.thrift.encode import I32, Struct, ThriftBinary, encode
from underlay.parquet.write.bloom import (
    BloomHeader,
    build,
    contains,
    contains_all,
    encode_header,
    hash_values,
    parse_header,
    size_for,
)

NUMBERS = np.arange(-40, 460)


@pytest.mark.parametrize("width", range(40))
def test_hashes_of_every_width_are_xxhash64(width):
    rows = np.random.default_rng(width).integers(0, 256, (9, width), np.uint8)
    assert hash_values(rows).tolist() == [xxhash.xxh64_intdigest(row.tobytes()) for row in rows]


@pytest.mark.parametrize("dtype", ["<i4", "<i8", "<f4", "<f8", "V16"])
def test_arrays_are_hashed_by_their_plain_bytes(dtype):
    values = np.frombuffer(np.random.default_rng(1).bytes(160), dtype)
    assert hash_values(values).tolist() == hash_values([value.tobytes() for value in values]).tolist()


@pytest.mark.parametrize("values", [np.array(["a"]), np.array([b"a"]), np.arange(3, dtype=">i4"), np.zeros((2, 2))])
def test_arrays_without_plain_bytes_are_refused(values):
    with pytest.raises(InvalidRequest):
        hash_values(values)


@pytest.mark.parametrize(
    ("column", "hashes"),
    [
        (pa.array(NUMBERS, pa.int32()), hash_values(NUMBERS.astype("<i4"))),
        (pa.array(NUMBERS, pa.int64()), hash_values(NUMBERS.astype("<i8"))),
        (pa.array(NUMBERS / 8, pa.float32()), hash_values((NUMBERS / 8).astype("<f4"))),
        (pa.array(NUMBERS / 8, pa.float64()), hash_values((NUMBERS / 8).astype("<f8"))),
        (pa.array([f"row {n}" for n in NUMBERS]), hash_values([f"row {n}".encode() for n in NUMBERS])),
        (
            pa.array([struct.pack("<qq", n, n) for n in NUMBERS.tolist()], pa.binary(16)),
            hash_values(np.stack([NUMBERS, NUMBERS], axis=1).astype("<i8").view(np.uint8)),
        ),
    ],
    ids=["int32", "int64", "float", "double", "string", "fixed"],
)
def test_filters_equal_those_of_pyarrow(column, hashes):
    buffer = io.BytesIO()
    pq.write_table(pa.table({"c": column}), buffer, bloom_filter_options={"c": {"ndv": 500, "fpp": 0.01}})
    data = buffer.getvalue()
    offset = pq.read_metadata(io.BytesIO(data)).row_group(0).column(0).bloom_filter_offset
    header = parse_header(data[offset : offset + 64])
    bitset = data[offset + header.header_length :][: header.bitset_length]
    assert header.bitset_length == size_for(500)
    assert encode_header(header.bitset_length) == data[offset : offset + header.header_length]
    assert build(hashes) == bitset
    assert contains(bitset, hashes).all()


def test_the_reference_filter_of_parquet_testing_holds_its_values(fixtures):
    data = (fixtures / "parquet-testing/data/bloom_filter.xxhash.bin").read_bytes()
    header = parse_header(data)
    bitset = data[header.header_length :]
    assert len(bitset) == header.bitset_length
    words = [b"hello", b"parquet", b"bloom", b"filter"]
    assert contains(bitset, hash_values(words)).all()
    assert build(hash_values(words), size_bytes=len(bitset)) == bitset


def test_a_filter_of_one_block_tells_values_apart():
    integers = build(hash_values(np.arange(10, dtype="<i8")), size_bytes=32)
    assert contains(integers, hash_values(np.arange(10, dtype="<i8"))).all()
    assert not contains(integers, hash_values(np.arange(1000, 2000, dtype="<i8"))).all()


@given(st.lists(st.binary(max_size=40)), st.sampled_from([32, 64, 96, 1024]))
def test_a_filter_never_denies_what_it_holds(values, size_bytes):
    hashes = hash_values(values)
    assert contains(build(hashes, size_bytes=size_bytes), hashes).all()


def test_false_positives_are_as_rare_as_asked():
    bitset = build(hash_values(np.arange(5000, dtype="<i8")), fpp=0.01)
    assert contains(bitset, hash_values(np.arange(10_000, 60_000, dtype="<i8"))).mean() < 0.015


@pytest.mark.parametrize(
    ("count", "fpp", "size"), [(0, 0.01, 32), (1, 0.01, 32), (500, 0.01, 1024), (10**9, 0.01, 4 * 2**20)]
)
def test_sizes_are_powers_of_two_within_limits(count, fpp, size):
    assert size_for(count, fpp) == size


@pytest.mark.parametrize("fpp", [0, 1, -1])
def test_impossible_chances_are_refused(fpp):
    with pytest.raises(InvalidRequest):
        size_for(10, fpp)


@pytest.mark.parametrize("size", [0, 16, 33])
def test_sizes_that_are_not_whole_blocks_are_refused(size):
    with pytest.raises(InvalidRequest):
        build(hash_values([b"a"]), size_bytes=size)
    with pytest.raises(Malformed):
        contains(b"\0" * size, hash_values([b"a"]))


def test_many_filters_answer_as_one_by_one():
    bitsets = [build(hash_values(np.arange(n, 3 * n, dtype="<i8")), fpp=0.1) for n in range(1, 60)]
    words = np.frombuffer(b"".join(bitsets), "<u4")
    sizes = np.array([len(bitset) for bitset in bitsets])
    begin, count = (np.cumsum(sizes) - sizes) // 4, sizes // 32
    begin[5] = -1
    for value in range(0, 200, 7):
        hashes = hash_values(np.array([value], "<i8"))
        expected = [bool(contains(bitset, hashes)[0]) for bitset in bitsets]
        expected[5] = True
        assert contains_all(words, begin, count, int(hashes[0])).tolist() == expected


def test_a_filter_outside_the_buffer_is_refused():
    with pytest.raises(Truncated):
        contains_all(np.zeros(8, np.uint32), np.array([1]), np.array([1]), 7)


def test_headers_are_read_back():
    header = encode_header(1024)
    assert parse_header(header + b"bits") == BloomHeader(len(header), 1024)


KNOWN = Struct({1: Struct({})})


@pytest.mark.parametrize(
    "fields",
    [
        {1: I32(16), 2: KNOWN, 3: KNOWN, 4: KNOWN},
        {1: I32(-32), 2: KNOWN, 3: KNOWN, 4: KNOWN},
        {1: I32(48), 2: KNOWN, 3: KNOWN, 4: KNOWN},
        {1: I32(32), 2: Struct({2: Struct({})}), 3: KNOWN, 4: KNOWN},
        {1: I32(32), 2: KNOWN, 3: KNOWN},
        {1: I32(32), 2: KNOWN, 3: ThriftBinary(b""), 4: KNOWN},
    ],
)
def test_filters_of_other_kinds_are_none(fields):
    assert parse_header(encode(Struct(fields))) is None


def test_a_header_without_a_length_or_cut_short_is_refused():
    with pytest.raises(Malformed, match="no length"):
        parse_header(encode(Struct({2: KNOWN})))
    with pytest.raises(Truncated):
        parse_header(encode_header(64)[:-1])
