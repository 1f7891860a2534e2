"""UPDATE and MERGE that set fields of structs, and columns after the name of their table."""

from __future__ import annotations

import pytest

import underlay as ul
from tests.end_to_end.lakes import memory, quick
from tests.local.statements.lakes import rows_of
from underlay.errors import InvalidRequest, UnknownColumn

FIRST = {"x": 1, "Y z": "a", "deep": {"n": 5}}
SECOND = {"x": 2, "Y z": "b", "deep": None}


@pytest.fixture
def lake() -> ul.Lake:
    made = quick(memory())
    made.sql('create table d.t (id int, p struct<x: int, "Y z": string, deep: struct<n: bigint>>, "p.x" int)')
    made.sql("insert into d.t values (1, {'x': 1, 'Y z': 'a', 'deep': {'n': 5}}, 10)")
    made.sql("insert into d.t values (2, {'x': 2, 'Y z': 'b', 'deep': null}, 20), (3, null, 30)")
    made.sql("create table d.s as select 1 as id, 100 as x, 'new' as y")
    return made


@pytest.mark.parametrize(
    "text",
    [
        "update d.t set p.x = p.x + 99 where id = 1",
        "UPDATE d.t AS c SET C.P.X = c.p.x + 99 WHERE id = 1",
        "update d.t set t . p /* of t */ .\n x = 100.2 where id = 1",
        "update d.t set p.x = (select x from d.s) where id = 1",
        "update d.t set p.x = ? where id in (select id from d.s)",
        "update d.t set p.x = s.x from d.s where d.t.id = s.id",
        "update d.t set p.x = a.x from d.s a, d.s b where d.t.id = a.id",
        "merge into d.t as t using d.s as s on t.id = s.id when matched then update set t.p.x = s.x",
        "merge into d.t using d.s as s on d.t.id = s.id when matched and s.x > 0 then update set p.x = s.x",
    ],
)
def test_a_field_is_set_and_its_neighbours_stay(lake: ul.Lake, text: str):
    lake.sql(text, [100] if "?" in text else None)
    assert rows_of(lake, "d.t") == [(1, FIRST | {"x": 100}, 10), (2, SECOND, 20), (3, None, 30)]


def test_fields_of_fields_and_names_in_quotes_with_values_of_the_row_as_it_was(lake: ul.Lake):
    text = """update d.t set p.deep.n = p.x, "p"."y Z" = 'c' || id, "P.x" = p.deep.n, t.id = id * 10 where id < 3"""
    (answer,) = lake.sql(f"{text} returning p.deep.n, id").fetchall()[:1]
    assert answer == (1, 10)
    assert rows_of(lake, "d.t") == [
        (10, {"x": 1, "Y z": "c1", "deep": {"n": 1}}, 5),
        (20, {"x": 2, "Y z": "c2", "deep": {"n": 2}}, None),
        (3, None, 30),
    ]


@pytest.mark.parametrize("where", ["id = 3", "id in (select 3)"])
def test_a_null_struct_becomes_one_with_the_field(lake: ul.Lake, where: str):
    lake.sql(f"update d.t set p.x = '7' where {where}")
    assert rows_of(lake, "d.t")[2] == (3, {"x": 7, "Y z": None, "deep": None}, 30)


def test_a_column_that_is_named_like_the_table_is_the_column():
    lake = quick(memory())
    lake.sql("create table d.t (t struct<a: int>, a int)")
    lake.sql("insert into d.t values ({'a': 1}, 2)")
    lake.sql("update d.t set t.a = 3")
    assert rows_of(lake, "d.t") == [({"a": 3}, 2)]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("update d.t set p.q = 1", UnknownColumn, "line 1, column 16: there is no column p.q"),
        ("update d.t set id.q = 1", UnknownColumn, "line 1, column 16: there is no column id.q"),
        ("update d.t set q.x = 1", UnknownColumn, "line 1, column 16: there is no column q.x"),
        ("update d.t as c set t.id = 1", UnknownColumn, "line 1, column 21: there is no column t.id"),
        ("update d.t set p.x = 1, p = null", InvalidRequest, "line 1, column 25: a column is named twice"),
        ("update d.t set p.x = 1, t.P.X = 2", InvalidRequest, "line 1, column 25: a column is named twice"),
        ("update d.t set p.x = 'a'", InvalidRequest, "line 1, column 22: Conversion Error"),
        ("update d.t set p.x = nope", UnknownColumn, "line 1, column 22: there is no column nope"),
        ("update d.t set p. = 1", InvalidRequest, "line 1, column 19: not SQL that is understood"),
        ("update d.t set p[1] = 1", InvalidRequest, "line 1, column 17: a list or map is set as a whole"),
        ("insert into d.t (p.x) values (1)", InvalidRequest, "line 1, column 19: not SQL that is understood"),
        ("merge into d.t t using d.s s on t.id = s.id when matched then update set p.x = s.x, p.q = 1",
         UnknownColumn, "line 1, column 85: there is no column p.q"),
        ("merge into d.t t using d.s s on t.id = s.id when matched then update set s.x = 1",
         UnknownColumn, "line 1, column 74: there is no column s.x"),
    ],
)  # fmt: skip
def test_what_cannot_be_set_is_refused_with_its_place(lake: ul.Lake, text: str, error, message: str):
    with pytest.raises(error) as caught:
        lake.sql(text)
    assert str(caught.value).startswith(message)
    assert lake.table("d.t").version == 2
