"""No part of a statement reaches out of the lake, whatever the statement is."""

from __future__ import annotations

import pytest

from tests.local.statements.lakes import small_lake
from underlay.errors import InvalidRequest, TableNotFound

QUERIES = [
    "select 1, content, 2.0 from read_text('{file}')",
    "select 1, (select content from read_text('{file}')), 2.0",
    "select 1, 'a', 2.0 from '{file}'",
    "select 1, write_log('x')::varchar, 2.0",
    "select 1, getenv('HOME'), 2.0",
    "select 1, name, 2.0 from duckdb_settings()",
    "select 1, 'a', 2.0 from query('select 1')",
    "with a as (select * from read_csv('{file}')) select 1, 'a', 2.0 from a",
]
EXPRESSIONS = [
    "(select content from read_text('{file}'))",
    "getenv('HOME')",
    "write_log('x')::varchar",
    "read_text('{file}')",
    "\"write_log\"('x')::varchar",
    "write_log\u200b('x')::varchar",
]


@pytest.fixture(scope="module")
def lake():
    return small_lake()


def refuse(lake, tmp_path, text):
    file = tmp_path / "secret.txt"
    file.write_text("secret")
    tables = lake.tables()
    with pytest.raises((InvalidRequest, TableNotFound)) as refused:
        lake.sql(text.replace("{file}", str(file)))
    assert "secret\n" not in str(refused.value)
    assert (lake.tables(), lake.table("taxi.trips").version) == (tables, 1)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    "statement",
    [
        "insert into taxi.trips {}",
        "insert into taxi.trips (zone, id, fare) {}",
        "create table t.t as {}",
        "create or replace table taxi.trips as {}",
        "explain insert into taxi.trips {}",
        "merge into taxi.trips t using ({}) s on true when matched then delete",
        "update taxi.trips t set fare = 1 from ({}) s where true",
        "delete from taxi.trips using ({}) s",
    ],
)
def test_queries(lake, tmp_path, statement, query):
    refuse(lake, tmp_path, statement.format(query.replace("{file}", "{{file}}")).replace("{{file}}", "{file}"))


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize(
    "statement",
    [
        "insert into taxi.trips values (1, {}, 2)",
        "update taxi.trips set zone = {}",
        "update taxi.trips set fare = 1 where zone = {}",
        "delete from taxi.trips where zone = {}",
        "explain delete from taxi.trips where zone = {}",
        "merge into taxi.trips t using taxi.zones s on s.zone = {} when matched then delete",
        "merge into taxi.trips t using taxi.zones s on t.zone = s.zone when matched and s.zone = {} then delete",
        "merge into taxi.trips t using taxi.zones s on t.zone = s.zone when matched then update set zone = {}",
        "merge into taxi.trips t using taxi.zones s on t.zone = s.zone when not matched then insert (zone) values ({})",
        "alter table taxi.trips add constraint a check (zone = {})",
        "create table t.t (a varchar check (a = {}))",
    ],
)
def test_expressions(lake, tmp_path, statement, expression):
    refuse(lake, tmp_path, statement.format(expression))


@pytest.mark.parametrize(
    "text",
    [
        "copy taxi.trips to '{file}'",
        "copy taxi.trips from '{file}'",
        "insert into taxi.trips copy (select 1) to '{file}'",
        "attach '{file}' as x",
        "set threads = 1",
        "pragma database_list",
        "create macro f(x) as x",
        "create schema x",
        "create index i on taxi.trips (id)",
        "create sequence s",
        "drop schema taxi",
        "alter database x rename to y",
        "with a as (select * from read_csv('{file}')) delete from taxi.trips where id in (select * from a)",
        "with a as (select 1) copy taxi.trips to '{file}'",
        "with a as (insert into taxi.trips values (1) returning *) delete from taxi.trips where id in (from a)",
        "delete from taxi.trips where id in (select 1); drop table taxi.trips",
        "with a as (delete from taxi.trips returning *) select * from a",
        "begin; delete from taxi.trips; commit",
    ],
)
def test_other_statements(lake, tmp_path, text):
    refuse(lake, tmp_path, text)
