"""A small table with hot partitions, and rows for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import underlay as ul
from underlay.api.hot_writer import HotTableWriter
from underlay.api.lake import Lake
from underlay.api.table import Table

SECOND = 1_000_000
DAY = 86_400 * SECOND
START = 19_723 * DAY  # 2024-01-01
SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("zone", pa.string()), ("fare", pa.float64())])


def trips(times: Sequence[int], first_id: int = 0) -> pa.Table:
    """Rows with these times, in seconds since the first day; ids count from `first_id`."""
    count = len(times)
    moments = START + np.array(times, np.int64) * SECOND
    return pa.table(
        {
            "ts": pa.array(moments, pa.timestamp("us")),
            "id": np.arange(first_id, first_id + count),
            "zone": [("JFK", "LGA", None)[(first_id + at) % 3] for at in range(count)],
            "fare": [float("nan") if (first_id + at) % 50 == 49 else (first_id + at) / 2 for at in range(count)],
        },
        schema=SCHEMA,
    )


@dataclass
class Place:
    """A lake and its directory of hot partitions."""

    folder: Path

    @property
    def hot(self) -> Path:
        return self.folder / "hot"

    @property
    def partitions(self) -> Path:
        return self.hot / "taxi" / "trips"

    def lake(self, *, with_hot: bool = True) -> Lake:
        return ul.connect(self.folder / "lake", registry="none", hot=self.hot if with_hot else None)

    def create(self, **options: object) -> Table:
        return self.lake().create_table("taxi.trips", SCHEMA, **options)  # type: ignore[arg-type]

    def table(self, *, with_hot: bool = True) -> Table:
        return self.lake(with_hot=with_hot).table("taxi.trips")


@contextmanager
def writing(table: Table, **options: object) -> Iterator[HotTableWriter]:
    """A writer that is closed at the end."""
    with table.hot(**options) as hot:  # type: ignore[arg-type]
        yield hot


def ids(table: Table, where: str | None = None) -> list[int]:
    """The ids that match, in order."""
    return sorted(table.scan(["id"], where).to_arrow().column("id").to_pylist())
