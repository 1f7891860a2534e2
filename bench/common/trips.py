"""A synthetic table as many small files: seeded, sorted by time, with ids in random order.

File n holds the minutes from n × BLOCKS × ROWS on, so a time filter can pick one block of one file; ids are a
permutation of all row numbers, so no range of a block rules an id out and only bloom filters can.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BLOCKS = 10
ROWS = 100
START_US = 1_700_000_000_000_000
STEP_US = 1_000_000
_AT_ONCE = 50
_PRIME = 2_147_483_647
_FACTOR = 1_103_515_245

_TYPES: dict[str, pa.DataType] = {
    "ts": pa.timestamp("us"),
    "id": pa.int64(),
    "zone": pa.string(),
    "fare": pa.float64(),
    "tip": pa.float64(),
    "distance": pa.float64(),
    "passengers": pa.int32(),
    "vendor": pa.int32(),
    "flag": pa.bool_(),
    "note": pa.string(),
}
SCHEMA = pa.schema(_TYPES)


def trip_ids(numbers: np.ndarray) -> np.ndarray:
    """The ids of rows: a permutation of 1 … prime − 1."""
    return (numbers.astype(np.int64) % (_PRIME - 1) + 1) * _FACTOR % _PRIME


def trips(first_row: int, row_count: int, within: int | None = None) -> pa.Table:
    """Rows `first_row` on; `within` a file of so many rows, they are the ones that it has."""
    if within is not None:
        begin = first_row // within * within
        return trips(begin, within).slice(first_row - begin, row_count)
    numbers = np.arange(first_row, first_row + row_count)
    random = np.random.default_rng(first_row)
    return pa.table(
        {
            "ts": pa.array(START_US + numbers * STEP_US, pa.timestamp("us")),
            "id": trip_ids(numbers),
            "zone": pa.array([f"zone {n % 263:03}" for n in numbers.tolist()]),
            "fare": random.integers(250, 10_000, row_count) / 100,
            "tip": random.integers(0, 2_000, row_count) / 100,
            "distance": random.random(row_count) * 30,
            "passengers": random.integers(1, 6, row_count).astype(np.int32),
            "vendor": random.integers(1, 3, row_count).astype(np.int32),
            "flag": random.random(row_count) < 0.1,
            "note": pa.array(["" if n % 7 else f"note {n}" for n in numbers.tolist()]),
        },
        schema=SCHEMA,
    )


def write_file(folder: Path, number: int) -> None:
    """File `number`."""
    rows = BLOCKS * ROWS
    pq.write_table(
        trips(number * rows, rows),
        folder / f"trips-{number:06}.parquet",
        row_group_size=ROWS,
        compression="zstd",
        bloom_filter_options={"id": {"ndv": ROWS, "fpp": 0.01}},
    )


def write_files(folder: Path, count: int) -> list[Path]:
    """`count` files below `folder`, those that are there already left as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [n for n in range(count) if not (folder / f"trips-{n:06}.parquet").exists()]
    if len(missing) <= _AT_ONCE:
        for number in missing:
            write_file(folder, number)
    else:
        with ProcessPoolExecutor() as pool:
            list(pool.map(partial(write_file, folder), missing, chunksize=_AT_ONCE))
    return [folder / f"trips-{n:06}.parquet" for n in range(count)]
