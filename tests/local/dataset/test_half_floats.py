"""Columns of float16 in SQL: DuckDB sees float32, and answers and writes back what the column holds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import underlay as ul
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import SchemaMismatch

HALVES = pa.array(
    np.array([1.5, np.nan, 0.1, -2, np.inf, 65504, -0.0], np.float16), mask=np.array([False] * 6 + [True])
)
LISTS = pa.list_(pa.float16())
PARTS = pa.struct([("x", pa.float16()), ("m", pa.map_(pa.string(), pa.float16()))])
ROWS = pa.table(
    {
        "id": pa.array(range(7)),
        "half": HALVES,
        "list": pa.array([[np.float16(1)], None, [np.float16(0.1), None], [], None, None, None], LISTS),
        "part": pa.array([{"x": np.float16(0.1), "m": [("a", np.float16(2))]}, None, *[{"x": None}] * 5], PARTS),
    }
)


@pytest.fixture
def lake() -> Lake:
    return ul.connect("memory://halves", registry="none")


@pytest.fixture
def table(lake: Lake) -> Table:
    if "a.t" in [one.name for one in lake.tables()]:
        lake.drop_table("a.t")
    table = lake.create_table("a.t", ROWS.schema)
    table.append(ROWS.slice(0, 4))
    table.append(ROWS.slice(4))
    return table


def test_rows_are_the_same_values_as_float32(lake: Lake, table: Table):
    found = lake.sql("select * from a.t order by id").to_arrow()
    assert found.schema.field("half").type == pa.float32()
    assert str(found.to_pylist()) == str(ROWS.to_pylist())
    assert lake.sql("select id from a.t where id >= 5 order by id").fetchall() == [(5,), (6,)]
    assert lake.sql("select part.x, list[1] from a.t where id = 0").fetchall() == [(float(np.float16(0.1)), 1.0)]
    assert lake.sql("describe a.t").fetchall()[1][:2] == ("half", "FLOAT")


@pytest.mark.parametrize("sign", ["=", "<>", "<", "<=", ">", ">=", "is distinct from"])
@pytest.mark.parametrize("value", ["0.1", "1.5", "'nan'::float", "1e9"])
def test_filters_mean_what_duckdb_means(lake: Lake, table: Table, sign: str, value: str):
    floats = pa.table({"id": ROWS["id"], "half": ROWS["half"].cast(pa.float32())})
    for where in (f"half {sign} {value}", f"half {sign} {value} and id < 5", f"not (half {sign} {value})"):
        inner = "select id from (select id, half as h, id from {} where {}) order by id"
        expected = lake.sql(inner.format("other", where), tables={"other": floats}).fetchall()
        assert lake.sql(inner.format("a.t", where)).fetchall() == expected, where
    joined = f"select a.id from {{}} as a join {{}} as b on a.id = b.id and b.half {sign} {value} order by a.id"
    expected = lake.sql(joined.format("other", "other"), tables={"other": floats}).fetchall()
    assert lake.sql(joined.format("a.t", "a.t")).fetchall() == expected


def test_changes_by_sql(lake: Lake, table: Table):
    lake.sql("update a.t set half = half * 2 where half = 1.5")
    lake.sql("update a.t set half = (select max(id) from a.t) where id = 1")
    assert lake.sql("delete from a.t where half = 'inf' returning id, half").fetchall() == [(4, float("inf"))]
    lake.sql("insert into a.t select id + 10, half, list, part from a.t where id = 2")
    source = "(select 3 as id, 4.5 as h) as s"
    lake.sql(f"merge into a.t as t using {source} on t.id = s.id when matched then update set half = s.h")
    tenth = float(np.float16(0.1))
    found = table.scan(["id", "half"]).to_arrow().sort_by("id").to_pylist()
    assert {row["id"]: row["half"] for row in found} == {
        0: 3.0,
        1: 6.0,
        2: tenth,
        3: 4.5,
        5: 65504.0,
        6: None,
        12: tenth,
    }
    assert table.scan(["list", "part"], "id = 12").to_arrow() == ROWS.select(["list", "part"]).slice(2, 1)


@pytest.mark.parametrize(
    "statement", ["update a.t set half = 1e9 where id = 0", "insert into a.t (id, half) values (9, 2.500001)"]
)
def test_a_value_that_the_column_cannot_hold_is_refused(lake: Lake, table: Table, statement: str):
    version = table.version
    with pytest.raises(SchemaMismatch, match="float16"):
        lake.sql(statement)
    assert table.version == version


def test_frames_and_datasets_beside_the_lake(lake: Lake, table: Table):
    query = "select id from given where half > 2 order by id"
    assert lake.sql(query, tables={"given": ROWS}).fetchall() == [(1,), (4,), (5,)]
    assert lake.sql(query, tables={"given": table.dataset()}).fetchall() == [(1,), (4,), (5,)]
