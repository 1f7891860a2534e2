"""What both engines answer alike: every type of tables with its extreme values, and queries in the words they share."""

KINDS = """
create table shop.kinds (
  id int, flag boolean, tiny tinyint, small smallint, whole int, large bigint, part float, number double,
  price decimal(9, 2), wide decimal(38, 10), name varchar, raw blob, day date, at_ timestamptz, local_ timestamp,
  list_ bigint[], inner_ struct(a bigint, b varchar), map_ map(varchar, bigint)
)
"""
ROWS = """
insert into shop.kinds values
  (1, true, 127, 32767, 2147483647, 9223372036854775807, 0.1, 'nan', 9999999.99,
   9999999999999999999999999999.0123456789,
   'é😀"\\', 'a'::blob, '9999-12-31', '9999-12-31 23:59:59.999999+00', '2026-01-31 12:00:00.123456', [1, null, 3],
   {'a': 1, 'b': 'x'}, map {'k': 1, 'l': null}),
  (2, false, -128, -32768, -2147483648, -9223372036854775808, 'infinity', '-infinity', -0.01, -0.0000000001,
   '', ''::blob, '0001-01-01', '1969-12-31 23:59:59.999999+00', '0001-01-01 00:00:00', [], {'a': null, 'b': ''},
   map {}),
  (3, null, null, null, null, null, '-0.0', 1e-7, null, null, null, null, null, null, null, null, null, null),
  (4, true, 0, 0, 0, 9007199254740993, 1e38, 1e300, 0, 0, 'NULL', '\\x00\\xFF'::blob, '1970-01-01',
   '1970-01-01 00:00:00+00', '1970-01-01 00:00:00', [9007199254740993], {'a': 9007199254740993, 'b': null},
   map {'': 9007199254740993})
"""
SAME = """
select count(*), count(distinct zone), min(id), max(zone), sum(id), avg(id) from shop.orders
select id, zone, price from shop.orders where id between 10 and 20 and zone <> 'zone 3' order by id
select o.id from shop.orders o join shop.orders p on o.id = p.id + 1 where p.id < 5 order by o.id
select id from shop.orders where id < 3 union all select id from shop.orders where id < 2 order by id
with x as (select zone, count(*) n from shop.orders group by zone) select zone from x where n > 714 order by zone
select id, case id when 1 then 'a' else 'b' end, coalesce(null, id), id is null from shop.orders where id < 2 order by 1
select k.id, whole, large, part from shop.kinds k, shop.orders o where o.id = 1 order by whole, large desc
select k.id from shop.kinds k, shop.orders o where o.id = 1 order by whole nulls first, large nulls last
select distinct zone from shop.orders where zone like '%1' or zone in ('zone 2', 'zone 3') order by zone
select count(*) filter (where id > 5), sum(price), min(price), max(price), length(min(zone)) from shop.orders
""".strip().splitlines()
"""Whoever runs them: the same rows, names and types of columns."""
UNLIKE = """
select avg(price) from shop.orders
select id / 2 from shop.orders where id < 3 order by id
select zone, row_number() over (partition by zone order by id) r from shop.orders where id < 9 order by zone, r
select k.list_ from shop.kinds k, shop.orders o where o.id = k.id order by k.id
describe shop.orders
select 1
select id from shop.orders where id = -1
""".strip().splitlines()
"""What `auto` leaves to DuckDB, with another threshold too."""
