"""Queries by family, for any table of the columns of `conftest.SCHEMA`; `{t}` stands for its name.

The columns that a query gives have names of their own, and a query with a limit orders by something unique: rows are
compared as JSON, in no order.
"""

from __future__ import annotations

from collections import Counter

from pyspark.sql import SparkSession

WHOLE_NUMBERS = (
    "id = 2003",
    "id <> 2003 and id < 2010 and id > 1990",
    "id between 1040 and 2005",
    "id in (1, 5003, 77, null)",
    "id not in (1, 2, 3) and id < 9",
    "not (id < 5030)",
    "id < 5 or id > 5045 or id = 3000",
    "id > 5040.5",
    "id = 3.0 or id = '4'",
    "small = -1004 or small is null and id < 20",
    "small >= -3 and small < 0",
    "unsigned > 2147483648L + 5040",
    "unsigned in (2147483649, 2147486652)",
    "price = 30.01 or price = 30.020",
    "price between 10 and 10.055",
    "price > 50.445D",
    "price < 0.005",
    "flag and id % 10 = 1",
    "not flag and id < 1010",
    "flag <=> null and id < 1000",
)
FLOATS = (
    "size > 1240",
    "size = double('NaN')",
    "size <> 0 and id between 3000 and 3015",
    "not (size < 1260)",
    "size not in (750, 751) and id between 3000 and 3012",
    "size = 0.0D",
    "size = -0.0D",
    "size <= -0.0D",
    "size < 0 or isnan(size)",
    "size >= double('Infinity')",
    "size between 0 and 0.5",
    "size <=> double('NaN')",
    "ratio = float('300.1')",
    "ratio = 300.1D",
    "ratio > 504.55",
    "ratio in (float('0.1'), float('100.3'))",
)
TEXT = (
    "name = 'é2-2003'",
    "name > 'é5-503'",
    "name like 'é4-402%'",
    "name like '%-3003'",
    "name like 'é_-100_'",
    "name not like 'é%'",
    "startswith(name, 'é1-104')",
    "endswith(name, '-5001')",
    "contains(name, '-40')",
    "name rlike 'é0-[1-3]$'",
    "name in ('é0-1', 'é5-5003', '', null)",
    "name <=> 'é3-3001'",
    "name < 'f'",
    "name is null and id < 1000",
    "upper(name) = 'É1-1001'",
    "name collate UTF8_LCASE = 'É1-1001'",
    "length(name) < 5",
    "name || 'x' = 'é0-3x'",
    "raw = X'000003E9'",
    "raw > X'0000138F' and raw < X'00001395'",
    "raw in (X'00000001', X'00000FA2')",
    "raw is null and id > 5000",
)
MOMENTS = (
    "day < date '0020-01-01'",
    "day = date '0548-12-16'",
    "day >= '1380-01-01'",
    "day in (date '0001-01-01', date '0550-01-01')",
    "year(day) = 1376",
    "day between date '1582-10-01' and date '1582-10-20'",
    "day > timestamp '1380-06-01 12:00:00'",
    "at >= timestamp '2020-07-28 00:00:00'",
    "at = timestamp '2020-02-11 16:00:00.001000'",
    "at < '2020-01-01 05:00:00'",
    "at between timestamp '2020-05-04 20:00:00 Europe/Warsaw' and timestamp '2020-05-04 21:00:00+00:00'",
    "date_trunc('DAY', at) = date '2020-06-15'",
    "cast(at as date) = date '2020-03-24'",
    "at is not null and hour(at) = 3 and id < 1000",
    "local < timestamp_ntz '2020-01-01 00:30:00'",
    "local = timestamp_ntz '2020-01-02 09:25:00'",
    "local >= '2020-01-04 11:40:00'",
    "local = cast(at as timestamp_ntz)",
    "minute(local) = 21",
)
SHAPES = (
    "inner.a = 4001",
    "inner.A in (1, 2, 3) or inner is null and id < 20",
    "inner.deep.text = 't1001'",
    "inner.deep.text is null and id < 100",
    "inner.deep is not null and id = 5",
    "array_contains(tags, 'x3')",
    "tags[0] = 'x2002' or tags[1] is not null",
    "size(tags) = 2 and id < 4",
    "tags is null and id > 5030",
    "marks['k'] = 5",
    "map_contains_key(marks, 'k') and id between 2000 and 2008",
    "marks is null and id < 30",
    "exists(tags, x -> x = 'x5001')",
)
OPAQUE = (
    "id % 8 = 2 and id < 1020",
    "abs(id - 2025) = 5",
    "-id > -3",
    "id + 1 = 5050",
    "id * 2 = small * -2 and id > 5045",
    "size > id",
    "cast(small as double) < -5046",
    "cast(small as string) = '-1001'",
    "try_cast(name as int) is null and id < 3",
    "coalesce(small, -7) = -7",
    "nvl(flag, true) and id between 1000 and 1008",
    "case when id < 3 then true when id > 5047 then size > 0 else name is null and id < 1010 end",
    "if(flag, id = 4001, id = 5001)",
    "hash(id) % 50 = 7",
    "greatest(id, 5047) = 5048",
    "rand(7) < 2 and id = 8",
    "true",
    "false",
    "cast(null as boolean)",
    "id = null",
)
JOINS = (
    "select a.id x, b.name y from {t} a join {t} b on a.id = b.id + 1 where a.id < 1005",
    "select a.id x, b.id y from {t} a left join {t} b on a.id = -b.small and b.price > 50 where a.id > 5040",
    "select a.id x, b.id y from {t} a full join (select * from {t} where id < 3) b on a.id = b.id where"
    " a.id < 5 or a.id is null",
    "select a.id x from {t} a left semi join {t} b on a.id = b.id + 1000 where a.flag",
    "select a.id x from {t} a left anti join {t} b on a.id = b.id - 1000 where a.id > 3990",
    "select a.id x, b.id y from {t} a cross join {t} b where a.id < 2 and b.id > 5048",
    "select a.id x, b.n y from {t} a join (select flag, count(*) n from {t} group by flag) b on a.flag"
    " <=> b.flag where a.id < 9",
    "select a.id x, b.id y from {t} a join {t} b on a.size = b.size where a.id between 3000 and 3003 and"
    " b.id between 3000 and 3003",
    "select a.id x, c.id y from {t} a join {t} b using (id) join {t} c on b.inner.A = c.id where c.name like 'é3-301%'",
    "select /*+ merge(a, b) */ a.id x, b.at y from {t} a join {t} b on a.at = b.at where b.id in (5, 2002)",
)
SUBQUERIES = (
    "select id from {t} where id = (select max(id) from {t})",
    "select id from {t} where id in (select id + 1000 from {t} where id < 3)",
    "select id from {t} where id not in (select id from {t} where id > 2)",
    "select id from {t} a where exists (select 1 from {t} b where b.id = a.id + 5049)",
    "select id from {t} a where not exists (select 1 from {t} b where b.small = -a.id) and id < 50",
    "with few as (select * from {t} where id < 4), most as (select max(id) m from few) select id, m from few, most",
    "with recent as (select * from {t} where at >= '2020-07-28') select count(*) n from recent a join"
    " recent b using (id)",
    "select id from {t} where id < 3 union all select id from {t} where id < 2",
    "select flag from {t} where id < 2000 union select flag from {t} where id > 3000",
    "select id from {t} where id < 9 except select id from {t} where id > 4",
    "select id from {t} where id < 9 intersect select -small from {t}",
    "select s.id from (select id, name from {t} where id > 5000) s where s.name like '%-5047'",
    "select price from {t} where price > (select avg(price) + 24 from {t})",
    "select id from {t} where day = (select min(day) from {t} where id > 1500)",
)
CORRELATED = ("select id, (select count(*) from {t} b where b.flag = a.flag) n from {t} a where id in (1, 6, 1001)",)
"""Alone, since Spark's optimiser fails on this over a union of tables, plain ones too, inside another union."""
AGGREGATES = (
    "select count(*) n from {t}",
    "select count(*) n from {t} where id >= 3000",
    "select count(1) n, count(name) named, count(distinct flag) flags, count_if(size > 5) big from {t}",
    "select min(id) a, max(id) b, min(name) c, max(name) d, min(day) e, max(at) f, min(local) g, max(price) h from {t}",
    "select min(size) + 0.0D a, max(size) b, min(ratio) c, max(raw) d, min(flag) e, max(unsigned) f from {t}",
    "select sum(price) a, sum(id) b, cast(avg(small) as decimal(20, 6)) c from {t} where flag",
    "select flag, count(*) n, sum(price) s from {t} group by flag",
    "select flag, count(*) n from {t} group by flag having count(*) > 100",
    "select flag, id div 1000 k, count(*) n, grouping_id() g from {t} group by rollup(flag, id div 1000)",
    "select flag, id % 2 k, count(*) n from {t} where id < 2010 group by cube(flag, id % 2)",
    "select size, count(*) n from {t} where id between 3000 and 3020 group by size",
    "select distinct flag, size = size from {t}",
    "select distinct inner.deep.text x from {t} where id < 10",
    "select day, count(*) n from {t} where year(day) < 30 group by day",
    "select max(struct(size, id)) m from {t} where id < 3010",
    "select percentile(id, 0.5) p, approx_count_distinct(flag) a, bool_and(id >= 0) b from {t}",
    "select sort_array(collect_set(id % 3)) a from {t} where id < 100",
    "select flag, count(*) filter (where name like '%7') n from {t} group by flag",
    "select id div 1000 k, sum(s) t from (select id, cast(price as decimal(12, 2)) s from {t}) group by 1 order by 1",
)
SHAPED = (
    "select * from {t} where id in (5, 6, 3001)",
    "select id from {t} order by size desc nulls last, id limit 7",
    "select id, name from {t} order by id desc limit 3 offset 2",
    "select id, row_number() over (partition by flag order by id) r from {t} where id % 10 = 0",
    "select id, sum(price) over (order by id rows between 2 preceding and current row) s from {t} where id < 12",
    "select id, lag(at) over (order by id) a, rank() over (order by flag) r from {t} where id < 9",
    "select id, pos, tag from {t} lateral view posexplode(tags) as pos, tag where id < 4",
    "select id, k, v from {t} lateral view outer explode(marks) as k, v where id < 9",
    "select id, transform(tags, x -> concat(x, '!')) a, element_at(marks, 'k') b, cardinality(tags) c"
    " from {t} where id < 9",
    "select id, inner.* from {t} where inner.A > 5046",
    "select inner.deep d, named_struct('i', id, 'n', name) s from {t} where id < 8",
    "select id, case when size is null then 'none' when isnan(size) then 'nan' else 'some' end c from"
    " {t} where id between 3000 and 3010",
    "select id, cast(at as string) a, date_add(day, 1) b, price * 2 c, hex(raw) d, size / 0.5 e from {t} where id < 8",
    "select id x, small, unsigned, ratio, flag, local from {t} where id between 4998 and 5003",
    "select * from (select flag, id div 1000 k from {t}) pivot (count(1) for k in (0, 3, 5))",
    "select flag, k, v from (select flag, count(id) a, count(name) b from {t} group by flag) unpivot (v"
    " for k in (a, b))",
    "select stack(2, id, cast(small as bigint)) as x from {t} where id < 2",
)


def _where(conditions: tuple[str, ...]) -> tuple[str, ...]:
    """One query for each condition. The value read last shows that rows are read and not just counted."""
    return tuple(f"select id, name, size from {{t}} where {condition}" for condition in conditions)


CONDITIONS: dict[str, tuple[str, ...]] = {
    "whole numbers": WHOLE_NUMBERS,
    "floats": FLOATS,
    "text": TEXT,
    "moments": MOMENTS,
    "nested fields": SHAPES,
    "conditions that are not translated": OPAQUE,
}
FAMILIES: dict[str, tuple[str, ...]] = {
    **{family: _where(conditions) for family, conditions in CONDITIONS.items()},
    "joins": JOINS,
    "subqueries": SUBQUERIES,
    "a correlated subquery": CORRELATED,
    "aggregates": AGGREGATES,
    "other shapes": SHAPED,
}


def answers(spark: SparkSession, table: str, queries: tuple[str, ...]) -> dict[str, Counter[str]]:
    """The rows of each query, all queries being parts of one: what each pushes down is its own."""
    parts = [
        f"select {at} as query, to_json(struct(*), map('ignoreNullFields', 'false')) as row from ({query})"
        for at, query in enumerate(queries)
    ]
    found: dict[str, Counter[str]] = {query: Counter() for query in queries}
    for at, row in spark.sql(" union all ".join(parts).format(t=table)).collect():
        found[queries[at]][row] += 1
    return found
