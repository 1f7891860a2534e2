from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay as ul
from tests.contract.worlds import delete_positions, rename_column
from underlay.api.table import Table
from underlay.spark.files.file_groups import FileGroups, Group
from underlay.spark.files.read_schema import BY_NAME

pytestmark = pytest.mark.local_only


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two old files, one with a deleted row, two registered ones, in the lake's store and elsewhere, and a new file."""
    found = ul.connect(tmp_path / "lake").create_table("a.b", pa.schema([("id", pa.int64()), ("x", pa.string())]))
    rows = pa.table({"id": [1, 2, 3], "x": ["a", "b", "c"]})
    found.append(rows)
    found.append(rows)
    for folder in (tmp_path / "lake" / "in", tmp_path / "other"):
        folder.mkdir()
        pq.write_table(rows, folder / "file.parquet")
        found.register((folder / "file.parquet").as_uri())
    delete_positions(found, {1: [0]})
    rename_column(found, "x", "y")
    found.append(rows.rename_columns(["id", "y"]))
    return found


def file_count(table: Table, groups: FileGroups, group: Group) -> int:
    parts = table.snapshot().parts()
    return sum(int(groups.is_in(group, part, np.arange(part.segment.file_count)).sum()) for part in parts)


def test_files_that_are_read_alike_are_one_group(table: Table):
    groups = FileGroups(table.snapshot(), lambda store: True)
    counts = {
        (group.is_registered, group.has_deletes, group.reading and group.reading.is_by_name): (
            file_count(table, groups, group)
        )
        for group in groups.size_bytes
    }
    assert counts == {
        (False, False, False): 1,
        (False, True, False): 1,
        (True, False, False): 2,
        (False, False, True): 1,
    }
    assert sum(groups.size_bytes.values()) == sum(file.size_bytes for file in table.snapshot().files())


def test_store_that_spark_cannot_reach_is_left_to_the_ranged_reader(table: Table):
    asked = []
    groups = FileGroups(table.snapshot(), lambda store: bool(asked.append(store)))
    assert set(asked) == {table.snapshot().store.url, "file://"}
    assert file_count(table, groups, Group(reading=None)) == 2


def test_every_file_is_in_one_group(table: Table):
    snapshot = table.snapshot()
    groups = FileGroups(snapshot, lambda store: True)
    for part in snapshot.parts():
        every = np.arange(part.segment.file_count)
        assert sum(groups.is_in(group, part, every).astype(int) for group in groups.size_bytes).tolist() == [1] * len(
            every
        )


def test_table_without_files_has_no_group(tmp_path: Path):
    table = ul.connect(tmp_path).create_table("a.b", pa.schema([("id", pa.int64())]))
    assert FileGroups(table.snapshot(), lambda store: True).size_bytes == {}


def test_group_of_the_newest_files_is_read_by_name(table: Table):
    groups = FileGroups(table.snapshot(), lambda store: True)
    newest = list(table.snapshot().files())[-1]
    assert groups.size_bytes[Group(reading=BY_NAME)] == newest.size_bytes
