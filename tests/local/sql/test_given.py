from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import underlay
from underlay.errors import InvalidRequest, TableNotFound

NAN = float("nan")
FRAME = pa.table({"i": [1, 2, 3], "f": [1.0, NAN, None]})


@pytest.fixture(scope="module")
def lake():
    lake = underlay.connect("memory://given")
    lake.create_table("a.b", data=pa.table({"i": [2, 3, 4], "s": ["two", "three", "four"]}))
    return lake


@pytest.mark.parametrize(
    "make",
    [
        lambda: FRAME,
        lambda: FRAME.to_batches(),
        lambda: FRAME.to_batches()[0],
        lambda: FRAME.to_reader(),
        lambda: ds.dataset(FRAME),
        lambda: ds.dataset(FRAME).scanner(),
        lambda: FRAME.to_pandas(),
        lambda: pl.DataFrame(FRAME),
        lambda: duckdb.arrow(FRAME),
        lambda: underlay.connect("memory://given-other").create_table("x.y", exist_ok=True, schema=FRAME.schema),
    ],
)
def test_what_is_given_is_joined(lake, make):
    given = make()
    if isinstance(given, underlay.Table) and not len(given):
        given.append(FRAME)
    query = "select s, l.f > 1 from df l join a.b using (i) join df r using (i) order by i"
    rows = lake.sql(query, tables={"df": given}).fetchall()
    assert [row[0] for row in rows] == ["two", "three"]


@pytest.mark.parametrize("given", [FRAME, ds.dataset(FRAME), FRAME.to_reader()])
def test_nan_is_the_greatest_value_of_what_is_given(lake, given):
    assert lake.sql("select i from df where f > 1", tables={"df": given}).fetchall() == [(2,)]


def test_a_dataset_of_a_lake_is_pruned_still(lake):
    assert lake.sql("select s from df where i = 3", tables={"df": lake["a.b"].dataset()}).fetchall() == [("three",)]


def test_names_of_any_kind(lake):
    assert lake.sql('select count(*) from "My frame"', tables={"My frame": FRAME}).fetchall() == [(3,)]
    assert lake.sql("select count(*) from a", tables={"a": FRAME}).fetchall() == [(3,)]


@pytest.mark.parametrize("tables", [{"a.b": FRAME}, {"": FRAME}, {7: FRAME}, {"x": 7}, {"x": FRAME, "X": FRAME}])
def test_what_is_no_table_is_refused(lake, tables):
    with pytest.raises(InvalidRequest):
        lake.sql("select 1", tables=tables)


def test_nothing_else_is_reached(lake, tmp_path):
    df = pd.DataFrame({"hush": [7]})
    file = tmp_path / "x.csv"
    file.write_text("hush 7\n")
    for text in ("select * from df", f"select * from '{file}'", f"from read_csv('{file}')", "create table t as from g"):
        with pytest.raises((InvalidRequest, TableNotFound)) as refused:
            lake.sql(text, tables={"g": FRAME}).fetchall()
        assert "hush" not in str(refused.value)
    assert len(df) == 1


def test_what_is_given_is_gone_with_its_query(lake):
    lake.sql("from df", tables={"df": FRAME}).fetchall()
    with pytest.raises(TableNotFound):
        lake.sql("from df")
