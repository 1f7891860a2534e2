"""Every query of the suite on tables of several layouts: the rows are those of plain Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import underlay as ul
from tests.contract.worlds import delete_positions
from tests.gate import sized, some
from tests.spark.answers.fuzz import matching, wrongly_dropped
from tests.spark.answers.sql_suite import CONDITIONS, FAMILIES, answers
from tests.spark.conftest import FILES, SCHEMA, rows_of
from tests.spark.relation.test_relation import planned
from underlay.api.lake import Lake
from underlay.spark.api.session import forget, refresh

LAYOUTS = ("apart", "mixed")
SHUFFLE = "spark.sql.shuffle.partitions"


def repeated(table: ul.Table, folder: Path) -> dict[int, list[int]]:
    """The positions of rows whose id was there before, by the number of their file."""
    found: dict[int, list[int]] = {}
    for number, file in enumerate(table.plan().choices.files()):
        ids = pq.read_table(next(folder.rglob(file.location)), columns=["id"])["id"].to_pylist()
        if again := [at for at, id_ in enumerate(ids) if id_ in ids[:at]]:
            found[number] = again
    return found


@pytest.fixture(scope="module")
def layouts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """The same rows in files that lie apart, and partitioned, sorted and among deleted rows; and a table without."""
    folder = tmp_path_factory.mktemp("layouts")
    lake = ul.connect(folder)
    files = [rows_of(file) for file in range(FILES)]
    apart = lake.create_table("suite.apart", SCHEMA, properties={"block_rows": 20})
    for rows in files:
        apart.append(rows)
    by = {"partition_by": ["flag", "truncate(100, id)"], "sort_by": ["-size", "name"], "properties": {"block_rows": 20}}
    mixed = lake.create_table("suite.mixed", SCHEMA, **by)
    mixed.append(pa.concat_tables([*files, *(rows.slice(0, 20) for rows in files[1:4])]))
    deleted = repeated(mixed, folder)
    assert sum(map(len, deleted.values())) == 60
    delete_positions(mixed, deleted)
    lake.create_table("suite.nothing", SCHEMA)
    known = spark.conf.get(SHUFFLE)
    spark.conf.set(SHUFFLE, "2")
    refresh(spark, lake)
    yield lake
    spark.conf.set(SHUFFLE, known)
    forget(spark, lake)


CHOSEN = {family: tuple(some(queries)) for family, queries in FAMILIES.items()}
"""The queries that are run."""


@pytest.fixture(scope="module")
def expected(spark: SparkSession, plain: str) -> dict[str, dict[str, Counter[str]]]:
    """The answers of the rows in memory, by family."""
    return {family: answers(spark, plain, queries) for family, queries in CHOSEN.items()}


@pytest.mark.parametrize("family", CONDITIONS)
def test_no_file_is_left_out_that_has_rows_of_the_answer(spark: SparkSession, layouts: Lake, plain: str, family: str):
    conditions = CONDITIONS[family]
    ids = dict(zip(conditions, matching(spark.table(plain), conditions, "id"), strict=True))
    assert sum(map(bool, ids.values())) > 0.8 * len(ids), "or this would show little"
    for layout in LAYOUTS:
        assert wrongly_dropped(spark.table(f"suite.{layout}"), ids, "id") == {}, layout


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_plain_spark(
    spark: SparkSession, layouts: Lake, expected: dict[str, dict[str, Counter[str]]], family: str
):
    queries = CHOSEN[family]
    for table in (f"suite.{layout}" for layout in LAYOUTS):
        found = answers(spark, table, queries)
        wrong = [query for query in queries if found[query] != expected[family][query]]
        assert wrong == [], table


def test_most_queries_find_rows(expected: dict[str, dict[str, Counter[str]]]):
    """Else equal answers show little."""
    found = [rows for queries in expected.values() for rows in queries.values()]
    assert len(found) >= sized(12, 60)
    assert sum(map(bool, found)) > sized(0.6, 0.9) * len(found)


@pytest.mark.parametrize("family", ["joins", "subqueries", "aggregates", "other shapes"])
def test_table_without_rows_answers_as_plain_spark(spark: SparkSession, layouts: Lake, plain: str, family: str):
    spark.table(plain).where("rand() > 2").createOrReplaceTempView("plain_nothing")
    assert answers(spark, "suite.nothing", CHOSEN[family]) == answers(spark, "plain_nothing", CHOSEN[family])


def files_read(frame: DataFrame) -> int:
    """How many files the scans of a query are handed."""
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    scans = [leaf for leaf in map(leaves.apply, range(leaves.size())) if leaf.nodeName().startswith("Scan parquet")]
    return sum(scan.selectedPartitions().totalNumberOfFiles() for scan in scans)


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("select id from suite.apart where id = 2003", 1),
        ("select id from suite.apart where name like 'é4%' or price > 50.40", 2),
        ("select id from suite.apart where upper(name) = 'É1-1001'", FILES),
        ("select a.id from suite.apart a join suite.apart b on a.id = b.id where a.id < 5 and b.price < 11", 2),
        ("select id from suite.mixed where not flag and id between 1000 and 1004", 1),
        ("select id from suite.mixed where flag is null", FILES),
        ("select count(*) from suite.nothing", 0),
    ],
)
def test_only_files_that_may_match_are_read(spark: SparkSession, layouts: Lake, query: str, files: int):
    assert files_read(spark.sql(query)) == files


def test_scans_by_name_are_native_and_read_only_what_is_named(spark: SparkSession, layouts: Lake):
    for layout in LAYOUTS:
        plan = planned(spark.sql(f"select inner.deep.text from suite.{layout} where id = 3 and price > 1"))
        assert plan.count("FileScan parquet") == plan.count("Batched: true") >= 1, plan
        assert "struct<id:bigint,price:decimal(12,2),inner:struct<deep:struct<text:string>>>" in plan, plan
