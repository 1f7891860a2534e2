"""Seconds and milliseconds lie in files as microseconds, and the table shows them as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay as ul
from underlay.errors import InvalidRequest, SchemaMismatch

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("s", pa.timestamp("s")),
        ("ms", pa.timestamp("ms", "UTC")),
        ("t", pa.time32("ms")),
        ("pos", pa.struct([("s", pa.timestamp("s"))])),
        ("many", pa.list_(pa.timestamp("ms"))),
        ("by", pa.map_(pa.string(), pa.time32("s"))),
    ]
)


def rows(first: int, count: int = 20) -> pa.Table:
    numbers = range(first, first + count)
    second = [None if n % 7 == 6 else n - 10 for n in numbers]
    milli = [None if n is None else n * 1001 for n in second]
    return pa.table(
        [
            pa.array(numbers, pa.int64()),
            pa.array(second, pa.timestamp("s")),
            pa.array(milli, pa.timestamp("ms", "UTC")),
            pa.array([abs(n or 0) for n in milli], pa.time32("ms")),
            pa.array([{"s": n} for n in second], SCHEMA.field("pos").type),
            pa.array([[n, None] for n in milli], SCHEMA.field("many").type),
            pa.array([[("k", n)] for n in numbers], SCHEMA.field("by").type),
        ],
        schema=SCHEMA,
    )


@pytest.fixture
def lake(tmp_path: Path) -> ul.Lake:
    return ul.connect(tmp_path / "lake")


@pytest.fixture
def table(lake: ul.Lake) -> ul.Table:
    options = {"bloom": "s,ms,t,pos.s", "block_rows": 6}
    found = lake.create_table("t.rows", SCHEMA, sort_by=["s"], partition_by=["bucket(2, ms)"], properties=options)
    found.append(rows(0))
    found.append(rows(100))
    return found


def test_files_have_microseconds_and_the_table_its_types(table: ul.Table, tmp_path: Path):
    paths = list((tmp_path / "lake").rglob("*.parquet"))
    assert paths
    for path in paths:
        columns = pq.ParquetFile(path).schema
        kinds = {columns.column(at).logical_type.to_json() for at in range(1, len(columns))} - {'{"Type":"String"}'}
        assert all('"microseconds"' in kind for kind in kinds), kinds
    assert table.schema.remove_metadata().types == SCHEMA.types
    found = sorted(table.to_arrow().to_pylist(), key=lambda row: row["n"])
    assert str(found) == str([*rows(0).to_pylist(), *rows(100).to_pylist()])


CONDITIONS = (
    "s = '1969-12-31 23:59:55'",
    "s = '1970-01-01 00:01:35'",
    "s > '1970-01-01 00:00:05'",
    "s = '1970-01-01 00:00:05.000001'",
    "ms = '1970-01-01 00:00:05.005+00'",
    "ms <= '1969-12-31 23:59:55+00'",
    "t = '00:00:05.005'",
    "t > '00:01:00'",
    "pos.s = '1970-01-01 00:00:05'",
    "s is null",
)


def test_pruned_is_a_full_scan(lake: ul.Lake, table: ul.Table):
    plain = lake.create_table("t.plain", SCHEMA, properties={"bloom": ""}, data=table.to_arrow())
    for where in CONDITIONS:
        expected = sorted(plain.scan(["n"], where).to_arrow().column(0).to_pylist())
        assert sorted(table.scan(["n"], where).to_arrow().column(0).to_pylist()) == expected, where
        assert table.count(where) == len(expected), where
        assert sorted(lake.sql(f"select n from t.rows where {where}").fetchall()) == [(n,) for n in expected], where


def test_an_equality_reads_one_block(table: ul.Table):
    assert table.plan(where="s = '1970-01-01 00:01:35'").kept.blocks == 1


def test_what_microseconds_do_not_reach_is_refused():
    lake = ul.connect(f"memory://{os.urandom(6).hex()}")
    table = lake.create_table("t.far", pa.schema([("s", pa.timestamp("s"))]))
    with pytest.raises(SchemaMismatch, match="too far from 1970"):
        table.append(pa.table({"s": pa.array([2**53], pa.timestamp("s"))}))
    assert len(table) == 0


def test_the_entry_is_what_the_footer_says(lake: ul.Lake, table: ul.Table):
    assert not lake.verify(deep=True).findings


def test_a_file_of_others_in_microseconds_is_not_registered_for_milliseconds(lake: ul.Lake, tmp_path: Path):
    """Its values may have more digits than the table shows."""
    pq.write_table(pa.table({"ms": pa.array([1500], pa.timestamp("us"))}), tmp_path / "us.parquet")
    table = lake.create_table("t.ms", pa.schema([("ms", pa.timestamp("ms"))]))
    with pytest.raises(InvalidRequest, match="timestamp"):
        table.register(tmp_path / "us.parquet")
