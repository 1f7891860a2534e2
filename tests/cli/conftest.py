from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from underlay.pm.build import from_parquet


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
