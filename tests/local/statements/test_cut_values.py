"""Statements that change tables never change by values that DuckDB truncated to microseconds."""

from __future__ import annotations

import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import underlay as ul
from tests.end_to_end.lakes import memory, quick
from underlay.errors import InvalidRequest

INSTANT = pa.timestamp("ns", "UTC")


@pytest.fixture
def lake() -> ul.Lake:
    made = quick(memory())
    schema = pa.schema([("k", pa.int64()), ("z", INSTANT), ("p", pa.list_(pa.struct([("z", INSTANT)])))])
    for name, instants in (("t", [1000, 1001, 2000]), ("fine", [1001]), ("whole", [1000])):
        rows = pa.table({"k": range(len(instants)), "z": pa.array(instants, INSTANT)})
        made.create_table(f"d.{name}", schema).append(rows)
    return made


def instants(lake: ul.Lake) -> list[int]:
    return sorted(lake.table("d.t").to_arrow()["z"].cast(pa.int64()).to_pylist())


@pytest.mark.parametrize(
    "text",
    [
        "delete from d.t where z in (select z from d.fine)",
        "delete from d.t where z in (select z from d.whole)",
        "update d.t set z = (select max(z) from d.fine)",
        "update d.t set k = 9 where exists (select 1 from d.whole where d.whole.z = d.t.z)",
        "insert into d.t select * from d.fine",
        "insert into d.t (k, z) select k, z from frame",
        "merge into d.t using d.fine as s on d.t.k = s.k when matched then update set z = s.z",
        "create table d.new as select z from d.fine",
    ],
)
def test_values_that_duckdb_would_cut_change_nothing(lake: ul.Lake, text: str):
    frame = pa.table({"k": [7], "z": pa.array([1001], INSTANT)})
    with pytest.raises(InvalidRequest, match="DuckDB would truncate values of z"):
        lake.sql(text, tables={"frame": frame})
    assert instants(lake) == [1000, 1001, 2000]
    assert "d.new" not in [table.name for table in lake.tables()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("insert into d.t select * from d.whole", [1000, 1000, 1001, 2000]),
        ("insert into d.t (k) select k from frame", [1000, 1001, 2000, None]),
        ("insert into d.t (k) select count(*) from frame", [1000, 1001, 2000, None]),
        ("delete from d.t where k in (select k from d.fine)", [1001, 2000]),
        ("merge into d.t t using (select k from d.fine) s on t.k = s.k when matched then delete", [1001, 2000]),
        ("merge into d.t t using d.whole s on t.z = s.z when matched then delete", [1001, 2000]),
    ],
)
def test_whole_microseconds_and_columns_that_are_not_read_are_no_reason_to_refuse(lake: ul.Lake, text: str, expected):
    lake.sql(text, tables={"frame": pa.table({"k": [7], "z": pa.array([1001], INSTANT)})})
    found = lake.table("d.t").to_arrow()["z"].cast(pa.int64()).to_pylist()
    assert sorted(found, key=lambda value: (value is None, value)) == expected


def test_a_query_alone_shows_microseconds(lake: ul.Lake):
    assert lake.sql("select z from d.fine").to_arrow()["z"].cast(pa.int64()).to_pylist() == [1]


def frames(lake: ul.Lake) -> dict[str, object]:
    """The same rows in everything that a statement takes, with an instant of parts of a microsecond."""
    rows = pa.table({"k": [7], "z": pa.array([1001], INSTANT)})
    return {
        "table": rows,
        "batch": rows.to_batches()[0],
        "batches": rows.to_batches(),
        "reader": rows.to_reader(),
        "dataset": ds.dataset(rows),
        "scanner": ds.dataset(rows).scanner(),
        "pandas": rows.to_pandas(),
        "polars": polars.from_arrow(rows),
        "table of a lake": lake.table("d.fine").dataset(),
    }


KINDS = ["table", "batch", "batches", "reader", "dataset", "scanner", "pandas", "polars", "table of a lake"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        "insert into d.t by name from frame",
        "insert into d.t by name (table frame)",
        "insert into d.t (k, z) select columns('[kz]') from frame",
        "update d.t set k = 9 where z in (select z from frame)",
        "merge into d.t using frame as s on d.t.z = s.z when matched then delete",
    ],
)
def test_rows_of_every_kind_are_checked_where_a_statement_reads_them(lake: ul.Lake, kind: str, text: str):
    with pytest.raises(InvalidRequest, match="DuckDB would truncate values of z"):
        lake.sql(text, tables={"frame": frames(lake)[kind]})
    assert instants(lake) == [1000, 1001, 2000]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_can_be_read_once_are_all_inserted(lake: ul.Lake, kind: str):
    lake.sql("delete from d.t")
    text = "insert into d.t (k) select k + 1 from frame union all select k + 2 from frame"
    lake.sql(text, tables={"frame": frames(lake)[kind]})
    first = 0 if kind == "table of a lake" else 7
    assert sorted(lake.table("d.t").to_arrow()["k"].to_pylist()) == [first + 1, first + 2]
