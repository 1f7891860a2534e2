"""Verification of a sidecar against the values of its file."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.pm.conftest import Lie
from underlay.parquet.footer.tail import load_footer
from underlay.parquet.write.bloom import build, hash_values
from underlay.pm.format.blocks import bloom_places
from underlay.pm.format.checksum import checksum
from underlay.pm.format.sidecar import decode
from underlay.pm.verify import verify

# Lies that the footer tells as well, so that only the values tell them apart.


def footer_and_sidecar(folder: Path, table: pa.Table, offset: int, kind: str, value: float, old: bytes) -> Lie:
    """The same wrong bytes in the Parquet footer's statistics and in the sidecar."""
    lie = Lie(folder, table, bloom_filter_options=None)
    loaded = load_footer(lie.data)
    wrong = struct.pack(f"<{kind}", value)
    assert loaded.raw.count(old) > 0
    data = lie.data.read_bytes()
    lie.data.write_bytes(data[: loaded.tail.footer_offset] + loaded.raw.replace(old, wrong) + data[-8:])
    return lie.put(lie.chunk(0, 0, "min_stat") + offset, kind, value)


@pytest.mark.parametrize(("offset", "value", "side"), [(0, 1001, "min"), (8, 1004, "max")])
def test_a_value_outside_a_bound_that_the_footer_has_too_is_found(tmp_path: Path, offset: int, value: int, side: str):
    table = pa.table({"n": pa.array([1000, 1003, 1005])})
    old = struct.pack("<q", 1000 if offset == 0 else 1005)
    lie = footer_and_sidecar(tmp_path, table, offset, "q", value, old).mend()
    assert lie.problems() == []
    (problem,) = lie.problems(deep=True)
    assert f"a value lies outside the {side}" in str(problem)
    assert str(value) in str(problem)


def unknown_counts(tmp_path: Path, count: int) -> Lie:
    """A sidecar whose file states the same wrong null count."""
    lie = Lie(tmp_path, pa.table({"n": pa.array([1, None, 3])}), bloom_filter_options=None)
    loaded = load_footer(lie.data)
    entry = loaded.footer.chunks.statistics
    assert entry.null_count[0, 0] == 1
    # Compact Thrift: field 3 after field 2 is absent, an i64 as a zigzag varint.
    old = b"\x36\x02" if b"\x36\x02" in loaded.raw else b"\x16\x02"
    assert loaded.raw.count(old) == 1
    data = lie.data.read_bytes()
    raw = loaded.raw.replace(old, old[:1] + bytes([2 * count]))
    lie.data.write_bytes(data[: loaded.tail.footer_offset] + raw + data[-8:])
    return lie.put(lie.chunk(0, 0, "null_count"), "Q", count)


@pytest.mark.parametrize("count", [0, 2])
def test_a_null_count_that_the_footer_has_too_is_found(tmp_path: Path, count: int):
    lie = unknown_counts(tmp_path, count).mend()
    assert lie.problems() == []
    (problem,) = lie.problems(deep=True)
    assert "null_count is not the number of nulls" in str(problem)


def test_a_filter_that_misses_values_is_found_though_the_file_has_it_too(lie: Lie):
    places = bloom_places(lie.sidecar, 1)
    begin, size = int(places.begins[0]), int(places.sizes[0])
    stored, wrong = bytes(lie.bytes[begin : begin + size]), build(hash_values([b"x"]), size_bytes=size)
    lie.data.write_bytes(lie.data.read_bytes().replace(stored, wrong, 1))
    lie.bytes[begin : begin + size] = wrong
    assert lie.mend().problems() == []
    (problem,) = lie.problems(deep=True)
    assert "misses values that are there" in str(problem)
    assert "column text" in str(problem)


def test_a_filter_with_one_zero_for_both_and_without_nan_is_sound(lie: Lie):
    places = bloom_places(lie.sidecar, 2)
    for row_group, values in enumerate(([0.0, 1.0], [0.0, 2.0])):
        begin, size = int(places.begins[row_group]), int(places.sizes[row_group])
        stored, folded = bytes(lie.bytes[begin : begin + size]), build(hash_values(np.array(values)), size_bytes=size)
        lie.data.write_bytes(lie.data.read_bytes().replace(stored, folded, 1))
        lie.bytes[begin : begin + size] = folded
    assert lie.mend().problems(deep=True) == []


def test_a_bound_marked_as_exact_that_does_not_occur_is_found(fixtures: Path, tmp_path: Path):
    folder = fixtures / "questdb" / "10.0.0" / "strings"
    sidecar = decode((folder / "_pm").read_bytes())
    assert verify(folder / "_pm", folder / "data.parquet", deep=True) == []
    flags = sidecar.chunks["stat_flags"]
    row_group, column = (int(i) for i in np.argwhere((flags & 0b101000) == 0b1000)[0])
    data = bytearray(sidecar.data)
    data[int(sidecar.block_offsets[row_group]) + 8 + 64 * column + 2] |= 0b100000
    struct.pack_into("<I", data, len(data) - 8, checksum(data, len(data) - 8))
    path = tmp_path / "_pm"
    path.write_bytes(data)
    (problem,) = verify(path, folder / "data.parquet", deep=True)
    assert "the max is marked as exact but does not occur" in str(problem)


def test_pages_that_do_not_decode_are_found(lie: Lie):
    data = bytearray(lie.data.read_bytes())
    begin = int(lie.sidecar.chunks["begin"][1, 0])
    data[begin : begin + 16] = b"\xff" * 16
    lie.data.write_bytes(data)
    assert lie.problems() == []
    assert "row group 1: does not decode" in str(lie.problems(deep=True)[0])


def test_nested_columns_of_any_shape_are_checked_down_to_their_values(tmp_path: Path):
    pair = pa.struct([("x", pa.int64()), ("y", pa.string())])
    fields = [
        pa.field("lists", pa.list_(pa.list_(pa.int64())), nullable=False),
        pa.field("pairs", pa.list_(pair), nullable=False),
        pa.field("doubles", pa.list_(pa.list_(pa.float64())), nullable=False),
        pa.field("pair", pair),
    ]
    rows = {
        "lists": [[[1], None, []], [], [[None, 2]]],
        "pairs": [[{"x": 1, "y": "a"}, None], [], [None]],
        "doubles": [[[1.5], None, []], [], [[None, 2.5]]],
        "pair": [{"x": 1, "y": None}, None, {"x": None, "y": "b"}],
    }
    table = pa.table([pa.array(rows[f.name], f.type) for f in fields], schema=pa.schema(fields))
    lie = Lie(tmp_path, table, bloom_filter_options=None)
    assert lie.problems(deep=True) == []
