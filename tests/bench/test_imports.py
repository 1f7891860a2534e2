"""The comparison of imports runs, and every way has all rows."""

from __future__ import annotations

from pathlib import Path

from bench.imports.__main__ import run_round


def test_each_way_makes_a_table_of_all_files(tmp_path: Path) -> None:
    found = run_round(tmp_path / "round", 5)
    assert set(found) == {"underlay", "delta", "pyiceberg", "underlay from delta", "underlay from iceberg"}
