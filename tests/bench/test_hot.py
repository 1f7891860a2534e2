"""The benchmark of hot partitions runs small: every system has all rows, and every case has figures."""

from __future__ import annotations

from pathlib import Path

from bench.hot.__main__ import NAMES, run


def test_all_systems_commit_the_same_rows_and_every_case_is_measured(tmp_path: Path):
    found = run(tmp_path, commits=2, bulk_rows=3000, flat=8, fresh_seconds=0.05, names=NAMES)
    assert {one.system for one in found if one.case == "commit"} == set(NAMES)
    assert {one.case for one in found} == {"commit", "clients", "visible", "bulk", "read", "fresh", "flat"}
    assert all(one.value >= 0 for one in found)
