"""What DuckDB lacks or gets wrong in conditions: half floats, and times cut to units where they are null."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

import underlay
from tests.local.conditions.test_condition import by_sql

HALVES = [1.5, 0.1, -0.0, float("nan"), float("inf"), None, 7.0, -2.0]


@pytest.mark.parametrize(
    "where",
    [
        "h > 6.0::double",
        "h + 1 > 6",
        "h = 0.1",
        "h >= 0.1::float",
        "isnan(h) or round(h) = 2",
        "coalesce(h, 7) = 7",
        "st.h * 2 = 14",
        "h is distinct from 1.5::float and h < 'inf'::float",
    ],
)
def test_half_floats_are_computed_with_as_in_sql(where):
    """DuckDB has none of them."""
    lake = underlay.connect("memory://halves", registry="none")
    table = lake.create_table("a.b", "k bigint, h float16, st struct<h: float16>", exist_ok=True)
    if not len(table):
        for values in (HALVES[:4], HALVES[4:]):
            half = pa.array([None if value is None else np.float16(value) for value in values], pa.float16())
            keys = pa.array([HALVES.index(value) for value in values])
            table.append(pa.table({"k": keys, "h": half, "st": pa.StructArray.from_arrays([half], ["h"])}))
    expected = by_sql(lake, where)
    assert 0 < len(expected) < len(HALVES) or where == "h = 0.1"
    assert table.scan(["k"], where).to_arrow()["k"].to_pylist() == expected
    assert table.count(where) == len(expected)


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("date_trunc('year', ts) <> date '2023-11-19'", [2, 3]),
        ("not (datetrunc('quarter', ts) = timestamp '2023-11-30 05:23:25')", [2, 3]),
        ("(date_trunc('year', ts) = date '2023-11-19') is null", [0, 1]),
        ("date_trunc('year', ts) = date '2023-01-01' and k < 3", [2]),
        ("date_trunc('year', ts) <> '2023-11-19' or k = 0", [0, 2, 3]),
        ("try_cast(k * 100 as tinyint) >= 0", [0, 1]),
        ("try_cast(u as tinyint) >= 0", [1, 3]),
    ],
)
def test_what_duckdb_simplifies_amiss_is_answered_right(where, keys):
    """DuckDB takes a comparison with what no cut time equals for true, or false, also where the time is null, and
    compares numbers that no cast has."""
    lake = underlay.connect("memory://cut", registry="none")
    table = lake.create_table("a.b", "k bigint, ts timestamp_ntz, u bigint", exist_ok=True)
    if not len(table):
        for values in ([None, None], [datetime(2023, 5, 5), datetime(2020, 1, 1)]):
            times = pa.array(values, pa.timestamp("us"))
            table.append(pa.table({"k": range(len(table), len(table) + 2), "ts": times, "u": [1000, len(table) + 1]}))
            table = lake.table("a.b")
    assert table.scan(["k"], where).to_arrow()["k"].to_pylist() == keys
    assert table.count(where) == len(keys)
    assert by_sql(lake, where) == keys


def test_a_change_reads_cut_times_that_are_null_as_null():
    lake = underlay.connect("memory://cut-changes", registry="none")
    table = lake.create_table("a.b", "k bigint, ts timestamp_ntz, s string", key=["k"])
    table.append(pa.table({"k": [0, 1], "ts": pa.array([None, datetime(2020, 1, 1)], pa.timestamp("us"))}))
    differs = "date_trunc('year', {}ts) != date '2023-11-19'"
    table.update({"s": f"({differs.format('')})::varchar"})
    assert lake.table("a.b").scan(["s"]).to_arrow()["s"].to_pylist() == [None, "true"]
    rows = pa.table({"k": [0, 1], "s": ["new", "new"]})
    merge = lake.table("a.b").merge(rows, "t.k = s.k", source_alias="s", target_alias="t")
    merge.when_matched_update({"s": "s.s"}, differs.format("t.")).execute()
    assert lake.table("a.b").scan(["s"]).to_arrow()["s"].to_pylist() == [None, "new"]
    lake.table("a.b").delete(differs.format(""))
    assert lake.table("a.b").to_arrow()["k"].to_pylist() == [0]
