from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from underlay.api.lake import Lake, connect
from underlay.api.table import Table
from underlay.pm.convert.build import from_parquet


class Pair(NamedTuple):
    data: Path
    sidecar: Path
    table: pa.Table


@pytest.fixture
def trips(tmp_path: Path) -> Pair:
    """A Parquet file of four row groups, a null and an empty text in it, and its sidecar."""
    table = pa.table(
        {
            "n": pa.array(range(20), pa.int64()),
            "zone": pa.array(["a", None, "", "d", 'e"f'] * 4),
            "pickup": pa.array([i * 3_600_000_000 for i in range(20)], pa.timestamp("us", "UTC")),
        }
    )
    data, sidecar = tmp_path / "trips.parquet", tmp_path / "trips.pm"
    pq.write_table(table, data, row_group_size=5)
    sidecar.write_bytes(from_parquet(data))
    return Pair(data, sidecar, table)


TRIPS = """id,pickup,zone,fare,note
1,2024-01-01 00:10:00,JFK,52.5,
2,2024-01-02 01:00:00,LGA,30,"hello, there"
3,2024-02-01 09:00:00,JFK,,""
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, empty, with nothing in the environment that names a lake."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNDERLAY_LAKE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    return tmp_path


@pytest.fixture
def lake(place: Path) -> Lake:
    """A lake named by the current directory's underlay.toml."""
    (place / "underlay.toml").write_text('lake = "lake"\n')
    lake = connect(place / "lake")
    lake.initialise()
    return lake


@pytest.fixture
def taxi(lake: Lake, place: Path) -> Table:
    """taxi.trips with the three rows of trips.csv in version 1, in two partitions."""
    (place / "trips.csv").write_text(TRIPS)
    table = lake.create_table(
        "taxi.trips",
        "id bigint, pickup timestamp, zone string, fare double, note string",
        key=["id"],
        sort_by=["pickup"],
        partition_by=["month(pickup)"],
        comment="Yellow cabs",
    )
    table.append(
        pa.table(
            {
                "id": [1, 2, 3],
                "pickup": [datetime(2024, 1, 1, 0, 10), datetime(2024, 1, 2, 1), datetime(2024, 2, 1, 9)],
                "zone": ["JFK", "LGA", "JFK"],
                "fare": [52.5, 30.0, None],
                "note": [None, "hello, there", ""],
            }
        )
    )
    return table
