"""What SQL of strangers may say on Spark. Everything that is refused tries to get out, or to learn of what it may not
see."""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.spark.serving.statements import statement_on
from underlay.api.lake import Lake
from underlay.errors import UnderlayError
from underlay.spark.jvm.gateway import call, call_text, java_session
from underlay.spark.jvm.plan_nodes import items_of
from underlay.spark.serving.failures import FailureKind, StatementFailure
from underlay.spark.serving.functions import (
    ALLOWED_FUNCTIONS,
    ALLOWED_TABLE_FUNCTIONS,
    LITERAL_FUNCTIONS,
    REFUSED_FUNCTIONS,
    REFUSED_TABLE_FUNCTIONS,
)
from underlay.spark.serving.nodes import ALLOWED_NODES, REFUSED_NODES

ALLOWED = """
select 1
values (1, 'a'), (2, lower('B'))
select * from shop.items
select i.id, shop.items.name, items.size from shop.items join shop.items i on i.id = items.id
with recursive r(n) as (values (1) union all select n + 1 from r where n < 5) select * from r
with a as (select id from shop.items) select (select max(id) from a), exists(select 1 from a) from a
select id from shop.items version as of 2
select id from shop.items timestamp as of '2099-01-01 00:00:00'
select sum(id) over w, rank() over (partition by flag order by id) from shop.items window w as (order by id)
select transform(tags, t -> upper(t)), inner.deep.text, marks['k'], tags[0] from shop.items
select flag, count(*) filter (where id > 3), sum(distinct id) from shop.items group by cube(flag) having count(*) > 1
select * from shop.items lateral view explode(tags) as tag
select * from range(5) r, lateral (select r.id + 1)
select case when id > 1 then 2 end, cast(id as string), id::double, date '2024-01-01', x'00' from shop.items
select id from shop.items where name like 'x%' or name in ('a', 'b') or id between 1 and 2 or name is null
select id from shop.items union all select 1 except select 2 intersect select 3
select * except (raw) from shop.items order by id desc nulls last limit 3 offset 1
select * from (select flag, id from shop.items) pivot (sum(id) for flag in (true as t, false as f))
from shop.items |> where id > 3 |> aggregate count(*) group by flag |> order by flag
select id from shop.items tablesample (10 percent)
select extract(year from day), substring(name from 1 for 2), trim(both 'x' from name), if(flag, 1, 2) from shop.items
select '${env:HOME}', `id` from shop.items
select count(*) from shop.items group by all
""".strip().splitlines()

REFUSED = """
select reflect('java.lang.System', 'getenv', 'HOME')
select java_method('java.lang.Runtime', 'getRuntime')
select try_reflect('java.lang.System', 'getProperty', 'user.home')
select builtin.reflect('java.lang.System', 'getenv', 'HOME')
select system.builtin.abs(1)
values (reflect('java.lang.System', 'getenv', 'HOME'))
select id from shop.items limit length(reflect('java.lang.System', 'getenv', 'HOME'))
select transform(tags, t -> reflect('java.lang.System', 'getenv', t)) from shop.items
select sum(id) over (order by reflect('a', 'b')) from shop.items
select sum(id) over w from shop.items window w as (order by reflect('a', 'b'))
select sum(id) filter (where reflect('a', 'b') = 'x') from shop.items
with x as (select reflect('a', 'b')) select 1
select (select reflect('a', 'b'))
select 1 where exists (select reflect('a', 'b'))
select * from range(length(reflect('a', 'b')))
select * from shop.items lateral view explode(array(reflect('a', 'b'))) as t
select * from shop.items timestamp as of reflect('a', 'b')
select * from shop.items timestamp as of current_timestamp()
select * from (select flag, id from shop.items) pivot (sum(id) for flag in (reflect('a', 'b')))
select id from shop.items group by grouping sets ((reflect('a', 'b')))
select id from shop.items order by reflect('a', 'b')
select input_file_name() from shop.items
select _metadata.file_path from shop.items
select `_METADATA` from shop.items
select _metadata.* from shop.items
select current_user
select current_user()
select user
select session_user()
select current_catalog, current_database()
select current_schema()
select xpath_string('<a>b</a>', 'a')
select from_xml('<a>b</a>', 'b string')
select from_avro(raw, '{}') from shop.items
select * from parquet.`/etc/passwd`
select * from text.`/etc/passwd`
select * from `/etc/passwd`
select * from csv.`https://example.org/x`
select * from underlay.`shop.items`
select * from global_temp.items
select * from spark_catalog.shop.items
select * from shop.none
select * from none
select * from information_schema.tables
select * from python_worker_logs()
select * from shop.items with (lake = '/tmp')
select * from identifier('shop.none')
select identifier('id') from shop.items
select identifier('abs')(1)
select /*+ broadcast(i) */ * from shop.items i
select /*+ repartition(1000000) */ * from shop.items
select transform(id) using 'cat' from shop.items
select `(id|name)` from shop.items
select * from stream shop.items
select ${env:HOME}
set spark.sql.variable.substitute=true
set
reset
set var x = 1
declare variable x int
select session.x
select system.session.x
execute immediate 'select 1'
begin select 1; end
begin declare x int; set x = 1; end
select 1; select 2
add jar '/tmp/x.jar'
list jars
add file '/etc/passwd'
list files
show tables
show databases
show functions
describe shop.items
describe function abs
explain select 1
use shop
cache table shop.items
create table a.b (x int)
create view v as select 1
create temporary view v using csv options (path '/etc/passwd')
create temporary function f as 'x'
create function f() returns int return 1
insert into shop.items values (1)
insert overwrite directory '/tmp/x' using csv select 1
update shop.items set id = 1
delete from shop.items
merge into shop.items t using shop.items s on true when matched then delete
drop table shop.items
truncate table shop.items
alter table shop.items add column x int
load data inpath '/etc/passwd' into table shop.items
analyze table shop.items compute statistics
refresh '/etc'
call system.x()
comment on table shop.items is 'x'
from shop.items insert into shop.items select *
select map_from_arrays(array(id), array(current_user())) from shop.items
""".strip().splitlines()


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_reads_tables_is_planned(spark: SparkSession, lake: Lake, sql: str):
    statement_on(spark, lake).analyse(sql, None)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_reaches_out_is_refused_before_it_is_resolved(spark: SparkSession, lake: Lake, sql: str):
    with pytest.raises((UnderlayError, StatementFailure)) as refused:
        statement_on(spark, lake).analyse(sql, None)
    if isinstance(refused.value, StatementFailure):  # of the parser, or of a name that nothing has
        assert refused.value.kind in (FailureKind.SYNTAX, FailureKind.QUERY, FailureKind.COLUMN)


@pytest.mark.parametrize(
    "sql",
    [
        "select " + "(" * 600 + "1" + ")" * 600,
        "select 1" + ", 1" * 60_000,
        f"select '{'x' * 70_000}'",
        "select " + "not " * 9_000 + "true",
        "select " + "case when true then " * 2_000 + "1" + " end" * 2_000,
        "select 1" + " union all select 1" * 2_000,
    ],
)
def test_texts_beyond_any_stack_end_in_a_refusal(spark: SparkSession, lake: Lake, sql: str):
    with pytest.raises((UnderlayError, StatementFailure)):
        statement_on(spark, lake).analyse(sql, None)


def test_every_function_of_this_spark_was_judged(spark: SparkSession):
    state = call(java_session(spark.newSession()), "sessionState")

    def names(registry: str) -> set[str]:
        found = {call_text(one, "funcName") for one in items_of(call(call(state, registry), "listFunction"))}
        return {name for name in found if not name.startswith("underlay")}

    assert names("functionRegistry") - ALLOWED_FUNCTIONS - REFUSED_FUNCTIONS == set()
    assert names("tableFunctionRegistry") - ALLOWED_TABLE_FUNCTIONS - REFUSED_TABLE_FUNCTIONS == set()


def test_every_class_that_this_sparks_parser_refers_to_was_judged():
    found = {name.rpartition("/")[2] for name in _classes_of_the_parser()}
    assert found >= {"Project", "UnresolvedRelation", "AddJarsCommand"}
    unknown = {one for one in found if not {one, one.rstrip("$")} & (ALLOWED_NODES | REFUSED_NODES)}
    assert unknown == set()


def test_nothing_is_both_allowed_and_refused():
    assert set() == ALLOWED_FUNCTIONS & REFUSED_FUNCTIONS
    assert set() == ALLOWED_NODES & REFUSED_NODES
    assert set() == ALLOWED_TABLE_FUNCTIONS & REFUSED_TABLE_FUNCTIONS
    assert LITERAL_FUNCTIONS <= REFUSED_FUNCTIONS


_PARSER = re.compile(
    r"org/apache/spark/sql/(?:catalyst/parser|execution)/"
    r"(?:AstBuilder|SparkSqlAstBuilder|DataTypeAstBuilder|SparkSqlParser|AbstractSqlParser|AbstractParser)(?:\$.*)?\.class"
)
_OF_PLANS = re.compile(r"org/apache/spark/sql/(?:catalyst/(?:expressions|plans|analysis|trees|streaming)|execution)/")


def _classes_of_the_parser() -> Iterator[str]:
    for jar in (Path(pyspark.__file__).parent / "jars").glob("spark-*_*.jar"):
        if not re.match(r"spark-(sql|sql-api|catalyst)_", jar.name):
            continue
        with zipfile.ZipFile(jar) as archive:
            for name in filter(_PARSER.fullmatch, archive.namelist()):
                yield from filter(_OF_PLANS.match, _referred(archive.read(name)))


_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}


def _referred(data: bytes) -> set[str]:
    """The classes that a class file names: its constants of kind 7, each the number of a text."""
    (count,) = struct.unpack_from(">H", data, 8)
    texts, classes, at, number = {}, [], 10, 1
    while number < count:
        kind = data[at]
        if kind == 1:
            (length,) = struct.unpack_from(">H", data, at + 1)
            texts[number] = data[at + 3 : at + 3 + length].decode(errors="replace")
            at += 3 + length
        else:
            if kind == 7:
                classes.append(struct.unpack_from(">H", data, at + 1)[0])
            at += 1 + _SIZES[kind]
            number += kind in (5, 6)  # they take two numbers
        number += 1
    return {texts[one] for one in classes}
