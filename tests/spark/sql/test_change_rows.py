"""Statements that change rows, against DuckDB's answers to the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.gate import sized
from underlay.api.lake import Lake
from underlay.spark import forget, session
from underlay.spark.tasks import collect

Rows = list[tuple[object, ...]]
TABLE = "change.rows"
COLUMNS = pa.schema([pa.field("id", pa.int64()), ("zone", pa.string()), ("fare", pa.float64())])


@pytest.fixture
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Lake]:
    found = ul.connect(tmp_path_factory.mktemp("change") / "lake")
    session(found, spark)
    yield found
    forget(spark, found)


def rows_of(count: int) -> pa.Table:
    zones = [None if at % 7 == 6 else "abc"[at % 3] for at in range(count)]
    return pa.table({"id": range(count), "zone": zones, "fare": [at / 2 for at in range(count)]}, COLUMNS)


def sorted_rows(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: tuple((value is None, value or 0) for value in row))


class Model:
    """The same table in DuckDB."""

    def __init__(self, rows: pa.Table) -> None:
        self.duckdb = duckdb.connect()
        self.duckdb.execute("create schema change")
        self.duckdb.from_arrow(rows).create(TABLE)

    def rows(self) -> Rows:
        return sorted_rows(self.duckdb.execute(f"select * from {TABLE}").fetchall())


def found(spark: SparkSession) -> Rows:
    return sorted_rows([tuple(row) for row in spark.sql(f"select * from {TABLE}").collect()])


def one_of(random: Random) -> str:
    """A statement that both understand."""
    low, some = random.randrange(90), random.randrange(3, 30)
    condition = random.choice(
        [
            f"id between {low} and {low + some}",
            f"zone = '{random.choice('abc')}' and id > {low}",
            "zone is null",
            f"id in (select id + 1 from {TABLE} where fare < {some})",
            f"exists (select 1 from {TABLE} o where o.id = t.id + {some})",
            f"not (fare > {low} and zone <> 'a')",
        ]
    )
    source = f"select id + {low} as id, zone || 's' as zone, fare * 2 as fare from {TABLE} where id < {some}"
    source = f"(select id, max(zone) as zone, max(fare) as fare from ({source}) as doubled group by id)"
    matched = random.choice(
        [
            "when matched then update set zone = s.zone, fare = t.fare + s.fare",
            f"when matched and s.fare > {some} then delete when matched then update set zone = 'm'",
            "when matched and t.zone is null then update set zone = 'n', fare = s.fare",
        ]
    )
    missing = random.choice(
        [
            "when not matched then insert (id, zone, fare) values (s.id, s.zone, s.fare)",
            f"when not matched and s.id % 2 = 0 then insert (id, fare) values (s.id, {some})",
            "",
        ]
    )
    gone = random.choice(
        [
            f"when not matched by source and t.id > {100 + low} then delete",
            "when not matched by source and t.zone = 'a' then update set fare = -1",
            "",
            "",
        ]
    )
    return random.choice(
        [
            f"insert into {TABLE} values ({low + 100}, 'new', {some}.5), ({low + 200}, null, null)",
            f"insert into {TABLE} (fare, id) select fare, id + 300 from {TABLE} as t where {condition}",
            f"update {TABLE} as t set fare = coalesce(fare, 0) + {some}, zone = 'u' where {condition}",
            f"delete from {TABLE} as t where {condition}",
            f"merge into {TABLE} as t using {source} as s on t.id = s.id {matched} {missing} {gone}",
            f"with s as {source} merge into {TABLE} as t using s on t.id = s.id {matched} {missing} {gone}",
        ]
    )


@pytest.mark.parametrize("way", ["by the driver", "by tasks"])
def test_statements_give_the_tables_that_duckdb_gives(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, way: str
):
    random = Random(way)
    if way == "by tasks":
        monkeypatch.setattr(collect, "SMALL_ROWS", 0)
    rows = rows_of(100)
    lake.create_table(TABLE, COLUMNS).append(rows)
    model = Model(rows)
    for _ in range(sized(8, 60)):
        statement = one_of(random)
        version = lake.table(TABLE).version
        spark.sql(statement).collect()
        model.duckdb.execute(statement)
        assert found(spark) == model.rows(), statement
        assert lake.table(TABLE).version <= version + 1, statement


def test_statements_answer_rows_of_counts(spark: SparkSession, lake: Lake):
    lake.create_table(TABLE, COLUMNS).append(rows_of(3))

    def answer(statement: str, **args: object) -> dict[str, int]:
        (row,) = spark.sql(statement, args=args or None).collect()
        return row.asDict()

    inserted = answer(f"insert into {TABLE} values (7, 'g', 1), (8, 'h', 2)")
    assert inserted == {"num_affected_rows": 2, "num_inserted_rows": 2}
    assert answer(f"insert into {TABLE} by name select 9 as id, 'i' as zone")["num_inserted_rows"] == 1
    assert answer(f"update {TABLE} set {TABLE}.fare = 5 where rows.id >= 8") == {"num_affected_rows": 2}
    assert answer(f"delete from {TABLE} where id = 9") == {"num_affected_rows": 1}
    merging = (
        f"merge into {TABLE} using (select 7 as id, 'seven' as zone, 7D as fare union all select 10, 'ten', 10D) as s "
        f"on {TABLE}.id = s.id when matched then update set * when not matched then insert * "
        f"when not matched by source and {TABLE}.id = 8 then delete"
    )
    assert answer(merging) == {
        "num_affected_rows": 3,
        "num_updated_rows": 1,
        "num_deleted_rows": 1,
        "num_inserted_rows": 1,
    }
    assert found(spark)[-2:] == [(7, "seven", 7.0), (10, "ten", 10.0)]
    replaced = answer(f"insert into {TABLE} replace where id >= 7 select 12, 'z', 1")
    assert replaced == {"num_affected_rows": 1, "num_inserted_rows": 1}
    answer(f"insert overwrite {TABLE} select * from {TABLE} where id > 1")
    assert found(spark) == [(2, "c", 1.0), (12, "z", 1.0)]
    assert spark.sql(f"truncate table {TABLE}").collect() == []
    assert found(spark) == []


def test_overwritten_partitions_are_those_of_the_rows_or_those_that_are_named(spark: SparkSession, lake: Lake):
    columns = pa.schema([("id", pa.int64()), ("zone", pa.string()), ("day", pa.timestamp("us"))])
    lake.create_table(TABLE, columns, partition_by=["zone", "month(day)"])
    values = "(1, 'a', timestamp_ntz '2024-01-05'), (2, 'a', timestamp_ntz '2024-02-05'), (3, 'b', null)"
    spark.sql(f"insert into {TABLE} values {values}").collect()
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        new = "(4, 'a', timestamp_ntz '2024-02-28'), (5, 'b', null)"
        spark.sql(f"insert overwrite {TABLE} values {new}").collect()
        assert {row[0] for row in found(spark)} == {1, 4, 5}
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    spark.sql(f"insert overwrite {TABLE} partition (zone = 'a') select 6, timestamp_ntz '2025-01-01'").collect()
    assert {row[:2] for row in found(spark)} == {(6, "a"), (5, "b")}
    spark.sql(f"insert overwrite {TABLE} values (7, 'c', null)").collect()
    assert {row[0] for row in found(spark)} == {7}
