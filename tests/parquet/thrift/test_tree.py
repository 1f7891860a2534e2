from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest

from tests.gate import sized
from tests.parquet import footers
from underlay.errors import InvalidRequest, Malformed, Truncated, UnderlayError
from underlay.parquet.thrift import tree as thrift
from underlay.parquet.thrift.encode import I16, I32, I64, Bool, List, Struct, ThriftBinary, encode
from underlay.parquet.thrift.tree import ITEM, ThriftKind, parse

NUMBERS = Struct({1: I32(-5), 2: I64(2**62), 3: Bool(True), 4: Bool(False), 40: I16(7)})


@pytest.mark.parametrize("folder", footers.FOLDERS)
def test_every_genuine_footer_is_written_back_byte_for_byte(folder):
    for path, data in footers.plain_footers(folder):
        tree = parse(data, trailing=path.suffix == ".encrypted")
        whole = data[: tree.size_bytes]
        assert tree.write({}) == whole, path
        assert encode(tree.value(0)) == whole, path


def test_every_prefix_of_a_footer_is_refused():
    data = footers.footer_bytes(footers.example(rows=3))
    for end in range(len(data)):
        with pytest.raises((Truncated, Malformed)):
            parse(data[:end])


def test_a_mutated_footer_is_parsed_or_refused_with_a_reason():
    generator = random.Random(20261115)
    data = footers.footer_bytes(footers.example(rows=3))
    for _ in range(sized(600, 3000)):
        damaged = bytearray(data)
        for _ in range(generator.randint(1, 4)):
            octet = generator.choice((0, 0x7F, 0x80, 0xFF, generator.randrange(256)))
            damaged[generator.randrange(len(damaged))] = octet
        try:
            tree = parse(bytes(damaged), trailing=True)
        except UnderlayError:
            continue
        assert tree.write({}) == bytes(damaged[: tree.size_bytes])


def test_random_bytes_are_parsed_or_refused_with_a_reason():
    generator = random.Random(7)
    for _ in range(sized(600, 3000)):
        data = generator.randbytes(generator.randint(0, 40))
        try:
            tree = parse(data, trailing=True)
        except UnderlayError:
            continue
        assert tree.write({}) == data[: tree.size_bytes]


def test_entries_tell_kind_field_position_number_and_what_comes_next():
    tree = parse(encode(Struct({1: NUMBERS, 2: ThriftBinary(b"abc"), 3: List(ThriftKind.I32, (I32(1), I32(300)))})))
    assert [tree.kind(entry) for entry in tree.children(0)] == [ThriftKind.STRUCT, ThriftKind.BINARY, ThriftKind.LIST]
    assert [tree.field_id(entry) for entry in tree.children(1)] == [1, 2, 3, 4, 40]
    assert [tree.integer(entry) for entry in tree.children(1)] == [-5, 2**62, 1, 0, 7]
    assert int(tree.next[1]) == 7
    assert tree.binary(7) == b"abc"
    assert tree.raw(7) == b"\x03abc"
    assert tree.integer(8) == 2
    assert tree.field(0, 3) == 8
    assert tree.field(0, 4) is None


def test_select_finds_every_value_at_a_path():
    rows = tuple(Struct({1: I32(n), 2: List(ThriftKind.STRUCT, (Struct({7: I64(n * n)}),) * n)}) for n in range(20))
    tree = parse(encode(Struct({4: List(ThriftKind.STRUCT, rows)})))
    assert tree.number[tree.select((4, ITEM, 1))].tolist() == list(range(20))
    assert tree.number[tree.select((4, ITEM, 2, ITEM, 7))].tolist() == [n * n for n in range(20) for _ in range(n)]
    assert tree.select((4, ITEM, 3)).size == 0


def test_select_tells_kinds_apart():
    rows = (Struct({1: I32(1)}), Struct({1: ThriftBinary(b"")}), Struct({1: Bool(True)}), Struct({1: Bool(False)}))
    tree = parse(encode(Struct({1: List(ThriftKind.STRUCT, rows)})))
    assert tree.select((1, ITEM, 1)).size == 4
    assert tree.select((1, ITEM, 1), (ThriftKind.I32,)).size == 1
    assert tree.number[tree.select((1, ITEM, 1), (ThriftKind.TRUE, ThriftKind.FALSE))].tolist() == [1, 0]


def test_items_of_integer_lists_are_read():
    lists = [list(range(-n, n * 40, 3)) for n in range(12)]
    value = List(ThriftKind.STRUCT, tuple(Struct({1: List(ThriftKind.I64, tuple(map(I64, items)))}) for items in lists))
    tree = parse(encode(Struct({1: value})))
    assert [tree.numbers_in(entry) for entry in tree.select((1, ITEM, 1)).tolist()] == lists


def test_items_of_another_kind_are_not_integers():
    tree = parse(encode(Struct({1: List(ThriftKind.BINARY, (ThriftBinary(b"x"),))})))
    with pytest.raises(Malformed, match="does not hold integers"):
        tree.numbers_in(1)


def test_items_of_a_binary_list_are_read():
    items = List(ThriftKind.BINARY, (ThriftBinary(b""), ThriftBinary(b"x" * 300)))
    assert parse(encode(Struct({1: items}))).value(1) == items


def test_long_forms_survive_writing():
    long_header = b"\x05\x02\x0a"  # field 1, I32, in the form with the id spelt out
    long_varint = b"\x15\x8a\x80\x00"  # field 2, I32 5 in three bytes
    long_list = b"\x19\xf5\x81\x00\x02"  # field 3, one item, count as a varint of two bytes
    data = long_header + long_varint + long_list + b"\x00"
    tree = parse(data)
    assert [tree.integer(entry) for entry in tree.children(0)] == [5, 5, 1]
    assert tree.write({}) == data
    assert tree.write({1: b"\x0c"}) == b"\x05\x02\x0c" + data[3:]
    assert tree.write({3: encode(List(ThriftKind.I32, ()))}) == data[:8] + b"\x05\x00"


def test_a_replacement_keeps_everything_around_it():
    tree = parse(encode(Struct({1: NUMBERS, 2: ThriftBinary(b"abc"), 3: I32(9)})))
    entry = tree.field(1, 2)
    changed = parse(tree.write({entry: encode(I64(3)), tree.field(0, 2): encode(ThriftBinary(b"d" * 200))}))
    expected = Struct({**NUMBERS.fields, 2: I64(3)})
    assert changed.value(0) == Struct({1: expected, 2: ThriftBinary(b"d" * 200), 3: I32(9)})


def test_flags_and_nested_replacements_are_refused():
    tree = parse(encode(Struct({1: NUMBERS})))
    with pytest.raises(InvalidRequest):
        tree.write({tree.field(1, 3): b""})
    with pytest.raises(InvalidRequest):
        tree.write({1: b"\x00", 2: b"\x00"})


def test_bytes_after_the_struct_are_refused_unless_allowed():
    data = encode(NUMBERS)
    with pytest.raises(Malformed, match=f"byte {len(data)}"):
        parse(data + b"more")
    assert parse(data + b"more", trailing=True).size_bytes == len(data)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", Truncated),
        (b"\x15\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02\x00", Malformed),  # 65 bits
        (b"\x16" + b"\xff" * 10 + b"\x01\x00", Malformed),  # 11 bytes
        (b"\x15\xfe\xff\xff\xff\x1f\x00", Malformed),  # I32 out of range
        (b"\x14\x80\x80\x04\x00", Malformed),  # I16 out of range
        (b"\x19\x25\x00\xfe\xff\xff\xff\x1f\x00", Malformed),  # the same in a list
        (b"\x1e\x00", Malformed),  # no such kind
        (b"\x10\x00", Malformed),  # kind 0 with a delta
        (b"\x19\x1e\x00", Malformed),  # list of no such kind
        (b"\x19\x11\x03\x00", Malformed),  # neither true nor false
        (b"\x05\x80\x80\x04\x00\x00", Malformed),  # field id over 16 bits
        (b"\x05\xfe\xff\x03\x00\x15\x00\x00", Malformed),  # delta past 16 bits
        (b"\x18\xff\xff\xff\xff\x0f\x00", Truncated),  # length beyond the input
        (b"\x19\xfc\xff\xff\xff\xff\x0f\x00", Truncated),  # count beyond the input
        (b"\x19\x27" + b"\0" * 9, Truncated),  # doubles beyond the input
    ],
)
def test_bad_bytes_are_refused_with_their_place(data, error):
    with pytest.raises(error, match="byte"):
        parse(data)


@pytest.mark.parametrize("opening", [b"\x1c", b"\x19\x19"])
def test_nesting_is_limited_without_recursion(opening):
    for levels in (70, 5000):
        with pytest.raises(Malformed, match="deep"):
            parse(opening + b"\x1c" * levels + b"\x19" * levels)
    assert parse(b"\x1c" * 63 + b"\x00" * 64).value(0)
    with pytest.raises(Malformed, match="deep"):
        parse(b"\x1c" * 64 + b"\x00" * 65)


def test_lists_of_lists_are_read():
    value = Struct(
        {
            1: List(
                ThriftKind.LIST,
                (
                    List(ThriftKind.I32, (I32(1),)),
                    List(ThriftKind.STRUCT, (NUMBERS, Struct({}))),
                    List(ThriftKind.I32, ()),
                ),
            ),
            2: List(ThriftKind.LIST, (List(ThriftKind.LIST, (List(ThriftKind.LIST, ()),)),), is_set=True),
            3: I32(4),
        }
    )
    tree = parse(encode(value))
    assert tree.value(0) == value
    assert [tree.kind(entry) for entry in tree.children(0)] == [ThriftKind.LIST, ThriftKind.SET, ThriftKind.I32]


def test_a_field_that_occurs_twice_stays_but_cannot_be_looked_up():
    data = b"\x15\x02\x05\x02\x04\x00"
    tree = parse(data)
    assert len(tree.children(0)) == 2
    assert tree.write({}) == data
    with pytest.raises(Malformed, match="twice"):
        tree.fields(0)


def test_more_places_than_any_schema_are_refused():
    wide = b"".join(bytes((5,)) + encode(I16(n)) + b"\0" for n in range(5000)) + b"\0"
    with pytest.raises(Malformed, match="places"):
        parse(wide)


def test_places_of_earlier_inputs_do_not_count_against_later_ones():
    def wide(first: int) -> bytes:
        return b"".join(bytes((5,)) + encode(I16(n)) + b"\0" for n in range(first, first + 3000)) + b"\0"

    early = parse(wide(0))
    for first in (3000, 6000, 9000):
        assert len(parse(wide(first))) == 3001
    assert early.field(0, 2999) == 3000


@pytest.mark.parametrize("item", [b"\x0c\x00", b"\x08\x00", b"\x05\x00", b"\x01\x01", b"\x09\x05"])
def test_memory_is_a_small_multiple_of_the_input(item):
    count = 100_000
    data = b"\x19" + bytes((0xF0 | item[0],)) + b"\xa0\x8d\x06" + item[1:] * count + b"\x00"
    tracemalloc.start()
    parse(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 56 * len(data)


def test_an_input_over_two_gibibytes_is_refused(monkeypatch):
    monkeypatch.setattr(thrift, "MAX_INPUT_BYTES", 3)
    with pytest.raises(Malformed, match="too long"):
        parse(encode(NUMBERS))


def test_numbers_of_every_length_are_decoded():
    values = [sign * (1 << shift) for shift in range(63) for sign in (1, -1)] + [-(2**63), 2**63 - 1, 0]
    tree = parse(encode(Struct({1: List(ThriftKind.STRUCT, tuple(Struct({1: I64(value)}) for value in values))})))
    assert np.array_equal(tree.number[tree.select((1, ITEM, 1))], np.array(values))


@pytest.mark.parametrize(
    "data",
    [
        b"\x1b\x00\x00",  # empty
        b"\x1b\x02\x58\x02\x01a\x04\x01b\x00",  # numbers to text
        b"\x19\x2b\x00\x01\x1c\x01\x15\x02\x00\x00",  # a list of two maps, the second of flags to structs
    ],
)
def test_maps_survive_as_one_value(data: bytes):
    tree = parse(data)
    assert encode(tree.value(0)) == data
    assert tree.write({}) == data
    for length in range(len(data)):
        with pytest.raises((Truncated, Malformed)):
            parse(data[:length])


def test_fields_after_a_map_are_found():
    tree = parse(b"\x1b\x01\x55\x02\x04\x15\x0e\x00")
    found = tree.field(0, 2)
    assert found is not None
    assert tree.integer(found) == 7


def test_maps_inside_maps_are_bounded():
    with pytest.raises(Malformed, match="too deep"):
        parse(b"\x1b" + b"\x01\x5b\x02" * 100 + b"\x00\x00")
    with pytest.raises(Truncated, match="more pairs"):
        parse(b"\x1b\xff\xff\x03\x55\x00\x00")
