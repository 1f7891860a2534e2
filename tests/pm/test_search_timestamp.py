"""Finding a timestamp among row groups, against the rule written out."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pm.examples import NUMBER, THREE, block, version
from underlay.errors import InvalidRequest
from underlay.pm.convert.build import from_parquet
from underlay.pm.format.encode import create
from underlay.pm.format.sidecar import Sidecar, decode
from underlay.pm.format.values import Header
from underlay.pm.prune.prune import search_timestamp

Group = tuple[int, int, int, bool]
"""Rows, minimum, maximum, and whether the sidecar has the bounds."""


def made(groups: list[Group]) -> Sidecar:
    blocks = []
    for rows, low, high, is_known in groups:
        made = block(0, rows=rows)
        made.chunks["min_stat"][0], made.chunks["max_stat"][0] = low % 2**64, high % 2**64
        if not is_known:
            made.chunks["stat_flags"][0] = 0
        blocks.append(made)
    return decode(create(THREE, blocks, version()))


def reference(groups: list[Group], value: int) -> int:
    for index, (rows, low, high, _) in enumerate(groups):
        if rows == 0:
            continue
        if value < low:
            return 2 * index + 1
        if value < high:
            return 2 * (index + 1)
    return 2 * len(groups) + 1


def random_groups(chooser: random.Random) -> list[Group]:
    groups, at = [], chooser.randrange(-50, 50)
    for _ in range(chooser.randrange(7)):
        low = at + chooser.choice([0, 0, 1, 5])
        at = low + chooser.choice([0, 0, 1, 9])
        groups.append((chooser.choice([0, 3, 3, 3]), low, at, chooser.random() < 0.7))
    return groups


def test_the_answer_is_that_of_a_walk_over_all_row_groups():
    chooser = random.Random(7)
    for _ in range(300):
        groups = random_groups(chooser)
        sidecar = made(groups)
        for value in range(-60, 130, 3):
            assert search_timestamp(sidecar, value, lambda g, groups=groups: groups[g][1:3]) == reference(groups, value)


def test_before_inside_between_and_after():
    sidecar = made([(3, 10, 20, True), (3, 30, 40, True)])
    expected = {9: 1, 10: 2, 19: 2, 20: 3, 29: 3, 30: 4, 39: 4, 40: 5, 99: 5}
    assert {value: search_timestamp(sidecar, value) for value in expected} == expected


def test_row_groups_without_rows_are_skipped_whatever_their_bounds():
    sidecar = made([(0, 10, 20, False), (3, 30, 40, True), (0, 0, 99, True)])
    assert [search_timestamp(sidecar, value) for value in (15, 35, 40)] == [3, 4, 7]
    assert search_timestamp(made([(0, 0, 9, True)]), 5) == 3
    assert search_timestamp(made([]), 5) == 1


def test_bounds_are_decoded_only_where_the_answer_depends_on_them():
    groups = [(3, 10, 20, True), (3, 30, 40, False), (3, 50, 60, True), (3, 70, 80, False)]
    asked: list[int] = []

    def decode_bounds(row_group: int) -> tuple[int, int]:
        asked.append(row_group)
        return groups[row_group][1:3]

    sidecar = made(groups)
    assert search_timestamp(sidecar, 15, decode_bounds) == 2
    assert asked == []
    assert search_timestamp(sidecar, 45, decode_bounds) == 5
    assert asked == [1]


def test_missing_bounds_without_a_decoder_are_refused_only_when_needed():
    sidecar = made([(3, 10, 20, True), (3, 30, 40, False)])
    assert search_timestamp(sidecar, 15) == 2
    with pytest.raises(InvalidRequest, match=r"row group 1 .*decode_bounds"):
        search_timestamp(sidecar, 35)


def test_values_beyond_64_bits_are_before_or_after_everything():
    sidecar = made([(3, -(2**63), 2**63 - 1, True)])
    assert search_timestamp(sidecar, -(2**70)) == 1
    assert search_timestamp(sidecar, 2**70) == 3
    assert search_timestamp(sidecar, 0) == 2


def test_a_sidecar_without_a_designated_timestamp_is_refused():
    with pytest.raises(InvalidRequest, match="no designated timestamp"):
        search_timestamp(decode(create(Header(columns=(NUMBER,)), [], version())), 0)


def test_backfilled_bounds_are_right_even_when_the_file_only_claims_to_be_sorted(tmp_path: Path):
    path = tmp_path / "data.parquet"
    schema = pa.schema([pa.field("ts", pa.timestamp("us"), nullable=False)])
    table = pa.table({"ts": pa.array([5, 1, 9, 3], pa.timestamp("us"))}, schema=schema)
    sorting = [pq.SortingColumn(0)]
    pq.write_table(table, path, sorting_columns=sorting, write_statistics=False)
    sidecar = decode(from_parquet(path))
    assert sidecar.header.designated_timestamp == 0
    assert [search_timestamp(sidecar, value) for value in (0, 1, 8, 9)] == [1, 2, 2, 3]


def test_genuine_timestamps_are_found_in_their_row_groups(fixtures: Path):
    for folder in ("three_groups", "chain3", "nanos"):
        data = (fixtures / "questdb" / "10.0.0" / folder / "_pm").read_bytes()
        sidecar = decode(data)
        chunks = sidecar.column_chunks(sidecar.header.designated_timestamp)
        bounds = zip(chunks["min_stat"].tolist(), chunks["max_stat"].tolist(), strict=True)
        for row_group, (low, high) in enumerate(bounds):
            inside = 2 * (row_group + 1)
            assert search_timestamp(sidecar, low - 1) < inside
            assert (search_timestamp(sidecar, low) == inside) == (low < high)
            assert search_timestamp(sidecar, high) > inside
