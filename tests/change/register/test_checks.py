"""Files are registered into a table with checks when their rows pass them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay as ul
from underlay.errors import SchemaMismatch


@pytest.fixture
def table(tmp_path) -> ul.Table:
    lake = ul.connect(tmp_path / "lake", registry="none")
    made = lake.create_table("d.t", pa.schema([("id", pa.int64()), ("fare", pa.float64()), ("zone", pa.string())]))
    with made.evolve() as change:
        change.add_check("positive", "fare >= 0")
        change.add_check("short", "length(zone) < 4")
    made.append([{"id": 0, "fare": 1.0, "zone": "a"}])
    return made


def file(folder, name: str, fares, zones=None) -> str:
    fares = list(fares)
    rows = {"id": list(range(len(fares))), "fare": pa.array(fares, pa.float64()), "zone": zones or ["JFK"] * len(fares)}
    pq.write_table(pa.table(rows), folder / name, row_group_size=3)
    return str(folder / name)


def test_rows_that_pass_the_checks_are_registered(table, tmp_path):
    done = table.register(file(tmp_path, "a.parquet", [1.0, None, 0.0, 4.0, 5.0]), file(tmp_path, "b.parquet", []))
    assert (done.file_count, done.row_count) == (2, 5)
    assert len(table) == 6


@pytest.mark.parametrize(
    ("fares", "zones", "message"),
    [
        ([1.0, 2.0, 3.0, 4.0, -1.0], None, "the check positive fails in row 4"),
        ([1.0, float("nan")], ["JFK", "Queens"], "the check short fails in row 1"),
    ],
)
def test_one_row_that_contradicts_a_check_refuses_all_files(table, tmp_path, fares, zones, message):
    files = [file(tmp_path, "good.parquet", [1.0]), file(tmp_path, "bad.parquet", fares, zones)]
    with pytest.raises(SchemaMismatch) as refused:
        table.register(*files)
    assert message in str(refused.value)
    assert "bad.parquet" in str(refused.value)
    assert len(table) == 1


def test_a_column_from_the_path_is_checked(table, tmp_path):
    for zone in ("EWR", "Queens"):
        (tmp_path / f"zone={zone}").mkdir()
        pq.write_table(pa.table({"id": [1], "fare": [1.0]}), tmp_path / f"zone={zone}" / "a.parquet")
    with pytest.raises(SchemaMismatch, match="the check short fails in row 0"):
        table.register(tmp_path / "zone=Queens")
    assert table.register(tmp_path / "zone=EWR").row_count == 1


def test_a_refreshed_file_is_checked_anew(table, tmp_path):
    name = file(tmp_path, "a.parquet", [1.0])
    table.register(name)
    file(tmp_path, "a.parquet", [-1.0, 2.0])
    with pytest.raises(SchemaMismatch, match="the check positive fails"):
        table.register(name, refresh=True)
    file(tmp_path, "a.parquet", [2.0, 2.0])
    assert table.register(name, refresh=True).replaced_count == 1
