"""Which queries in DuckDB's SQL may run on Spark when the server chooses."""

from __future__ import annotations

import pytest

from underlay.server.lockdown.agreement import agreement_of, tables_of
from underlay.server.lockdown.check import Lockdown

TABLES = ["a.b", "a.c"]
ALIKE = """
select * from a.b
select x, count(*), count(distinct y), sum(z), max(y), avg(z) from a.b where x > 1 group by x having count(*) > y
select b.x, c.y from a.b b join a.c c on b.x = c.x and c.day >= date '2024-01-31' where b.name like 'x%' limit 5
with q as (select x from a.b where x in (1, 2) or y between 1 and 2) select x from q union all select y from a.c
select case when x is null then 'n' else coalesce(name, 'm') end, -x, x + 1, abs(x), length(name) from a.b
select x from a.b where at_ >= timestamp '2024-01-31 12:00:00' and x = ? and not exists (select 1 from a.c)
select year(day), month(day), day(day) from a.b
select distinct x from a.b
""".strip().splitlines()
UNLIKE = """
select "x" from a.b
select 'a\\nb' from a.b
select x[1] from a.b
select {'a': x} from a.b
select $x from a.b
select x / 2 from a.b
select x % 2 from a.b
select cast(x as int) from a.b
select x::varchar from a.b
select try_cast('2024-01-31' as date) from a.b
select lower(name) from a.b
select list(x order by y) from a.b
select row_number() over (order by x) from a.b
select x from a.b order by x, y nulls first
select * exclude (x) from a.b
select * from a.b join a.c using (x)
select x, sum(y) from a.b group by all
select distinct on (x) x, y from a.b
select x from a.b union all by name select y from a.c
select x from a.b tablesample 10%
select x from a.b qualify 1 = 1
select x from a.b limit 10%
select * from a.b natural join a.c
select * from a.b positional join a.c
select * from range(5)
select unnest([1])
select date_trunc('month', day) from a.b
""".strip().splitlines()


@pytest.fixture(scope="module")
def lockdown() -> Lockdown:
    return Lockdown()


@pytest.mark.parametrize("sql", ALIKE)
def test_what_both_engines_answer_alike_may_run_on_spark(lockdown: Lockdown, sql: str):
    tree = lockdown.check(sql, TABLES).tree
    assert tree is not None
    assert agreement_of(sql, tree).why_not is None
    assert tables_of(tree) <= set(TABLES)


@pytest.mark.parametrize("sql", UNLIKE)
def test_what_spark_may_answer_in_another_way_runs_on_duckdb(lockdown: Lockdown, sql: str):
    tree = lockdown.check(sql, TABLES).tree
    assert tree is not None
    assert agreement_of(sql, tree).why_not


def test_sorts_that_do_not_say_where_nulls_go_have_them_last(lockdown: Lockdown):
    for order, are_nulls_last in (("x, y desc", True), ("x nulls first, y nulls last", False)):
        sql = f"select x, y from a.b order by {order}"
        found = agreement_of(sql, lockdown.check(sql, TABLES).tree or {})
        assert (found.why_not, found.are_nulls_last) == (None, are_nulls_last)


def test_commands_and_changes_have_no_tree(lockdown: Lockdown):
    for sql in ("show tables", "explain select 1", "insert into a.b values (1)"):
        assert lockdown.check(sql, TABLES).tree is None
