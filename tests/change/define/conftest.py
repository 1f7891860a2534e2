from __future__ import annotations

import os
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import underlay as ul

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("fare", pa.float32()),
        ("price", pa.decimal128(9, 2)),
        ("seen", pa.timestamp("ms")),
        ("pos", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("tags", pa.list_(pa.struct([("k", pa.int32())]))),
    ]
)


def rows(first: int, count: int = 12) -> pa.Table:
    made = [
        {
            "id": n,
            "name": f"n{n}",
            "day": date.fromordinal(719_163 + n * 10),
            "fare": [0.1, float("nan"), -0.0, 7.5][n % 4],
            "price": Decimal(n) / 4,
            "seen": datetime(2020, 1, 1 + n % 27, n % 24, 0, 0, n % 900 * 1000),
            "pos": {"x": n, "y": f"y{n}" if n % 5 else None} if n % 3 else None,
            "tags": [{"k": n}],
        }
        for n in range(first, first + count)
    ]
    made[-1] = dict.fromkeys(SCHEMA.names) | {"id": first + count - 1}
    return pa.Table.from_pylist(made, SCHEMA)


@pytest.fixture
def lake() -> ul.Lake:
    return ul.connect(f"memory://{os.urandom(6).hex()}")


@pytest.fixture
def table(lake: ul.Lake) -> ul.Table:
    return two_appends(lake)


@pytest.fixture(scope="module")
def steady() -> ul.Table:
    """A table that no test changes."""
    return two_appends(ul.connect(f"memory://{os.urandom(6).hex()}"))


def two_appends(lake: ul.Lake) -> ul.Table:
    """Rows of which statistics, bloom filters and partition values have the first types."""
    found = lake.create_table(
        "t.rows",
        SCHEMA,
        key=["id"],
        sort_by=["id"],
        partition_by=["bucket(2, id)", "month(day)"],
        properties={"bloom": "id,name,day,price,seen,pos.x", "block_rows": 5},
    )
    found.append(rows(0))
    found.append(rows(100))
    return found
