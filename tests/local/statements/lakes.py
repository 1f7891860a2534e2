"""A lake of tables that statements change."""

from __future__ import annotations

from uuid import uuid4

import pyarrow as pa

import underlay as ul

TRIPS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
        "zone": ["JFK", "LGA", None, "JFK", "EWR", "EWR"],
        "fare": [10.0, 20.0, 30.0, 4.0, 5.0, None],
    }
)
ZONES = pa.table({"zone": ["JFK", "LGA", "SFO"], "city": ["Queens", "Queens", None], "fee": [1.5, 2.5, 9.0]})
COUNTS = ["num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows", "version"]


def small_lake() -> ul.Lake:
    """`taxi.trips`, six rows in blocks of two, key `id`; and `taxi.Zones`."""
    lake = ul.connect(f"memory://{uuid4()}", registry="none")
    lake.create_table("taxi.trips", data=TRIPS, key=["id"], properties={"block_rows": 2})
    lake.create_table("taxi.Zones", data=ZONES)
    return lake


def rows_of(lake: ul.Lake, name: str = "taxi.trips") -> list[tuple[object, ...]]:
    """All rows, in an order of their own."""
    return sorted(lake.sql(f"from {name}").fetchall(), key=repr)


def change(lake: ul.Lake, text: str, parameters=None, **tables: object) -> dict[str, object]:
    """What a statement counts."""
    result = lake.sql(text, parameters, tables=tables or None).to_arrow()
    assert result.schema.names == COUNTS
    (row,) = result.to_pylist()
    return {name.removeprefix("num_").removesuffix("_rows"): value for name, value in row.items()}
