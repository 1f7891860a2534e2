"""Verification: sound sidecars have no problem, and each kind of lie is found."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.genuine import conversions, label, sidecars
from tests.pm.conftest import Lie
from tests.pm.examples import patched, sidecar_bytes
from underlay.errors import ChecksumMismatch, Inconsistent, Malformed, NotFound
from underlay.parquet.footer.tail import load_footer
from underlay.pm.convert.build import from_parquet
from underlay.pm.convert.footer import convert
from underlay.pm.format.blocks import bloom_places
from underlay.pm.format.checksum import checksum
from underlay.pm.format.footers import walk
from underlay.pm.format.layout import DESCRIPTOR, HEADER
from underlay.pm.format.sidecar import decode
from underlay.pm.verify import verify

WITH_PARQUET = [
    (path, path.with_name(f"data.parquet{path.name.removeprefix('_pm')}"))
    for path in sidecars()
    if path.name.startswith("_pm") and path.with_name(f"data.parquet{path.name.removeprefix('_pm')}").exists()
]
LARGE = "large_string_map"


def test_what_questdbs_converter_makes_is_sound():
    assert {label(made): verify(made, data) for data, made, _ in conversions() if verify(made, data)} == {}


def test_what_questdbs_servers_write_is_sound_but_for_their_known_fault():
    found = {label(path) for path, data in WITH_PARQUET if verify(path, data)}
    assert found == {
        f"questdb/{version}/chain_bloom/_pm{state}" for version in ("9.4.3", "10.0.0") for state in ("", ".1", ".2")
    }


def test_genuine_files_are_sound_down_to_their_values():
    chosen = [(made, data) for data, made, _ in conversions()[::9] if LARGE not in data.name] + WITH_PARQUET[::7]
    assert {label(path): found for path, data in chosen if (found := verify(path, data, deep=True))}.keys() <= {
        label(path) for path, _ in WITH_PARQUET if path.parent.name == "chain_bloom"
    }


def test_filters_on_the_wrong_row_group_are_found_with_and_without_the_values(fixtures: Path):
    folder = fixtures / "questdb" / "10.0.0" / "chain_bloom"
    shallow = [str(problem) for problem in verify(folder / "_pm", folder / "data.parquet")]
    assert [line for line in shallow if "row group 1, column id" in line and "not the Parquet file's" in line]
    deep = [str(problem) for problem in verify(folder / "_pm", folder / "data.parquet", deep=True)]
    assert [line for line in deep if "row group 1, column id" in line and "misses values" in line]


def test_a_sidecar_as_it_was_made_is_sound(lie: Lie):
    assert lie.problems(deep=True) == []
    assert lie.problems(parquet=False) == []


@pytest.mark.parametrize(
    ("field", "kind", "value"),
    [
        ("codec", "B", 6),
        ("encodings", "B", 0x3F),
        ("num_values", "Q", 4),
        ("begin", "Q", 5),
        ("size", "Q", 7),
        ("null_count", "Q", 0),
        ("null_count", "Q", 2),
        ("distinct_count", "Q", 9),
    ],
)
def test_a_chunk_field_that_differs_from_the_footer_is_found(lie: Lie, field: str, kind: str, value: int):
    if field == "distinct_count":
        flags = lie.chunk(1, 0, "stat_flags")
        lie.put(flags, "B", lie.bytes[flags] | 64)
    found = lie.put(lie.chunk(1, 0, field), kind, value).found()
    assert field in found
    assert "row group 1, column n" in found
    assert f"found {value}" in found


@pytest.mark.parametrize(("field", "side"), [("min_stat", "min"), ("max_stat", "max")])
def test_an_inline_bound_that_differs_is_found(lie: Lie, field: str, side: str):
    assert f"{side} differs" in lie.put(lie.chunk(0, 0, field), "q", 77).found()


@pytest.mark.parametrize(("row_group", "field", "side"), [(0, "min_stat", "min"), (1, "max_stat", "max")])
def test_a_bound_out_of_line_that_differs_is_found(lie: Lie, row_group: int, field: str, side: str):
    slot = int.from_bytes(lie.bytes[(at := lie.chunk(row_group, 1, field)) : at + 8], "little")
    begin = int(lie.sidecar.region_offsets[row_group]) + (slot >> 16)
    found = lie.put(begin + 3, "B", 0xFF).found()
    assert f"{side} differs" in found
    assert f"row group {row_group}, column text" in found


def test_a_bound_that_the_footer_does_not_have_is_found(tmp_path: Path):
    lie = Lie(tmp_path, write_statistics=False)
    lie.put(lie.chunk(0, 0, "stat_flags"), "H", 0x0803 | 4)
    assert "min differs" in lie.found()


def test_a_lost_statistic_is_found(lie: Lie):
    lie.put(lie.chunk(0, 0, "stat_flags"), "B", 0)
    found = [str(problem) for problem in lie.mend().problems()]
    assert [text.split(": ")[-1].split(" differs")[0] for text in found] == ["null_count", "min", "max"]
    assert all("found none" in text for text in found)


def test_a_designated_timestamp_that_is_not_the_files_is_found(lie: Lie):
    lie.put(16, "i", 1)
    assert any("designated_timestamp" in str(problem) for problem in lie.mend().problems())


def test_blocks_that_overlap_are_found(tmp_path: Path):
    data = sidecar_bytes(blocks=3)
    footer = decode(data).footer.offset
    path = tmp_path / "_pm"
    path.write_bytes(patched(data, footer + 44, "I", int(decode(data).block_offsets[0] >> 3)))
    (problem,) = verify(path)
    assert "overlaps block" in str(problem)


def test_a_changed_bloom_filter_is_found(lie: Lie):
    begin = int(bloom_places(lie.sidecar, 0).begins[1])
    lie.bytes[begin : begin + 32] = bytes(32)
    assert "bloom filter is not the Parquet file's" in lie.found()
    deep = [str(problem) for problem in lie.problems(deep=True)]
    assert "misses values that are there" in deep[-1]


def test_a_wrong_place_of_an_external_filter_is_found(lie: Lie):
    lie.bytes = bytearray(from_parquet(lie.data, blooms="external"))
    assert lie.problems() == []
    found = lie.put(lie.sidecar.sections.bloom_offset, "Q", 1234).found()
    assert "place of the bloom filter" in found
    assert "1234" in found


def test_the_sidecar_of_another_file_is_found(lie: Lie, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    longer = Lie(other, pa.table({"n": list(range(100))}))
    lie.bytes = longer.bytes
    (problem,) = lie.problems()
    assert isinstance(problem, Inconsistent)


def test_a_parquet_file_that_is_shorter_missing_or_no_parquet_is_found(lie: Lie):
    whole = lie.data.read_bytes()
    lie.data.write_bytes(whole[:-1])
    assert "shorter" in str(lie.problems()[0])
    lie.data.write_bytes(whole[:-1] + b"X")
    assert "not a Parquet file" in str(lie.problems()[0])
    lie.data.unlink()
    assert "no such file" in str(lie.problems()[0])


def test_bytes_behind_the_parquet_file_do_not_matter(lie: Lie):
    lie.data.write_bytes(lie.data.read_bytes() + b"a version that was never committed")
    assert lie.problems(deep=True) == []


def test_a_footer_that_is_elsewhere_is_found(lie: Lie):
    at = lie.sidecar.footer.offset
    offset, length = lie.sidecar.footer.parquet_footer_offset, lie.sidecar.footer.parquet_footer_length
    lie.put(at, "Q", offset - 1).put(at + 8, "I", length + 1)
    assert "not where the sidecar says" in lie.found()


@pytest.mark.parametrize(
    ("field", "kind", "value"),
    [
        ("type", "i", 8),
        ("physical_type", "B", 5),
        ("fixed_byte_length", "i", 4),
        ("max_def_level", "B", 0),
        ("max_rep_level", "B", 1),
        ("name_length", "I", 0),
    ],
)
def test_a_column_that_is_stored_in_another_way_is_found(lie: Lie, field: str, kind: str, value: int):
    at = HEADER.size_bytes + DESCRIPTOR.offset(field)
    assert "different columns" in lie.put(at, kind, value).found()


def test_another_number_of_columns_or_row_groups_is_found(lie: Lie, tmp_path: Path):
    loaded = load_footer(lie.data)
    other = tmp_path / "other"
    other.mkdir()
    table = pq.read_table(lie.data)
    fewer = load_footer(Lie(other, table.select(["n", "text"])).data).footer
    place = loaded.tail.footer_offset, loaded.tail.footer_length
    for footer, words in (
        (fewer, "number of columns"),
        (load_footer(Lie(other, table, row_group_size=2).data).footer, "row groups"),
    ):
        lie.bytes = bytearray(convert(footer, place[0]))
        lie.put(lie.sidecar.footer.offset + 8, "I", place[1])
        assert words in lie.found()


def test_another_number_of_rows_is_found(lie: Lie):
    assert "row groups (rows)" in lie.put(int(lie.sidecar.block_offsets[1]), "Q", 4).found()


def test_a_chunk_outside_the_file_is_found(lie: Lie):
    lie.put(lie.chunk(1, 0, "size"), "Q", 1 << 40)
    assert "does not lie before the Parquet footer" in lie.found()


@pytest.mark.parametrize(("at", "what"), [("codec", "codec"), ("type", "physical type")])
def test_numbers_that_do_not_exist_are_found_without_the_parquet_file(lie: Lie, at: str, what: str):
    place = lie.chunk(1, 2, "codec") if at == "codec" else 32 + 32 * 2 + DESCRIPTOR.offset("physical_type")
    (problem,) = lie.put(place, "B", 9).mend().problems(parquet=False)
    assert isinstance(problem, Malformed)
    assert f"no such {what}" in str(problem)
    assert "real" in str(problem)


def test_a_wrong_checksum_is_found_and_ends_the_search(lie: Lie):
    lie.put(lie.chunk(0, 0, "min_stat"), "q", 77)
    (problem,) = lie.problems(deep=True)
    assert isinstance(problem, ChecksumMismatch)


def test_a_wrong_checksum_of_an_older_version_is_found(fixtures: Path, tmp_path: Path):
    data = bytearray((fixtures / "questdb" / "10.0.0" / "chain3" / "_pm").read_bytes())
    newest, *older = walk(data, decode(bytes(data)).size)
    assert len(older) == 3
    for footer in older:
        changed = bytearray(data)
        changed[footer.crc_offset] ^= 1
        struct.pack_into("<I", changed, newest.crc_offset, checksum(changed, newest.crc_offset))
        decode(bytes(changed))  # the newest version alone is sound
        path = tmp_path / "_pm"
        path.write_bytes(changed)
        (problem,) = verify(path)
        assert f"checksum at byte {footer.crc_offset}" in str(problem)


def test_a_damaged_or_missing_sidecar_is_told(lie: Lie):
    lie.path.write_bytes(lie.bytes[:-1])
    assert "shorter than its committed size" in str(verify(lie.path)[0])
    lie.path.unlink()
    with pytest.raises(NotFound):
        verify(lie.path)
