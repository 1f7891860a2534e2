from __future__ import annotations

import pytest

from tests.local.statements.lakes import small_lake
from underlay.errors import InvalidRequest, TableExists, UnknownColumn


@pytest.fixture
def lake():
    return small_lake()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("insert into taxi.trips values (7, 'a', 1)", ["taxi.trips, version 1: 1 row would be appended"]),
        (
            "insert into taxi.trips select * from taxi.trips where id = 1",
            ["taxi.trips, version 1: the rows of the query would be appended", "reads 1 of 3 blocks in 1 of 1 files"],
        ),
        ("create table t.t (a int)", ["t.t: would be created; no data file is read or written"]),
        ("create table t.t as from taxi.trips", ["t.t: would be created, with", "reads 3 of 3 blocks"]),
        ("create or replace table taxi.trips (a int)", ["taxi.trips: would be replaced"]),
        ("create table if not exists taxi.trips (a int)", ["the table exists, so nothing would be done"]),
        ("drop table taxi.trips", ["taxi.trips: would be dropped"]),
        ("drop table if exists t.t", ["t.t: there is no such table, so nothing would be done"]),
        ("comment on table taxi.trips is 'a'", ["a comment would be set"]),
    ],
)
def test_explain_says_what_would_be_done_and_changes_nothing(lake, text, words):
    tables, version = lake.tables(), lake.table("taxi.trips").version
    result = lake.sql(f"explain {text}")
    assert result.is_explanation
    assert [one for one in words if one not in repr(result)] == []
    assert (lake.tables(), lake.table("taxi.trips").version) == (tables, version)


def test_explain_raises_what_the_statement_would(lake):
    with pytest.raises(UnknownColumn, match="line 2, column 26: there is no column nope"):
        lake.sql("explain\n insert into taxi.trips (nope) values (1)")
    with pytest.raises(TableExists):
        lake.sql("explain create table taxi.trips (a int)")


@pytest.mark.parametrize("option", ["analyze", "(format json)"])
def test_explain_of_a_change_takes_no_options(lake, option):
    with pytest.raises(InvalidRequest, match="line 1, column 9: EXPLAIN of a change takes no options"):
        lake.sql(f"explain {option} insert into taxi.trips values (7, 'a', 1)")
