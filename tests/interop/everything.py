"""One table with everything that an export must get right, and questions about it."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from underlay import Lake
from underlay.api.table import Table

NAME = "taxi.trips"
COLUMNS = """id int not null, pickup timestamp, zone string, fare double, tip real, tags array<string>,
    pos struct<x: double, y: real>, m map<string, int>, d decimal(10, 2), w decimal(30, 4), u uuid, ok boolean,
    day date, seen timestamptz, ms timestamp(3), tiny tinyint, bin binary, gone string"""
QUESTIONS = (
    "select count(*) from t",
    "select sum(id), min(id), max(id) from t",
    "select count(*) from t where pickup >= '2024-02-01' and pickup < '2024-03-01'",
    "select min(pickup), max(pickup) from t",
    "select count(*) from t where area = 'JFK'",
    "select count(*) from t where area > 'J' and area < 'K'",
    "select count(*) from t where area is null",
    "select area, count(*) from t group by area order by area",
    "select count(*) from t where fare > 5",
    "select count(*) from t where fare = 0",
    "select count(*) from t where fare = 'nan'::double",
    "select count(*) from t where fare < 0.5",
    "select max(tip), sum(tip) from t",
    "select count(pos.x), sum(pos.x), count(pos) from t",
    "select count(*) from t where pos.x > 20",
    "select sum(len(tags)), count(tags) from t",
    "select sum(m['k']) from t",
    "select count(*) from t where d = 0.05",
    "select count(*) from t where w < -0.0005",
    "select count(*) from t where u = '00000000-0000-0000-0000-000000000005'::uuid",
    "select count(*) from t where ok = true",
    "select count(*) from t where day < '1960-01-05'",
    "select count(*) from t where seen >= '2024-01-02T00:00:00+00:00'",
    "select count(*), max(ms) from t where ms >= '2024-01-01T00:00:20'",
    "select count(*) from t where tiny < -40",
    "select count(*) from t where bin = 'aaaa'::blob or bin > 'zz'::blob",
    "select count(*) from t where id in (3, 101, 5000000000, 17)",
    "select max(id) from t where id > 200",
)
LONG = "JFK" * 40


def rows(first: int, count: int, schema: pa.Schema, zone: str = "zone") -> pa.Table:
    """Rows with NaN, minus zero, nulls, long texts and nested values."""

    def row(n: int) -> dict[str, object]:
        values: dict[str, object] = {
            "id": n,
            "pickup": datetime.datetime(2024, 1 + n % 3, 1) + datetime.timedelta(hours=n % 50),
            zone: (LONG, None, "é", "JFK")[n % 4],
            "fare": (math.nan, -0.0, 1.5 * n)[n % 3],
            "tip": 0.25 * n,
            "tags": (["a", None], [], None)[n % 3],
            "pos": {"x": 1.0 * n, "y": None} if n % 4 else None,
            "m": [("k", n)] if n % 2 else None,
            "d": Decimal(n) / 100,
            "w": Decimal(-n * 10**15) / 10000,
            "u": UUID(int=n).bytes,
            "ok": bool(n % 2),
            "day": datetime.date(1960, 1, 1) + datetime.timedelta(days=n % 90),
            "seen": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(hours=n),
            "ms": datetime.datetime(2024, 1, 1, 0, 0, n % 60),
            "tiny": n % 100 - 50,
            "bin": bytes([97 + n % 26]) * 4 * (1 + n % 50),
            "gone": "x",
        }
        return {name: values[name] for name in schema.names}

    return pa.Table.from_pylist([row(n) for n in range(first, first + count)], schema=schema)


def make(lake: Lake, folder: Path) -> Table:
    """The table: appends, a registered file without ids, a rename, a wider column, a dropped one, one with a default,
    and deletions, some in a segment and some in the tail."""
    table = lake.create_table(
        NAME, COLUMNS, key=["id"], sort_by=["pickup"], partition_by=["month(pickup)"], comment="Trips"
    )
    table.append(rows(0, 40, table.schema))
    table.append(rows(100, 40, table.schema))
    folder.mkdir(parents=True, exist_ok=True)
    others = rows(200, 60, table.schema)
    for month in range(1, 4):
        path = folder / f"a file {month}.parquet"
        some = others.filter(pc.equal(pc.month(others["pickup"]), month))
        columns = [name for name in reversed(others.schema.names) if name != "ms"]
        plain = some.select(columns).replace_schema_metadata(None)
        pq.write_table(plain, path, row_group_size=7)
        table.register(str(path))
    table.delete("id in (3, 101, 205)")
    with table.evolve() as change:
        change.rename_column("zone", "area")
        change.widen_column("id", "bigint")
        change.drop_column("gone")
        change.add_column("added", "int", default=42)
    kept = [field for field in table.schema if field.name not in ("area", "added")]
    table.append(rows(300, 20, pa.schema(kept)).append_column("area", pa.array(["JFK"] * 20)))
    table.delete("id in (17, 305)")
    return table


def expected(lake: Lake, query: str) -> list[tuple[object, ...]]:
    """The answer of Underlay."""
    found = lake.sql(query.replace("from t", f"from {NAME} t")).to_arrow()
    return [tuple(row.values()) for row in found.to_pylist()]
