"""The second half of `make demo`: a table of taxi trips in a lake of its own.

The rows are seeded, so that every run has the same. Every pruned answer is compared with a filtered full scan.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from underlay.api.lake import Lake, connect
from underlay.api.table import Table
from underlay.cli.output import show_bytes, show_count
from underlay.errors import Inconsistent

NAME = "taxi.trips"
MONTHS = 6
ROWS_PER_MONTH = 40_000
BLOCK_ROWS = 4_000
ZONES = ["Astoria", "Chelsea", "Harlem", "JFK", "LaGuardia", "SoHo", "Tribeca", "Williamsburg"]
_SCHEMA = "trip_id bigint not null, pickup timestamp not null, zone string, distance double, fare decimal(8, 2)"
_SEED = 20_240_201
_AVERAGE = (
    f"select zone, count(*) trips, round(avg(fare), 2) average from {NAME}"
    " where zone in ('JFK', 'SoHo') group by zone order by zone"
)


class Question(NamedTuple):
    """A filter, as SQL for Underlay and as an expression for Arrow, which answers it by reading everything."""

    where: str
    expression: pc.Expression


def make_month(month: int) -> pa.Table:
    """The trips that began in a month of 2024, from 1."""
    random = np.random.default_rng(_SEED + month)
    begin, end = (int(datetime(2024, at, 1, tzinfo=UTC).timestamp() * 1_000_000) for at in (month, month + 1))
    distance = random.gamma(2.0, 2.0, ROWS_PER_MONTH)
    fare = 3 + 2.5 * distance + random.gamma(1.0, 0.5, ROWS_PER_MONTH)
    return pa.table(
        {
            "trip_id": pa.array(np.arange(ROWS_PER_MONTH) + month * 1_000_000),
            "pickup": pa.array(random.integers(begin, end, ROWS_PER_MONTH)).cast(pa.timestamp("us")),
            "zone": pa.array(random.choice(ZONES, ROWS_PER_MONTH)),
            "distance": pa.array(distance),
            "fare": pa.array(fare).cast(pa.decimal128(8, 2)),
        }
    )


def questions() -> list[Question]:
    """A week of one zone, which partitions and sorted files find, and a trip, which needs a bloom filter."""
    begin, end = datetime(2024, 3, 4), datetime(2024, 3, 11)  # the column has no zone
    during = (pc.field("pickup") >= pa.scalar(begin)) & (pc.field("pickup") < pa.scalar(end))
    trip = MONTHS * 1_000_000 + ROWS_PER_MONTH // 2
    return [
        Question(
            f"pickup >= '{begin:%Y-%m-%d}' and pickup < '{end:%Y-%m-%d}' and zone = 'JFK'",
            during & (pc.field("zone") == "JFK"),
        ),
        Question(f"trip_id = {trip}", pc.field("trip_id") == trip),
    ]


def show_table(place: Path) -> Iterator[str]:
    """The demonstration, a line at a time, in a lake that is made here."""
    lake = connect(place)
    table = lake.create_table(
        NAME,
        _SCHEMA,
        key=["trip_id"],
        sort_by=["pickup"],
        partition_by=["month(pickup)"],
        properties={"block_rows": str(BLOCK_ROWS)},
    )
    yield f"5. A table: {NAME} in the lake {place} (key trip_id, sorted by pickup, partitioned by month)"
    yield from _append(table)
    yield ""
    yield "6. Scans, planned from metadata alone:"
    yield ""
    yield from _scan(table)
    yield from _query(lake)
    yield ""
    yield from _travel(table)
    yield ""


def table_commands(place: Path) -> Iterator[str]:
    """What to type after `underlay` to go on with the table."""
    at = f"--lake {place}"
    yield f"show {NAME} {at}"
    yield f"history {NAME} {at}"
    yield f"plan {NAME} --where \"fare > 60 and zone = 'SoHo'\" {at}"
    yield f"scan {NAME}@2 --where \"zone = 'JFK'\" --limit 5 {at}"
    yield f'sql "select zone, max(fare) from {NAME} group by zone order by zone" {at}'


def _append(table: Table) -> Iterator[str]:
    begin = time.perf_counter()
    for month in range(1, MONTHS + 1):
        done = table.append(make_month(month), token=f"2024-{month:02}")
    took_ms = (time.perf_counter() - begin) * 1000
    size = show_bytes(next(table.history(1)).data_bytes)
    yield (
        f"   {MONTHS} commits of {show_count(ROWS_PER_MONTH, 'row')} each, rows made and written in {took_ms:.0f} ms:"
        f" version {done.version}, {size}"
    )
    again = table.append(make_month(MONTHS), token=f"2024-{MONTHS:02}")
    if not again.is_repeat or table.version != done.version:
        raise Inconsistent("rows were added twice for one token", place=table.name)
    yield (
        f"   the last commit once more with its token: {show_count(again.row_count, 'row')} added, still version"
        f" {table.version}, {show_count(table.count(), 'row')}"
    )


def _scan(table: Table) -> Iterator[str]:
    everything = table.to_arrow()
    for question in questions():
        begin = time.perf_counter()
        found = table.scan(where=question.where).to_arrow()
        took_ms = (time.perf_counter() - begin) * 1000
        if not found.equals(everything.filter(question.expression)):
            raise Inconsistent("the pruned answer is not the full scan's", place=question.where)
        yield f'   where "{question.where}"'
        yield from (f"     {line}" for line in table.plan(where=question.where).explain().splitlines())
        rows = show_count(found.num_rows, "row")
        yield f"     {rows} found in {took_ms:.0f} ms, the same as by filtering all {everything.num_rows:,}"
        yield ""


def _query(lake: Lake) -> Iterator[str]:
    begin = time.perf_counter()
    rows = lake.sql(_AVERAGE).to_arrow().to_pylist()
    took_ms = (time.perf_counter() - begin) * 1000
    yield f"   SQL on DuckDB, in {took_ms:.0f} ms: {_AVERAGE}"
    yield from (f"     {row['zone']}: {row['trips']:,} trips, {row['average']} on average" for row in rows)


def _travel(table: Table) -> Iterator[str]:
    table.tag("first-quarter", 3)
    older = table.at(tag="first-quarter")
    yield (
        f"7. Time travel: version {older.version}, tagged first-quarter, still has {show_count(older.count(), 'row')};"
        f" version {table.version} has {show_count(table.count(), 'row')}"
    )
