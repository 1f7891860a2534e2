"""The lake of the page's tests: small tables with what a page may meet."""

from __future__ import annotations

from pathlib import Path

import underlay as ul

TRIPS = 20_000
BLOCK_ROWS = 1_000
NASTY_NAME = '<img src=x onerror="document.title=1">'


def fill(folder: Path) -> None:
    """`taxi.trips` has 20 blocks in order of time and three versions; `odd.*` have odd names and values; the tokens
    `reader` and `writer` of tests/server/conftest.py see `shop`, `admin` sees everything."""
    lake = ul.connect(str(folder), registry="none")
    lake.sql("create table shop.orders (id bigint, zone varchar, price decimal(9, 2))")
    lake.sql("insert into shop.orders select i, 'zone ' || i % 7, i / 4 from range(5000) t(i)")
    lake.sql("create table secret.pay (id bigint, salary bigint)")
    lake.sql("insert into secret.pay values (1, 4711)")
    trips = lake.create_table(
        "taxi.trips",
        "id bigint, at timestamp, zone string, fare decimal(9, 2), km double",
        sort_by=["at"],
        properties={"block_rows": str(BLOCK_ROWS)},
    )
    rows = (
        "select i, timestamp '2024-01-01' + to_minutes(i), ['JFK', 'EWR', 'LGA'][1 + i % 3],"
        " ((i * 37) % 9000)::decimal(9, 2) / 100, case when i % 11 = 0 then null else i / 10 end"
    )
    lake.sql(f"insert into taxi.trips {rows} from range({TRIPS}) t(i)")
    lake.sql("delete from taxi.trips where id < 10")
    lake.sql("update taxi.trips set zone = 'JFK' where id between 5000 and 5010")
    assert trips.name == "taxi.trips"
    lake.sql(
        f'create table odd.names ("{NASTY_NAME.replace(chr(34), chr(34) * 2)}" varchar, "شارع" bigint, "🚕" bigint)'
    )
    lake.sql("insert into odd.names values (null, 1, 2), ('', 9007199254740993, -9007199254740993), ('NULL', 0, 0)")
    lake.sql(f"insert into odd.names values ('{NASTY_NAME}', null, null)")
    lake.sql("create table odd.nothing (a bigint, b varchar)")
    wide = ", ".join(f"c{number} bigint" for number in range(300))
    lake.sql(f"create table odd.wide ({wide})")
    lake.sql(f"insert into odd.wide select {', '.join(map(str, range(300)))}")
    lake.close()
