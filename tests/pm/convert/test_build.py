"""Bloom filters on their way from a file into its sidecar."""

from __future__ import annotations

import pytest

from underlay.errors import Damaged
from underlay.parquet.thrift.encode import I32, Struct, encode
from underlay.parquet.write.bloom import encode_header, parse_header
from underlay.pm.convert.build import bitsets_of

KNOWN = Struct({1: Struct({})})


def header(length: int, *, compression: Struct = KNOWN, surplus: bool = False) -> bytes:
    fields = {1: I32(length), 2: KNOWN, 3: KNOWN, 4: compression}
    return encode(Struct(fields | ({9: I32(7)} if surplus else {})))


@pytest.mark.parametrize("length", [32, 64, 1024, 1 << 20])
@pytest.mark.parametrize("surplus", [False, True], ids=["usual header", "header with another field"])
@pytest.mark.parametrize("after", [0, 5, 40])
def test_a_bitset_is_what_follows_its_header(length: int, surplus: bool, after: int):
    bitset = bytes(range(32)) * (length // 32)
    stored = header(length, surplus=surplus) + bitset + bytes(after)
    parsed = parse_header(stored)
    assert parsed is not None
    assert bitsets_of({(0, 1): stored}) == {(0, 1): bitset}
    assert stored[parsed.header_length :][: parsed.bitset_length] == bitset


def test_a_filter_that_is_compressed_is_left_out():
    assert bitsets_of({(0, 1): header(32, compression=Struct({2: Struct({})})) + bytes(32)}) == {}


def test_a_filter_without_a_bitset_is_left_out():
    assert bitsets_of({(0, 1): encode_header(0)}) == {}


def test_a_header_that_is_cut_is_refused_with_its_place():
    with pytest.raises(Damaged, match="row group 0, column 1"):
        bitsets_of({(0, 1): encode_header(32)[:4]})
