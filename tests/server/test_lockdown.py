"""What SQL of strangers may say. Everything on this list tries to get out, or to learn of what it may not see."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import httpx
import pytest

from tests.gate import sized
from tests.server.conftest import Served
from underlay.errors import UnderlayError
from underlay.server.lockdown.check import Lockdown
from underlay.server.lockdown.functions import (
    ALLOWED_FAMILIES,
    ALLOWED_FUNCTIONS,
    ALLOWED_TABLE_FUNCTIONS,
    REFUSED_FUNCTIONS,
    REFUSED_TABLE_FUNCTIONS,
)

TABLES = ["a.b"]
ALLOWED = """
select 1
from a.b
summarize a.b
describe a.b
show tables
show all tables
explain select 1
table a.b
values (1), (2)
with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) from r
select list_transform([1], lambda x: x + 1), x[1:2], {'a': 1}, [y for y in [1]], case when 1 then 2 end, ? from a.b
select * from a.b tablesample 10%
select a from a.b version as of 7
select current_date, now(), 1::decimal(3, 2), 'a' collate nocase, exists(select 1), try_cast(1 as struct(a int))
select distinct on (a) a from a.b qualify row_number() over (partition by a order by b) = 1 limit 3 offset 2
from (pivot a.b on x in (1, 2) using sum(y))
unpivot a.b on x
select a from a.b union all by name select 1 except select 2 intersect select 3
select * exclude (a) replace (b as c) rename (d as e), columns('a.*') from a.b
select * from a.b asof join a.b c using (x), lateral (select 1), unnest([1]) u
select 'x'::enum('x', 'y'), sum(x) filter (x > 1), grouping(x) from (values (1)) t(x) group by cube (x)
from test_all_types()
from underlay.tables
select * from a.b where (a, b) in (select 1, 2) and a = any(select 1) and a like 'x' escape 'y' window w as (order by a)
select extract(year from d), substring(a from 1 for 2), trim(both 'x' from a), coalesce(a, b), if(a, b, c) from a.b
select lcase('x'), x'00', b.* from a.b at (version => 3)
insert into a.b values (1)
insert into a.b (a, b) select a, decimal(1, 2) from a.b
merge into a.b using a.b as s on true when matched then delete
""".strip().splitlines()

REFUSED = """
select getenv('HOME')
select current_setting('temp_directory')
select getvariable('x')
select nextval('s')
select sleep_ms(100000)
select pg_sleep(100)
select write_log('x')
select json_serialize_sql('select 1')
from json_execute_serialized_sql('{}')
select "read_text"('/etc/passwd')
from read_csv('/etc/passwd')
from read_csv_auto('https://example.org/x.csv')
from parquet_scan('s3://bucket/x')
from '/etc/passwd'
from "/etc/passwd"
from 'https://example.org/x.parquet'
from glob('*')
from sniff_csv('/etc/passwd')
from query('select 1')
from query_table('a.b')
from histogram(a.b, x)
from histogram_values(a.b, x)
from duckdb_settings()
from duckdb_settings
from duckdb_tables
from duckdb_secrets()
from pg_settings
from pg_catalog.pg_settings
from main.duckdb_tables
from memory.a.b
from system.main.duckdb_tables
from information_schema.tables
from sqlite_master
from pragma_database_list
from a.b, pg_class
select * from (describe pg_settings)
describe pg_settings
summarize 'x.csv'
show databases
show schemas
show all
with pg_settings as (select 1) from pg_settings
with x as (from glob('*')) from x
with x as (select * from duckdb_tables) from x
select (select count(*) from duckdb_tables)
select list_transform([1], lambda y: current_setting('a'))
select 1 union select current_setting('a')
select a from a.b order by current_setting('a')
select sum(a) over (order by getvariable('a')) from a.b
from (pivot a.b on x in (1) using first(current_setting('a')))
pivot a.b on x using sum(y)
explain from pg_settings
explain analyze select current_setting('a')
select 'a'.current_setting()
from a.c
from secret.pay
from a.c version as of 1
attach '/tmp/x.db'
copy a.b to '/tmp/x.csv'
copy a.b from '/etc/passwd'
install httpfs
load httpfs
set memory_limit = '1TB'
reset all
pragma version
call pragma_version()
use a
prepare x as select 1
execute x
create function f() as 1
create macro f() as 1
create view a.v as select 1
create secret s (type s3)
create type t as enum ('a')
create sequence s
export database '/tmp/x'
import database '/tmp/x'
checkpoint
vacuum
begin
select 1; select 2
select 1; attach '/tmp/x.db'
insert into a.b select * from pg_settings
insert into a.b from information_schema.tables
insert into a.b from histogram(a.b, x)
insert into a.b values (current_setting('x'))
update a.b set a = getvariable('x')
delete from a.b where a in (select name from duckdb_settings())
delete from a.b where a in (select "value" from pg_settings)
merge into a.b using (from read_csv('/etc/passwd')) s on true when matched then delete
""".strip().splitlines()

CHECKED = [sql for sql in REFUSED if not sql.startswith("create") and "version as of" not in sql]
"""What the check before the run refuses. The reader of statements refuses the others; the server is sent all."""


@pytest.fixture(scope="module")
def lockdown() -> Lockdown:
    return Lockdown()


def test_every_function_of_this_duckdb_was_judged():
    kinds = "case when function_type in ('table', 'table_macro') then 'table' else 'plain' end"
    found = duckdb.connect().execute(
        f"select distinct lower(function_name), {kinds} from duckdb_functions() where function_type <> 'pragma'"
    )
    judged = {
        "plain": ALLOWED_FUNCTIONS | REFUSED_FUNCTIONS,
        "table": ALLOWED_TABLE_FUNCTIONS | REFUSED_TABLE_FUNCTIONS,
    }
    judged["plain"] |= ALLOWED_TABLE_FUNCTIONS  # unnest, range and repeat are both
    unknown = [
        name for name, kind in found.fetchall() if name not in judged[kind] and not name.startswith(ALLOWED_FAMILIES)
    ]
    assert unknown == []


def test_no_function_is_both_allowed_and_refused():
    assert set() == ALLOWED_FUNCTIONS & REFUSED_FUNCTIONS
    assert set() == ALLOWED_TABLE_FUNCTIONS & REFUSED_TABLE_FUNCTIONS


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_reads_tables_may_run(lockdown: Lockdown, sql: str):
    lockdown.check(sql, TABLES)


@pytest.mark.parametrize("sql", [*CHECKED, "select " + "(" * 600 + "1" + ")" * 600, "select 1" + ", 1" * 60_000])
def test_what_reaches_out_is_refused_before_it_runs(lockdown: Lockdown, sql: str):
    with pytest.raises(UnderlayError):
        lockdown.check(sql, TABLES)


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client("writer") as one:
        yield one


@pytest.mark.parametrize("sql", REFUSED)
def test_the_server_refuses_it_with_a_reason_and_tells_nothing(client: httpx.Client, served: Served, sql: str):
    written = sql.replace("a.b", "shop.orders").replace("a.c", "shop.none")
    answer = client.post("/v1/sql", json={"sql": written})
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["detail"]
    for secret in ("4711", "root:", str(served.folder), "Traceback"):
        assert secret not in answer.text


def test_an_unseen_table_is_as_absent_as_one_that_is_not_there(client: httpx.Client):
    for text in (
        "from {}", "describe {}", "summarize {}", "from {} version as of 1", "explain from {}",
        "insert into {} values (1, 1)", "drop table {}", "select (select max(id) from {})",
        "with x as (from {}) from x", "alter table {} add column a int",
    ):  # fmt: skip
        answers = [
            client.post("/v1/sql", json={"sql": text.format(name)}).json() for name in ("secret.pay", "secret.pax")
        ]
        unseen, absent = ({**one, "detail": one["detail"].replace("pax", "pay")} for one in answers)
        assert unseen == absent
        assert unseen["status"] == 404, text


def test_nesting_beyond_any_stack_ends_in_a_refusal(client: httpx.Client):
    many = sized(1, 10)
    for sql in (
        "select " + "not " * 2_000 * many + "true",
        "select " + "1 + " * 1_500 * many + "1",
        "select " + "- " * 1_000 * many + "1",
        "select " + "[" * 20 * many + "]" * 20 * many,
        "select " + "case when true then " * 500 * many + "1" + " end" * 500 * many,
        "select 1" + " union all select 1" * 500 * many,
    ):
        answer = client.post("/v1/sql", json={"sql": sql})
        assert answer.status_code < 500, (sql[:40], answer.text[:300])
    assert client.post("/v1/sql", json={"sql": "select 1"}).status_code == 200
