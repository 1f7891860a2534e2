"""Writers of DataFrames that name a table of a lake, and those that name anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import underlay as ul
from tests.spark.sql.test_parser import parser_field
from underlay.api.lake import Lake
from underlay.spark import forget, session
from underlay.spark.jvm.gateway import call, java_session
from underlay.spark.tasks import collect

pytestmark = pytest.mark.local_only

TABLE = "writers.rows"
PARTS = "writers.parts"


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Iterator[Lake]:
    found = ul.connect(tmp_path / "lake")
    found.create_table(TABLE, "id bigint, name string, size double").append(pa.table({"id": [1], "name": ["a"]}))
    found.create_table(PARTS, "id bigint, zone string", partition_by=["zone"])
    session(found, spark)
    yield found
    forget(spark, found)


def rows(spark: SparkSession, name: str = TABLE) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in spark.table(name).collect()), key=str)


def frame(spark: SparkSession, *values: tuple[object, ...], columns: str = "name string, id int") -> DataFrame:
    return spark.createDataFrame(list(values), columns)


@pytest.fixture(params=["by the driver", "by tasks"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "by tasks":
        monkeypatch.setattr(collect, "SMALL_ROWS", 0)


def test_write_to_goes_by_names_in_one_commit(spark: SparkSession, lake: Lake, way: None):
    frame(spark, ("b", 2), ("c", 3)).writeTo(TABLE).append()
    assert rows(spark) == [(1, "a", None), (2, "b", None), (3, "c", None)]
    assert lake.table(TABLE).version == 2
    frame(spark, ("z", 9)).writeTo(TABLE).overwrite((f.col("id") > 1) & (f.col("name") != "c"))
    assert rows(spark) == [(1, "a", None), (3, "c", None), (9, "z", None)]
    assert lake.table(TABLE).version == 3
    spark.table(TABLE).where("id < 9").writeTo(f"spark_catalog.{TABLE}").overwrite(f.lit(True))
    assert rows(spark) == [(1, "a", None), (3, "c", None)]
    assert lake.table(TABLE).version == 4
    nothing = frame(spark, columns="id int")
    nothing.writeTo(TABLE).overwrite(f.lit(True))
    assert rows(spark) == []


def test_partitions_of_the_rows_are_overwritten(spark: SparkSession, lake: Lake, way: None):
    frame(spark, ("a", 1), ("b", 2), ("b", 3), columns="zone string, id int").writeTo(PARTS).append()
    frame(spark, ("b", 4), columns="zone string, id int").writeTo(PARTS).overwritePartitions()
    assert rows(spark, PARTS) == [(1, "a"), (4, "b")]
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        frame(spark, (5, "a"), columns="x int, y string").write.insertInto(PARTS, overwrite=True)
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert rows(spark, PARTS) == [(4, "b"), (5, "a")]
    assert lake.table(PARTS).version == 3
    frame(spark, ("n", 7)).writeTo(TABLE).overwritePartitions()
    assert rows(spark) == [(7, "n", None)]


def test_insert_into_goes_by_position(spark: SparkSession, lake: Lake):
    given = frame(spark, (2, "b", 0.5), columns="name int, id string, other double")
    given.write.insertInto(TABLE)
    assert rows(spark) == [(1, "a", None), (2, "b", 0.5)]
    given.write.insertInto(TABLE, overwrite=True)
    assert rows(spark) == [(2, "b", 0.5)]
    with pytest.raises(PySparkException, match="wrong number of columns"):
        frame(spark, ("b", 2)).write.insertInto(TABLE)


def test_tables_are_made_and_replaced(spark: SparkSession, lake: Lake, way: None):
    made = frame(spark, ("b", 2)).writeTo("writers.made").using("underlay").tableProperty("block_rows", "1000")
    made.partitionedBy(f.col("name")).create()
    definition = lake.table("writers.made").definition
    assert [part.transform for part in definition.partition_by] == ["identity"]
    assert definition.properties == {"block_rows": "1000"}
    assert rows(spark, "writers.made") == [("b", 2)]
    with pytest.raises(PySparkException, match=r"writers\.made: the table already exists"):
        frame(spark, ("c", 3)).writeTo("writers.made").create()
    spark.table("writers.made").selectExpr("id * 2 as twice").writeTo("writers.made").replace()
    assert rows(spark, "writers.made") == [(4,)]
    frame(spark, ("c", 3)).writeTo("writers.made").createOrReplace()
    assert rows(spark, "writers.made") == [("c", 3)]
    with pytest.raises(PySparkException, match=r"writers\.nothing: no such table"):
        frame(spark, ("c", 3)).writeTo("writers.nothing").replace()
    frame(spark, ("c", 3)).writeTo("writers_new.first").using("underlay").createOrReplace()
    assert rows(spark, "writers_new.first") == [("c", 3)]
    bad = spark.range(3).selectExpr("raise_error('no such row') as a")
    with pytest.raises(PySparkException, match="no such row"):
        bad.writeTo("writers.bad").create()
    assert {table.name for table in lake.tables()} == {TABLE, PARTS, "writers.made", "writers_new.first"}


def test_tables_are_saved_by_any_mode(spark: SparkSession, lake: Lake):
    given = frame(spark, ("b", 2))
    for mode in ("error", "errorifexists"):
        with pytest.raises(PySparkException, match=r"writers\.rows: the table already exists"):
            given.write.mode(mode).saveAsTable(TABLE)
    given.write.mode("ignore").saveAsTable(TABLE)
    assert rows(spark) == [(1, "a", None)]
    given.write.mode("append").saveAsTable(TABLE)
    assert rows(spark) == [(1, "a", None), (2, "b", None)]
    given.write.mode("overwrite").saveAsTable(TABLE)
    assert rows(spark) == [("b", 2)]
    for mode in ("error", "ignore", "append", "overwrite"):
        given.write.mode(mode).partitionBy("name").saveAsTable(f"writers.{mode}")
        assert rows(spark, f"writers.{mode}") == [("b", 2)]
        assert lake.table(f"writers.{mode}").definition.partition_by
    with pytest.raises(PySparkException, match=r"writers\.text: the tables of this dataset are in a lake"):
        given.write.format("csv").saveAsTable("writers.text")


def test_rows_that_do_not_fit_are_refused_in_words(spark: SparkSession, lake: Lake):
    lake.create_table("writers.inner", "id bigint not null, pair struct<a: int, b: int>")
    given = frame(spark, ("b", 2))
    refused: list[tuple[str, Callable[[], object]]] = [
        ("no such column.*found more", lambda: given.withColumn("more", f.lit(1)).writeTo(TABLE).append()),
        ("not stored in the column", lambda: given.selectExpr("'x' as id").writeTo(TABLE).append()),
        ("named twice", lambda: given.selectExpr("id", "id as ID").writeTo(TABLE).append()),
        ("(?s)id.*required|required.*id", lambda: given.selectExpr("null as pair").writeTo("writers.inner").append()),
        (
            r"pair: the fields of a struct.*expected a, b, found b, a",
            lambda: given.selectExpr("id", "named_struct('b', 1, 'a', 2) as pair").writeTo("writers.inner").append(),
        ),
        (r"writers\.nothing: no such table", lambda: given.writeTo("writers.nothing").append()),
        (r"writers\.nothing: no such table", lambda: given.write.insertInto("writers.nothing")),
        ("never changes", lambda: given.writeTo("writers.`rows@v1`").append()),
        ("NUMERIC_VALUE_OUT_OF_RANGE|CAST_OVERFLOW", lambda: _too_large(given)),
    ]
    ul.spark.register_version(spark, lake, f"{TABLE}@v1")
    for words, write in refused:
        with pytest.raises(PySparkException, match=words):
            write()
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        given.writeTo(TABLE).overwrite(f.col("nothing") > 1)
    assert rows(spark) == [(1, "a", None)]
    assert lake.table(TABLE).version == 1


def _too_large(given: DataFrame) -> None:
    given.selectExpr("cast(1e20 as decimal(30, 0)) as id").writeTo(TABLE).append()


def test_write_with_a_token_happens_once(spark: SparkSession, lake: Lake):
    for _ in range(2):
        frame(spark, ("b", 2)).writeTo(TABLE).option("token", "once").append()
    assert rows(spark) == [(1, "a", None), (2, "b", None)]


def test_new_sessions_and_current_databases_are_understood(spark: SparkSession, lake: Lake):
    later = spark.newSession()
    later.sql("use writers")
    frame(later, ("b", 2)).writeTo("rows").append()
    frame(later, ("c", 3)).write.saveAsTable("other")
    assert rows(spark) == [(1, "a", None), (2, "b", None)]
    assert rows(spark, "writers.other") == [("c", 3)]
    later.range(2).createOrReplaceTempView("rows")
    with pytest.raises(AnalysisException):
        frame(later, ("b", 2)).writeTo("rows").append()
    assert lake.table(TABLE).version == 2


def others(spark: SparkSession, given: DataFrame) -> list[object]:
    """What writers of names that are none of ours do."""
    mine, named = given.write, "spark_catalog.default.writers_mine"
    steps: list[Callable[[], object]] = [
        lambda: mine.saveAsTable("writers_mine"),
        lambda: mine.saveAsTable("default.writers_mine"),
        lambda: mine.mode("ignore").saveAsTable(named),
        lambda: mine.mode("append").saveAsTable("writers_mine"),
        lambda: mine.insertInto(named),
        lambda: mine.insertInto("writers_mine", overwrite=True),
        lambda: given.writeTo("writers_mine").append(),
        lambda: given.writeTo(named).overwritePartitions(),
        lambda: spark.table("writers_mine").count(),
        lambda: mine.mode("overwrite").saveAsTable("writers_mine"),
        lambda: given.writeTo("default.writers_made").using("parquet").create(),
        lambda: given.writeTo("default.writers_made").using("parquet").createOrReplace(),
        lambda: given.writeTo("nowhere.made").create(),
        lambda: mine.mode("error").saveAsTable("nowhere.made"),
        lambda: mine.insertInto("nowhere.made"),
        lambda: mine.insertInto("default.nothing"),
        lambda: given.writeTo("default.nothing").append(),
        lambda: given.writeTo("nothing").overwrite(f.lit(True)),
        lambda: given.writeTo("writers_view").append(),
        lambda: mine.insertInto("writers_view"),
        lambda: mine.mode("append").saveAsTable("writers_view"),
        lambda: given.writeTo("no such name").append(),
        lambda: given.writeTo("catalog.a.b").append(),
        lambda: spark.sql("drop table writers_mine").collect(),
        lambda: spark.sql("drop table if exists writers_made").collect(),
    ]
    return [_outcome(step) for step in steps]


def _outcome(step: Callable[[], object]) -> object:
    try:
        return step()
    except PySparkException as error:
        return type(error), error.getCondition(), error.getSqlState(), error.getMessageParameters()


def test_writers_of_other_names_do_what_they_did(spark: SparkSession, lake: Lake):
    given = frame(spark, ("b", 2))
    spark.range(2).createOrReplaceTempView("writers_view")
    through = others(spark, given)
    state, field = parser_field(spark)
    ours = call(field, "get", state)
    call(field, "set", state, call(call(call(java_session(spark), "sessionState"), "catalog"), "parser"))
    try:
        without = others(spark, given)
    finally:
        call(field, "set", state, ours)
        spark.catalog.dropTempView("writers_view")
    for at, (one, other) in enumerate(zip(through, without, strict=True)):
        assert one == other, at
