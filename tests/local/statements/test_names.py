"""Whose column a name is: of the changed table, of a source, or of what a subquery reads."""

from __future__ import annotations

from uuid import uuid4

import duckdb
import pyarrow as pa
import pytest

import underlay as ul
from underlay.errors import InvalidRequest

ROWS = pa.table({"id": [1, 2, 3, 4], "x": [10, 20, 30, 40]})
OTHERS = pa.table({"id": [2, 9], "x": [500, 900]})


@pytest.fixture
def lake():
    lake = ul.connect(f"memory://{uuid4()}", registry="none")
    lake.create_table("d.t", data=ROWS, properties={"block_rows": 2})
    lake.create_table("e.t", data=OTHERS)
    lake.create_table("d.u", data=OTHERS)
    return lake


def rows_of(lake):
    return sorted(lake.sql("from d.t").fetchall(), key=repr)


@pytest.mark.parametrize(
    "text",
    [
        "delete from d.t where exists (select 1 from e.t where e.t.id = d.t.id)",
        "update d.t set x = (select max(e.t.x) from e.t where e.t.id = d.t.id)",
        "delete from d.t where exists (select 1 from e.t where exists (from d.u where d.u.id = d.t.id + e.t.id))",
        "update d.t as a set x = (select max(d.t.x + o.x) from d.t, d.u as o)",
        "update d.t as a set x = (select sum(q.x) from (select d.t.x from d.t where d.t.id < 3) as q)",
        "delete from d.t where exists (select 1 from d.t as o where o.id = d.t.id + 1)",
        "delete from d.t where exists (select 1 from d.t o where o.id = d.t.id + 1)",
        "delete from d.t where id in (select d.t.id from d.t where d.t.x > 20)",
        "delete from d.t where id in (select t.id from d.t where t.x > 20)",
        "delete from d.t as a using d.u, d.t where d.t.id = a.id + 1 and d.u.id = a.id",
        "delete from d.t as a using d.t where d.t.id = a.id + 1",
        "update d.t as a set x = d.t.x from d.t where d.t.id = a.id + 1",
        "update d.t set x = d.u.x from d.u where d.u.id = d.t.id",
        "update d.t as a set x = e.t.x from e.t where e.t.id = a.id",
        "merge into d.t using d.u on d.u.id = t.id when matched then update set x = d.u.x",
        "update d.t set x = length('{rows}') where id in (select id from d.u)",
        "with t as (select 3 as id) delete from d.t where d.t.id in (select t.id from t)",
        "with d as (select 3 as id) delete from d.t where d.t.id in (select d.id from d)",
    ],
)
def test_names_mean_what_they_mean_in_duckdb(lake, text):
    with duckdb.connect() as judge:
        judge.execute("create schema d; create schema e")
        for name, rows in (("d.t", ROWS), ("e.t", OTHERS), ("d.u", OTHERS)):
            judge.register("given", rows)
            judge.execute(f"create table {name} as from given")
        judge.execute(text)
        lake.sql(text)
        assert rows_of(lake) == sorted(judge.execute("from d.t").fetchall(), key=repr)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("delete from d.t where id = 2 returning d.t.id, t.x, x + 1 as y", (2, 20, 21)),
        ("delete from d.t as a where id = 2 returning a.*", (2, 20)),
        ("update d.t as a set x = 1 where id = 2 returning d.t.id, a.x", (2, 1)),
        ("insert into d.t as z (id) values (7) returning z.id, d.t.x", (7, None)),
    ],
)
def test_returning_knows_the_rows_by_name_and_by_alias(lake, text, answer):
    assert lake.sql(text).fetchall() == [answer]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "update d.t set x = 1 from d.u, d.t where d.u.id = d.t.id",
            "line 1, column 27: the table and a source have the",
        ),
        (
            "delete from d.t where id = 1 returning (select 1)",
            "line 1, column 41: a subquery is not available in RETURN",
        ),
        ("insert into d.t values (5, 5) returning (select 1)", "line 1, column 42: a subquery is not available in"),
        (
            "update d.t set x = v.b from (values (1, 1), (1, 2)) as v(a, b) where t.id = v.a returning *",
            "line 1, column 29: a row matches more than one row of the source",
        ),
    ],
)
def test_what_is_refused_has_its_place_and_changes_nothing(lake, text, message):
    with pytest.raises(InvalidRequest) as caught:
        lake.sql(text)
    assert str(caught.value).startswith(message)
    assert rows_of(lake) == rows_of_table(ROWS)


def rows_of_table(rows):
    return sorted(zip(*rows.to_pydict().values(), strict=True), key=repr)
