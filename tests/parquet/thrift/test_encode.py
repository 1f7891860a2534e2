from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underlay.errors import InvalidRequest
from underlay.parquet.thrift.encode import (
    I8,
    I16,
    I32,
    I64,
    Bool,
    Double,
    List,
    Raw,
    Struct,
    ThriftBinary,
    Uuid,
    encode,
    kind_of,
)
from underlay.parquet.thrift.tree import ThriftKind, parse


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


PLAIN = {
    ThriftKind.TRUE: st.builds(Bool, st.booleans()),
    ThriftKind.I8: st.builds(I8, integers(8)),
    ThriftKind.I16: st.builds(I16, integers(16)),
    ThriftKind.I32: st.builds(I32, integers(32)),
    ThriftKind.I64: st.builds(I64, integers(64)),
    ThriftKind.DOUBLE: st.builds(Double, st.binary(min_size=8, max_size=8)),
    ThriftKind.UUID: st.builds(Uuid, st.binary(min_size=16, max_size=16)),
    ThriftKind.BINARY: st.builds(ThriftBinary, st.binary(max_size=40)),
}


def lists(kind: ThriftKind, items: st.SearchStrategy) -> st.SearchStrategy:
    return st.builds(List, st.just(kind), st.lists(items, max_size=5).map(tuple), st.booleans())


PLAIN_LISTS = st.one_of([lists(kind, items) for kind, items in PLAIN.items()])


def structs(values: st.SearchStrategy) -> st.SearchStrategy:
    return st.builds(Struct, st.dictionaries(integers(16), st.one_of(values, *PLAIN.values(), PLAIN_LISTS), max_size=4))


STRUCTS = st.recursive(
    structs(st.nothing()),
    lambda inner: structs(
        st.one_of(
            inner,
            lists(ThriftKind.STRUCT, inner),
            lists(ThriftKind.LIST, lists(ThriftKind.STRUCT, inner).filter(lambda x: not x.is_set)),
        )
    ),
    max_leaves=5,
)


@given(STRUCTS)
def test_a_value_is_read_back_as_it_was_written(value):
    data = encode(value)
    tree = parse(data)
    assert tree.value(0) == value
    assert tree.write({}) == data


def test_canonical_bytes_are_short():
    value = Struct({1: I32(1), 16: I64(-1), 32: Bool(True), 33: List(ThriftKind.I32, (I32(0),) * 15)})
    assert encode(value) == b"\x15\x02\xf6\x01" + b"\x01\x40" + b"\x19\xf5\x0f" + b"\0" * 15 + b"\x00"


def test_raw_bytes_are_copied():
    inner = Struct({1: I32(5), 2: Bool(False)})
    assert encode(Struct({3: Raw(ThriftKind.STRUCT, encode(inner))})) == encode(Struct({3: inner}))


def test_a_double_is_made_of_a_number():
    assert Double.of(1.0).data == bytes.fromhex("000000000000f03f")
    assert kind_of(Double.of(0.0)) is ThriftKind.DOUBLE


@pytest.mark.parametrize(
    "value",
    [
        I8(128),
        I16(-(2**15) - 1),
        I32(2**31),
        I64(2**63),
        Double(b"short"),
        Uuid(b"short"),
        Struct({2**15: I32(1)}),
        List(ThriftKind.I32, (I64(1),)),
    ],
)
def test_values_that_do_not_fit_are_refused(value):
    with pytest.raises(InvalidRequest):
        encode(value)


def test_values_that_are_too_deep_are_refused():
    value = Struct({})
    for _ in range(64):
        value = Struct({1: value})
    with pytest.raises(InvalidRequest, match="deep"):
        encode(value)
