from __future__ import annotations

import pytest

from tests.local.lakes import SmallLake
from underlay.errors import InvalidRequest, TableNotFound


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return SmallLake(tmp_path_factory.mktemp("lake"))


@pytest.mark.parametrize(
    "text",
    [
        "select * from read_csv('{file}')",
        "select * from read_text('{file}')",
        "select * from read_parquet('{file}')",
        "select * from read_json('{file}')",
        "select * from \"read_text\"('{file}')",
        "select * from READ_TEXT ('{file}')",
        "select * from system.main.read_text('{file}')",
        "select * from read_text /* x */ ('{file}')",
        "explain analyze select * from read_text('{file}')",
        "explain select * from enable_logging()",
        "with a as (select * from read_text('{file}')) select * from a",
        "select (select content from read_text('{file}'))",
        "select * from '{file}'",
        'select * from "{file}"',
        "select * from glob('/*')",
        "select * from sniff_csv('{file}')",
        "select * from parquet_metadata('{file}')",
        "select * from query('select 1')",
        "select * from query_table('x')",
        "select * from json_execute_serialized_sql(json_serialize_sql('select 1'))",
        "select * from enable_logging(storage = 'file', storage_path = '{file}')",
        "select * from duckdb_logs()",
        "select * from duckdb_secrets()",
        "select * from duckdb_settings()",
        "select * from checkpoint()",
        "select write_log('x')",
        "select write_log\u200b('x')",
        "select * from duckdb_settings\ufeff()",
        "select * from query\u2060('select 1')",
        "select getenv('HOME')",
        "select * from rows",
        "copy (select 1) to '{file}'",
        "copy x from '{file}'",
        "attach '{file}' as x",
        "attach ':memory:' as x",
        "export database '{file}'",
        "import database '{file}'",
        "install httpfs",
        "load httpfs",
        "set threads = 1",
        "set enable_external_access = true",
        "reset TimeZone",
        "pragma database_list",
        "pragma enable_profiling",
        "call pragma_version()",
        "set variable a = 1",
        "prepare p as select 1",
        "begin",
        "use memory",
        "create table x (a int)",
        "create or replace view x as select 1",
        "create macro f(x) as x",
        "insert into a.b values (1)",
        "update a.b set x = 1",
        "delete from a.b",
        "with a as (select 1) insert into b select * from a",
        "with p as (pivot range(3) on range using sum(range)) insert into b select * from p",
        "with p as (pivot range(3) on range using sum(range)) delete from b",
        "explain analyze with p as (pivot range(3) on range using sum(range)) update b set x = 1",
        "with a as (insert into b values (1) returning *) select * from a",
        "with a as materialized (copy (select 1) to '{file}') select 1",
        "drop table a.b",
        "explain analyze create table x as select 1",
        "explain (format json) create table x as select 1",
        "select 1; select 2",
        "select 1; copy (select 1) to '{file}'",
        "; ;",
        "",
        "-- nothing",
    ],
)
def test_refused(lake, tmp_path, text):
    rows = [1]  # a variable of this frame, which Python replacement scans would find
    file = tmp_path / "file.csv"
    file.write_text("hush 7\n")
    with pytest.raises((InvalidRequest, TableNotFound)) as refused:
        lake.rows(text.format(file=file))
    assert "hush" not in str(refused.value)
    assert file.read_text() == "hush 7\n"
    assert rows == [1]


def test_a_change_is_refused_with_what_to_do(lake):
    with pytest.raises(InvalidRequest, match=r"A query only reads\. Statements that change tables begin"):
        lake.sql("insert into a.b values (1)")


def test_functions_that_reach_nothing_are_there(lake):
    assert len(lake.rows("select * from range(3), unnest([1, 2])")) == 6
    assert lake.rows("select count(*) from generate_series(1, 4)") == [(4,)]


def test_external_access_is_given_when_asked_for(lake, tmp_path):
    file = tmp_path / "file.csv"
    file.write_text("a\n1\n")
    assert lake.sql(f"select * from read_csv('{file}')", external_access=True).fetchall() == [(1,)]
    with pytest.raises(InvalidRequest):
        lake.sql(f"select * from read_csv('{file}')")


@pytest.mark.parametrize(
    "text",
    [
        "copy (select 1) to '{file}'",
        "with a as (copy (select 1) to '{file}') select 1",
        "with a(n) as materialized (/* b */ Copy range to '{file}') from range(3)",
        "with p as (pivot range(3) on range using sum(range)), a as (copy p to '{file}') from p",
        "explain analyze with a as (copy (select 1) to '{file}') select 1",
    ],
)
def test_external_access_still_changes_nothing(lake, tmp_path, text):
    file = tmp_path / "x.csv"
    with pytest.raises(InvalidRequest, match=r"not a statement that reads.*A query only reads"):
        lake.sql(text.format(file=file), external_access=True).fetchall()
    assert not file.exists()


def test_a_column_with_the_name_of_a_change_is_quoted(lake):
    with pytest.raises(InvalidRequest, match=r'written as "update"'):
        lake.sql("select (update is null) from (select 1 as update)")


def test_the_time_zone_is_utc(lake):
    assert lake.rows("select current_setting('TimeZone')") == [("UTC",)]
