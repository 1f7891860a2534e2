from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from underlay.api.lake import Lake
from underlay.errors import InvalidRequest, NotFound, TableNotFound, VersionNotFound
from underlay.spark import forget, refresh, register_version, table


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Iterator[Lake]:
    found = ul.connect(tmp_path / "lake")
    numbers = found.create_table("old.numbers", "id bigint")
    for number in range(3):
        numbers.append(pa.table({"id": [number]}))
    numbers.tag("audit", version=1)
    yield found
    forget(spark, found)


@pytest.mark.parametrize(
    ("name", "rows"), [("old.numbers", 3), ("old.numbers@v2", 2), ("old.numbers@2", 2), ("old.numbers@audit", 1)]
)
def test_table_is_read_at_the_version_that_the_name_says(spark: SparkSession, lake: Lake, name: str, rows: int):
    assert table(spark, lake, name).count() == rows


def test_registered_versions_are_names_for_sql_that_stay(spark: SparkSession, lake: Lake):
    assert register_version(spark, lake, "old.numbers@v2") == "`old`.`numbers@v2`"
    register_version(spark, lake, "old.numbers@audit")
    refresh(spark, lake)
    lake.table("old.numbers").append(pa.table({"id": [9]}))
    query = """
        select (select count(*) from old.numbers), (select count(*) from old.`numbers@v2`),
            (select count(*) from old.`numbers@audit`)
    """
    assert tuple(spark.sql(query).collect()[0]) == (4, 2, 1)
    lake.table("old.numbers").tag("audit", version=3)
    assert tuple(spark.sql(query).collect()[0]) == (4, 2, 3)
    lake.table("old.numbers").untag("audit")
    assert [row.viewName for row in spark.sql("show views in old").collect() if not row.isTemporary] == [
        "numbers",
        "numbers@v2",
    ]
    lake.drop_table("old.numbers")
    assert "old" not in [row.namespace for row in spark.sql("show databases").collect()]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("old.nothing@v1", TableNotFound),
        ("old.numbers@v17", VersionNotFound),
        ("old.numbers@nothing", NotFound),
        ("old.numbers", InvalidRequest),
    ],
)
def test_version_that_is_not_there_is_not_registered(
    spark: SparkSession, lake: Lake, name: str, error: type[Exception]
):
    with pytest.raises(error, match=r"old\.n"):
        register_version(spark, lake, name)
    assert "old" not in [row.namespace for row in spark.sql("show databases").collect()]
