"""Files that another program cuts short while a process reads them: an error with the place, in a process that goes on.

A mapped file would kill the process (SIGBUS).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from underlay.errors import Damaged, Replaced, UnderlayError
from underlay.pm.convert.build import from_parquet
from underlay.pm.format.sidecar import decode
from underlay.pm.read.rows import read_batches

ROWS = 200_000


def mapped_below(folder: Path) -> list[str]:
    """The files of this folder that are in the process's memory."""
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if str(folder) in line]


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A Parquet file of many megabytes and four row groups."""
    path = tmp_path / "large.parquet"
    pq.write_table(rows(range(ROWS)), path, row_group_size=ROWS // 4, compression="none", use_dictionary=False)
    return path


def in_place(path: Path, size: int) -> None:
    """Cut the file, which stays the same file."""
    os.truncate(path, size)


def test_a_registered_file_that_is_cut_after_it_was_read_is_an_error(tmp_path: Path, large: Path):
    lake = underlay.connect(tmp_path / "lake", registry="none")
    table = lake.create_table(NAME, SCHEMA)
    table.register(large)
    table.append(rows([-1]))
    found = table.scan().to_arrow()
    assert mapped_below(tmp_path) == []
    in_place(large, 1000)
    assert found.num_rows == ROWS + 1
    assert found["id"].to_pylist()[ROWS // 2] == ROWS // 2
    with pytest.raises(Replaced, match=r"large\.parquet"):
        table.scan().to_arrow()
    assert ids(table, "id < 0") == [-1]


def test_segments_that_are_cut_under_an_open_table_are_an_error_where_more_of_them_is_needed(tmp_path: Path):
    root = tmp_path / "lake"
    with underlay.connect(root, registry="none") as lake:
        table = lake.create_table(NAME, SCHEMA)
        for number in range(120):
            table.append(rows([number]))
    table = underlay.connect(root, registry="none").table(NAME)
    assert table.scan(["id"], "id = 7").to_arrow()["id"].to_pylist() == [7]
    assert mapped_below(tmp_path) == []
    segments = sorted(root.glob("*/*/*/_index/segments/*"))
    assert segments
    for segment in segments:
        in_place(segment, 10)
    assert table.scan(["id"], "id = 8").to_arrow()["id"].to_pylist() == [8]  # from memory
    with pytest.raises(UnderlayError, match="segments"):
        table.scan(["value"], "value = 4").to_arrow()


def test_a_parquet_file_that_is_cut_while_it_is_read_through_its_sidecar_is_an_error(tmp_path: Path, large: Path):
    batches = iter(read_batches(decode(from_parquet(large)), large))
    assert next(batches).num_rows > 0
    assert mapped_below(tmp_path) == []
    in_place(large, 1000)
    with pytest.raises(Damaged, match=r"large\.parquet"):
        list(batches)


def cut_it(path: Path) -> None:
    in_place(path, path.stat().st_size // 2)


def replaced_by_rows(path: Path) -> None:
    """Written over in place, as `cp` and `rsync --inplace` do."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows([1, 2]), sink)
    path.write_bytes(sink.getvalue())


@pytest.mark.parametrize("harm", [cut_it, replaced_by_rows])
def test_an_own_file_that_is_written_over_is_an_error_of_every_engine(tmp_path: Path, harm: Callable[[Path], None]):
    lake = underlay.connect(tmp_path / "lake", registry="none")
    table = lake.create_table(NAME, SCHEMA)
    table.append(rows(range(1000)))
    (own,) = (tmp_path / "lake").glob("*/*/*/*.parquet")
    harm(own)
    for read in (
        lambda: table.scan().to_arrow(),
        lambda: lake.sql(f'select sum(value) from "{NAME.replace(".", chr(34) + "." + chr(34))}"').to_arrow(),
        lambda: table.delete("value = 7"),
    ):
        with pytest.raises(UnderlayError, match=own.name):
            read()
