"""Makes source files for `make demo`: months of taxi trips with the columns of New York's yellow cabs, as messy as real
ones.

Some months are Parquet, some CSV, compressed or not, one JSON lines; a file has trips that arrive late, some lines are
not trips at all, and one file is truncated. The rows are seeded, so that every run has the same.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

COLUMNS = (
    "VendorID int, tpep_pickup_datetime timestamp not null, tpep_dropoff_datetime timestamp, passenger_count bigint, "
    "trip_distance double, RatecodeID bigint, store_and_fwd_flag string, PULocationID int, DOLocationID int, "
    "payment_type bigint, fare_amount double, extra double, mta_tax double, tip_amount double, tolls_amount double, "
    "improvement_surcharge double, total_amount double, congestion_surcharge double, Airport_fee double"
)
"""The columns of a month of yellow trips in TLC's Parquet files."""
MONTHS = 6
TRIPS_PER_MONTH = 150_000
LATE_TRIPS = 3_000
JFK = 132
_SEED = 20_240_101
_ZONES = 263
_AIRPORTS = (JFK, 138)
_MINUTE_US = 60_000_000
_BAD_LINES = (
    b"2,2024-02-30 10:00:00,2024-02-30 10:10:00,1,2.5,1,N,100,200,1,12.0,0,0.5,2.0,0,1.0,18.0,2.5,0\n",
    b"1,2024-05-03 08:00:00,2024-05-03 08:15:00,two,3.1,1,N,48,230,1,14.2,0,0.5,3.0,0,1.0,21.2,2.5,0\n",
    b"1,2024-05-04 09:00:00,2024-05-04 09:15:00,1\n",
    b"99999999999,2024-05-05 09:00:00,2024-05-05 09:15:00,1,1.0,1,N,1,2,1,7.0,0,0.5,0,0,1.0,11.0,2.5,0\n",
    b"2,2024-05-06 09:00:00,2024-05-06 09:15:00,1,1.0,1,\xff\xfe,1,2,1,7.0,0,0.5,0,0,1.0,11.0,2.5,0\n",
)
"""A day that does not exist, a number in words, a truncated line, a number out of range, and bytes that are not
UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The files of a delivery, and what a table must contain once all are ingested."""

    paths: tuple[Path, ...]
    trips: int
    late_trips: int
    bad_lines: int
    total_amount: float
    broken: Path
    """A truncated file."""
    whole: bytes
    """The complete content of that file."""


def deliver(folder: Path) -> Delivered:
    """Make the source files of some months in a folder."""
    folder.mkdir(parents=True)
    months = [make_trips(month, TRIPS_PER_MONTH) for month in range(1, MONTHS + 1)]
    late = pa.concat_tables(make_trips(month, LATE_TRIPS // (MONTHS - 1), chance=100) for month in range(1, MONTHS))
    paths = [folder / name for name in _names()]
    broken = folder / "yellow_tripdata_2024-04.csv.gz"
    for path, trips in zip(paths, [*months, late], strict=True):
        path.write_bytes(_written(path, trips))
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) * 2 // 3])
    every = pa.concat_tables([*months, late])
    return Delivered(
        paths=tuple(paths),
        trips=every.num_rows,
        late_trips=late.num_rows,
        bad_lines=sum(len(_BAD_LINES) for path in paths if ".csv" in path.name),
        total_amount=float(pc.sum(every["total_amount"]).as_py()),
        broken=broken,
        whole=whole,
    )


def make_trips(month: int, count: int, *, chance: int = 0) -> pa.Table:
    """`count` trips of a month of 2024; another `chance` gives other trips."""
    random = np.random.default_rng(_SEED + month + chance)
    begin, end = (int(datetime(2024, at, 1, tzinfo=UTC).timestamp()) for at in (month, month + 1))
    pickup = np.sort(random.integers(begin, end, count)) * 1_000_000
    distance = np.round(random.gamma(1.6, 2.0, count), 2)
    minutes = 4 + 3 * distance + random.gamma(2.0, 2.0, count)
    airports = random.random(count) < 0.08
    from_zone = np.where(airports, random.choice(_AIRPORTS, count), random.integers(1, _ZONES + 1, count))
    fare = np.round(3 + 2.6 * distance + 0.4 * minutes, 2)
    pays_by_card = random.random(count) < 0.8
    tip = np.round(np.where(pays_by_card, fare * random.normal(0.2, 0.05, count).clip(0), 0), 2)
    tolls = np.where(airports & (random.random(count) < 0.5), 6.94, 0.0)
    extra = random.choice([0.0, 1.0, 2.5], count)
    airport_fee = np.where(airports, 1.75, 0.0)
    return pa.table(
        {
            "VendorID": pa.array(random.choice([1, 2], count), pa.int32()),
            "tpep_pickup_datetime": pa.array(pickup).cast(pa.timestamp("us")),
            "tpep_dropoff_datetime": pa.array(pickup + (minutes * _MINUTE_US).astype(np.int64) // 1_000_000 * 1_000_000)
            .cast(pa.timestamp("us")),
            "passenger_count": pa.array(random.integers(1, 6, count), mask=random.random(count) < 0.03),
            "trip_distance": pa.array(distance),
            "RatecodeID": pa.array(np.where(airports, 2, 1)),
            "store_and_fwd_flag": pa.array(random.choice(["N", "Y"], count, p=[0.99, 0.01])),
            "PULocationID": pa.array(from_zone, pa.int32()),
            "DOLocationID": pa.array(random.integers(1, _ZONES + 1, count), pa.int32()),
            "payment_type": pa.array(np.where(pays_by_card, 1, 2)),
            "fare_amount": pa.array(fare),
            "extra": pa.array(extra),
            "mta_tax": pa.array(np.full(count, 0.5)),
            "tip_amount": pa.array(tip),
            "tolls_amount": pa.array(tolls),
            "improvement_surcharge": pa.array(np.full(count, 1.0)),
            "total_amount": pa.array(np.round(fare + tip + tolls + extra + airport_fee + 4.0, 2)),
            "congestion_surcharge": pa.array(np.full(count, 2.5)),
            "Airport_fee": pa.array(airport_fee),
        }
    )  # fmt: skip


def _names() -> Iterator[str]:
    suffixes = ["parquet", "parquet", "csv.gz", "csv.gz", "csv", "jsonl"]
    for month in range(1, MONTHS + 1):
        yield f"yellow_tripdata_2024-{month:02}.{suffixes[(month - 1) % len(suffixes)]}"
    yield "late_trips.csv"


def _written(path: Path, trips: pa.Table) -> bytes:
    name = path.name
    if name.endswith(".parquet"):
        sink = BytesIO()
        pq.write_table(trips, sink, compression="zstd")
        return sink.getvalue()
    if name.endswith(".jsonl"):
        rows = trips.to_pylist()
        return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    text = BytesIO()
    pyarrow.csv.write_csv(trips, text)
    dirty = _with_bad_lines(text.getvalue())
    return gzip.compress(dirty, 1, mtime=0) if name.endswith(".gz") else dirty


def _with_bad_lines(text: bytes) -> bytes:
    """The lines, with others between them that are not trips."""
    step = len(text) // (len(_BAD_LINES) + 1)
    parts, begin = [], 0
    for number, line in enumerate(_BAD_LINES, 1):
        end = text.index(b"\n", number * step) + 1
        parts += [text[begin:end], line]
        begin = end
    return b"".join([*parts, text[begin:]])
