"""A dump accounts for every byte."""

from __future__ import annotations

import pytest

from tests.genuine import sidecars
from tests.pm.examples import INLINE_EXACT, TEXT, TIMESTAMP, block, patched, version
from tests.pm.format.test_sidecar import FULL_HEADER, full_sidecar
from underlay.pm.dump import Line, dump
from underlay.pm.format.blocks import empty_chunks
from underlay.pm.format.encode import append, create
from underlay.pm.format.sidecar import decode
from underlay.pm.format.values import Header, SidecarBlock


def check_cover(lines: list[Line], size: int) -> None:
    """Each byte up to `size` belongs to one line."""
    at = 0
    for line in lines:
        assert line.offset == at, line
        assert line.size >= 0
        at += line.size
    assert at == size


DEAD_TAILS = {"chain_dead_tail/_pm", "chain_dead_tail/_pm.4"}
"""Genuine sidecars with bytes that no version refers to; those of `synthetic` have some on purpose."""


@pytest.mark.parametrize("version", ["9.4.3", "10.0.0"])
def test_every_byte_of_a_genuine_sidecar_is_in_one_line(version: str):
    paths = [path for path in sidecars() if f"/{version}/" in str(path)]
    assert len(paths) > 200
    with_unused = set()
    for path in paths:
        sidecar = decode(path.read_bytes())
        lines = dump(sidecar)
        check_cover(lines, sidecar.size)
        if any(line.field == "unused" for line in lines) and path.parent.name != "synthetic":
            with_unused.add(f"{path.parent.name}/{path.name}")
    assert with_unused == (DEAD_TAILS if version == "10.0.0" else set())


def worked_example() -> bytes:
    """The example of one column and one row group whose bytes are known by hand."""
    chunks = empty_chunks(1)
    chunks["codec"], chunks["encodings"] = 7, 4
    chunks["stat_flags"], chunks["stat_sizes"] = INLINE_EXACT, 0x88
    chunks["num_values"], chunks["min_stat"], chunks["max_stat"] = 3, 1000, 3000
    chunks["begin"], chunks["size"] = 4, 90
    header = Header(columns=(TIMESTAMP,), designated_timestamp=0, sorting=(0,))
    return create(header, [SidecarBlock(num_rows=3, chunks=chunks)], version())


def test_the_lines_of_a_worked_example_are_right():
    lines = {line.field: (line.offset, line.size, line.value) for line in dump(decode(worked_example()))}
    expected = {
        "header.committed_size": (0, 8, "196"),
        "header.feature_flags": (8, 8, "0x4 SORTING_IS_DTS_ASC"),
        "header.designated_timestamp": (16, 4, "0"),
        "header.column_count": (24, 4, "1"),
        "column[0].name_offset": (32, 8, "64"),
        "column[0].type": (44, 4, "0x20008 TIMESTAMP (designated)"),
        "column[0].physical_type": (60, 1, "2 INT64"),
        "column[0].name": (64, 2, "'ts'"),
        "padding": (66, 6, "000000000000"),
        "block@72.num_rows": (72, 8, "3"),
        "block@72.chunk[0].codec": (80, 1, "7 LZ4_RAW"),
        "block@72.chunk[0].encodings": (81, 1, "0x4 DELTA_BINARY_PACKED"),
        "block@72.chunk[0].stat_sizes": (83, 1, "0x88"),
        "block@72.chunk[0].num_values": (88, 8, "3"),
        "block@72.chunk[0].min_stat": (128, 8, "0x3e8"),
        "block@72.chunk[0].max_stat": (136, 8, "0xbb8"),
        "footer@144.parquet_footer_offset": (144, 8, "500"),
        "footer@144.parquet_footer_length": (152, 4, "200"),
        "footer@144.row_group_count": (156, 4, "1"),
        "footer@144.previous_size": (168, 8, "0"),
        "footer@144.feature_flags": (176, 8, "0x0"),
        "footer@144.block[0]": (184, 4, "9 (byte 72)"),
        "footer@144.length": (192, 4, "48"),
    }
    assert {field: lines[field] for field in expected} == expected
    assert lines["footer@144.checksum"][:2] == (188, 4)


def test_all_sections_have_lines():
    data = full_sidecar()
    lines = dump(decode(data))
    check_cover(lines, len(data))
    values = {line.field: line.value for line in lines}
    at = f"footer@{decode(data).footer.offset}"
    first = f"block@{int(decode(data).block_offsets[0])}"
    assert values["squash_tracker"] == "5"
    assert [values[f"sorting[{i}]"] for i in range(2)] == ["0", "1"]
    assert [values["bloom_columns.count"], values["bloom_columns[0]"], values["bloom_columns[1]"]] == ["2", "1", "2"]
    assert values[f"{first}.chunk[2].min"] == b"a long bound, out of line".hex()
    assert values[f"{first}.chunk[1].bloom.length"] == "32"
    assert values[f"{first}.chunk[1].bloom.bitset"] == bytes(range(32)).hex()
    assert values[f"{first}.chunk[2].bloom.bitset"] == f"{'00' * 32}… 64 bytes"
    assert values[f"{at}.seq_txn"] == "3"
    assert values[f"{at}.scratchpad.count"] == "2"
    assert values[f"{at}.scratchpad[1]"] == "code 2: 7979"
    assert values[f"{at}.bloom[2][1]"].endswith(")")


def test_external_filters_are_shown_as_places_in_the_parquet_file():
    header = Header(columns=(TIMESTAMP, TEXT), bloom_columns=(1,), external_blooms=True)
    chunks = SidecarBlock(num_rows=1, chunks=empty_chunks(2))
    data = create(header, [chunks, chunks], version(external_blooms=(((99, 32),), ((0, 0),))))
    lines = dump(decode(data))
    check_cover(lines, len(data))
    assert [line.value for line in lines if ".bloom[" in line.field] == ["bytes 99 + 32 of the Parquet file", "none"]


def test_all_versions_are_shown_and_blocks_that_they_share_once():
    data = create(FULL_HEADER, [block(0), block(1)], version())
    tail = append(decode(data), [0, block(7)], version(900, extra=b"later", other_flags=1 << 20))
    longer = patched(data + tail.data, 0, "Q", tail.size)
    lines = dump(decode(longer))
    check_cover(lines, len(longer))
    assert [line.field for line in lines if line.field.endswith(".num_rows")] == [
        f"block@{offset}.num_rows" for offset in (*decode(data).block_offsets, decode(longer).block_offsets[1])
    ]
    assert next(line.value for line in lines if line.field.endswith(".extra")) == b"later".hex()


def test_bytes_that_no_version_refers_to_are_unused():
    data = create(FULL_HEADER, [block(0)], version())
    dead = b"a version that was never committed"
    tail = append(decode(data + dead), [0], version(900), base=len(data) + len(dead))
    longer = patched(data + dead + tail.data, 0, "Q", tail.size)
    lines = dump(decode(longer))
    check_cover(lines, len(longer))
    assert next(line for line in lines if line.field == "unused")[:2] == (len(data), len(dead))
