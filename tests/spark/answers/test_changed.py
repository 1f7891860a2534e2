"""Tables whose rows were changed by verbs: Spark reads them as a scan does, by name and at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.gate import part
from underlay.api.lake import Lake
from underlay.spark import forget, session

NAME = "changed.rows"
CONDITIONS = ("id >= 0", "id between 40 and 60", "value = 0", "size > 2", "name = 'n7'", "not (name = 'n7')")


def rows(ids: list[int], value: int = 0) -> pa.Table:
    odd = [float("nan"), -0.0, 2.5, None]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "value": pa.array([value] * len(ids), pa.int64()),
            "size": pa.array([odd[number % 4] for number in ids], pa.float64()),
            "name": pa.array([f"n{number}" for number in ids]),
        }
    )


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Iterator[Lake]:
    """Files of five blocks, and a registered one."""
    found = ul.connect(tmp_path / "lake")
    schema = "id bigint not null, value bigint, size double, name string"
    table = found.create_table(NAME, schema, key=["id"], sort_by=["id"], properties={"block_rows": 10})
    table.append(rows(list(range(50))))
    table.append(rows(list(range(50, 100))))
    pq.write_table(rows(list(range(100, 120))), tmp_path / "given.parquet")
    table.register(tmp_path / "given.parquet")
    yield session(found, spark) and found
    forget(spark, found)


def merge(table: ul.Table) -> object:
    merging = table.merge(rows([8, 103, 300], 5), "t.id = s.id", source_alias="s", target_alias="t")
    return merging.when_matched_delete("s.id = 8").when_matched_update_all().when_not_matched_insert_all().execute()


def evolve(table: ul.Table) -> object:
    with table.evolve() as change:
        change.add_column("more", "int", default=7)
        change.rename_column("value", "worth")
        change.rename_column("worth", "value")
    return table.upsert(rows([1, 101], 3).append_column("more", pa.array([1, 2], pa.int32())))


VERBS: list[Callable[[ul.Table], object]] = [
    lambda table: table.delete("id in (3, 55, 110)"),
    lambda table: table.upsert(rows([4, 56, 111, 200], 1)),
    lambda table: table.update({"value": "value + 1", "name": "name || '!'"}, where="id % 10 = 6"),
    lambda table: table.delete("id between 20 and 28"),
    merge,
    lambda table: table.delete(rows=pa.table({"id": pa.array([104, 57], pa.int64())}), key=["id"]),
    lambda table: table.overwrite(rows([70, 71], 9), where="id between 70 and 79"),
    evolve,
    lambda table: table.rollback(6),
    lambda table: table.truncate(),
]


def test_spark_reads_what_a_scan_reads_after_every_verb(spark: SparkSession, lake: Lake):
    table = lake.table(NAME)
    for number, verb in enumerate(VERBS):
        verb(table)
        whole = table.to_arrow()
        found = spark.sql(f"select * from {NAME}")
        assert found.columns == whole.column_names
        assert shown(found.toArrow()) == shown(whole), f"verb {number}"
        for condition in part(CONDITIONS, number, of=6):
            counted = spark.sql(f"select count(*) from {NAME} where {condition}").collect()[0][0]
            assert counted == table.count(condition), f"verb {number}: {condition}"
    assert spark.sql(f"select count(*) from {NAME}").collect()[0][0] == 0


def shown(rows: pa.Table) -> list[str]:
    """Rows as texts, in an order; minus zero is zero."""
    return sorted(
        str({name: value or 0 if value == 0 else value for name, value in row.items()}) for row in rows.to_pylist()
    )
