from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import underlay as ul
from tests.gate import some
from tests.spark.answers.fuzz import matching
from tests.spark.conftest import FILES, ROWS, rows_of
from underlay.api.lake import Lake
from underlay.errors import TableNotFound, VersionNotFound
from underlay.spark.api.explain import explain
from underlay.spark.files.file_index import TableFileIndex
from underlay.spark.jvm.gateway import gateway_of
from underlay.spark.ranged.frame import RangedReadWarning
from underlay.spark.relation.relation import read_table

CONDITIONS = {
    "id = 2003": 1,
    "id >= 4000": 2,
    "3007 > id and id > 2990": 1,
    "id in (1, 5003)": 2,
    "id in (1,2,3,4,5,6,7,8,9,10,11,12,2001)": 2,
    "id in (1,2,3,4,5,6,7,8,9,10,11,12,null)": 1,
    "id not in (1, 2)": FILES,
    "not (id < 5000)": 1,
    "id < 10 or id > 5030": 2,
    "small = -1004": 1,
    "unsigned > 2147483648L + 4900": 1,
    "name = 'é2-2003'": 1,
    "name like 'é4%'": 1,
    "startswith(name, 'é1-')": 1,
    "name in ('é0-1','é0-2','é0-3','é0-4','é0-5','é0-7','é0-8','é0-9','é0-10','é0-11','null')": 1,
    "name is null": FILES,
    "name <=> null": FILES,
    "name <=> 'é5-5001'": 1,
    "size = double('NaN')": 1,
    "isnan(size)": 1,
    "size > 1240": 2,
    "size <> 0": FILES,
    "size = 0.0D": 2,
    "size = -0.0D": 2,
    "ratio = float('300.1')": 1,
    "price = 30.01": 1,
    "price between 10 and 10.2": 1,
    "day < date '0100-01-01'": 1,
    "day in (date '0001-01-01', date '0550-01-01')": 2,
    "at >= timestamp '2020-07-01 00:00:00'": 1,
    "at = timestamp '2020-02-11 16:00:00.001000'": 1,
    "local < timestamp_ntz '2020-01-01 00:30:00'": 1,
    "flag": 3,
    "not flag": 3,
    "flag is null": FILES,
    "raw = X'000003E9'": 1,
    "inner.a = 4001": 1,
    "inner.deep.text = 't1001'": 2,
    "inner is null": FILES,
    "inner.deep.text is null and id < 100": 1,
    "array_contains(tags, 'x3')": FILES,
    "marks['k'] = 5": FILES,
    "id % 8 = 2": FILES,
    "try_cast(name as int) > 5": FILES,
    "upper(name) = 'É1-1001'": FILES,
    "cast(small as double) < -4000": 2,  # Catalyst takes the cast away
    "cast(small as string) < '-4000'": FILES,
    "size > id": FILES,
    "name collate UTF8_LCASE = 'É1-1001'": FILES,
    "true": FILES,
}
"""A condition, and how many of the six files may hold a row that meets it."""


@pytest.fixture(scope="module")
def items(spark: SparkSession, lake: Lake) -> DataFrame:
    return read_table(spark, lake, "shop.items")


def planned(frame: DataFrame) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        frame.explain(extended=False)
    return out.getvalue()


def scan_of(frame: DataFrame):
    node = frame._jdf.queryExecution().sparkPlan()
    while node.children().size():
        node = node.children().apply(0)
    return node


def handed_over(frame: DataFrame) -> int:
    return scan_of(frame).selectedPartitions().totalNumberOfFiles()


def found_by(frame: DataFrame, conditions: Iterable[str], column: str) -> list[list[int]]:
    """The sorted values of a column that each condition finds: every condition is a scan of its own in one query."""
    parts = [
        frame.where(where).select(f.lit(at).alias("at"), f.col(column).cast("long"))
        for at, where in enumerate(conditions)
    ]
    found: list[list[int]] = [[] for _ in parts]
    for at, value in reduce(DataFrame.unionAll, parts).collect():
        found[at].append(value)
    return list(map(sorted, found))


def test_only_files_that_may_match_are_handed_over(items: DataFrame):
    assert {condition: handed_over(items.where(condition)) for condition in CONDITIONS} == CONDITIONS


def test_answers_equal_those_of_plain_spark(spark: SparkSession, items: DataFrame, plain: str):
    run = some(tuple(CONDITIONS))
    expected = dict(zip(run, matching(spark.table(plain), run, "id"), strict=True))
    assert dict(zip(run, found_by(items, run, "id"), strict=True)) == expected


def test_rows_are_those_of_plain_spark_in_every_column(spark: SparkSession, items: DataFrame, plain: str):
    found, expected = (
        frame.where("id % 5 < 3 or name is null").toArrow().to_pylist() for frame in (items, spark.table(plain))
    )
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_scan_is_native_vectorised_and_reads_only_the_named_columns(items: DataFrame):
    plan = planned(items.where("id = 3 and inner.a > 1").select("name"))
    assert "FileScan parquet" in plan
    assert "Batched: true" in plan
    assert "PushedFilters: [IsNotNull(id), IsNotNull(inner.A), EqualTo(id,3), GreaterThan(inner.A,1)]" in plan
    assert "ReadSchema: struct<id:bigint,name:string,inner:struct<A:bigint>>" in plan


def test_size_is_exact(items: DataFrame, lake: Lake):
    statistics = items._jdf.queryExecution().optimizedPlan().stats()
    files = [file.size_bytes for file in lake.table("shop.items").snapshot().files()]
    assert int(str(statistics.sizeInBytes())) == sum(files)


def test_input_files_are_those_of_the_version(items: DataFrame, lake: Lake):
    names = {file.location for file in lake.table("shop.items").snapshot().files()}
    assert {path.rsplit("/", 1)[1] for path in items.inputFiles()} == names
    assert all("my%20lake" in path for path in items.inputFiles())


def test_self_join_and_aggregate_equal_plain_spark(spark: SparkSession, items: DataFrame, plain: str):
    items.createOrReplaceTempView("ours")
    query = """select a.flag, count(*), sum(b.price), max(a.inner.deep.text) from {0} a join {0} b
               on a.id = b.id + 1 where a.id < 3000 group by a.flag order by a.flag"""
    assert spark.sql(query.format("ours")).collect() == spark.sql(query.format(plain)).collect()


def test_frame_stays_at_its_version(spark: SparkSession, tmp_path):
    lake = ul.connect(tmp_path)
    table = lake.create_table("a.b", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    before = read_table(spark, lake, "a.b")
    table.append(pa.table({"id": [2]}))
    assert before.count() == 1
    assert read_table(spark, lake, "a.b").count() == 2
    assert read_table(spark, lake, "a.b", version=0).count() == 0
    table.tag("one", version=1)
    assert read_table(spark, lake, "a.b", tag="one").count() == 1


def test_cached_rows_serve_the_same_version_and_no_other(spark: SparkSession, lake: Lake):
    newest = read_table(spark, lake, "shop.items").cache()
    try:
        assert "InMemoryTableScan" in planned(read_table(spark, lake, "shop.items"))
        older = read_table(spark, lake, "shop.items", version=1)
        assert "InMemoryTableScan" not in planned(older)
        assert older.count() == ROWS
    finally:
        newest.unpersist()


def test_missing_file_is_an_error_whatever_the_session_ignores(spark: SparkSession, tmp_path):
    lake = ul.connect(tmp_path)
    lake.create_table("a.b", rows_of(0).schema).append(rows_of(0))
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(Exception, match=r"(?i)not.?exist|FILE_NOT_EXIST"):
            read_table(spark, lake, "a.b").collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_table_without_rows_is_empty(spark: SparkSession, tmp_path):
    lake = ul.connect(tmp_path)
    lake.create_table("a.b", rows_of(0).schema)
    assert read_table(spark, lake, "a.b").collect() == []


def test_table_or_version_that_is_not_there_is_named(spark: SparkSession, lake: Lake):
    with pytest.raises(TableNotFound, match="nothing"):
        read_table(spark, lake, "shop.nothing")
    with pytest.raises(VersionNotFound, match="99"):
        read_table(spark, lake, "shop.items", version=99)


def test_the_index_has_every_method_that_spark_may_call(spark: SparkSession):
    """A proxy inherits no default of an interface."""
    interface = gateway_of(spark).java_class("org.apache.spark.sql.execution.datasources.FileIndex")
    named = {one.getName() for one in interface.getMethods()}
    assert "listFiles" in named
    assert {name for name in named if not name.endswith("$")} - set(dir(TableFileIndex)) == set()


def test_plain_files_are_written_beside_a_cached_table(spark: SparkSession, lake: Lake, tmp_path: Path):
    cached = read_table(spark, lake, "shop.items").cache()
    assert cached.count() == FILES * ROWS
    spark.range(3).write.parquet(str(tmp_path / "plain"))
    assert spark.read.parquet(str(tmp_path / "plain")).count() == 3
    cached.unpersist()


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_instants_in_milliseconds_are_compared_with_finer_ones(spark: SparkSession, tmp_path: Path, unit: str):
    """T14: Spark cuts what such a column is compared with, and drops row groups by that."""
    lake = ul.connect(tmp_path / "lake")
    table = lake.create_table("fine.rows", pa.schema([("at", pa.timestamp(unit, "UTC"))]))
    table.append(pa.table({"at": pa.array([datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)], pa.timestamp(unit, "UTC"))}))
    frame = read_table(spark, lake, "fine.rows")
    literal = "timestamp '1970-01-01 00:00:01.000456Z'"
    for where, rows in {"at < ": 1, "at <> ": 1, "not at >= ": 1, "at = ": 0}.items():
        assert frame.where(where + literal).count() == rows, where


def test_column_named_like_the_way_to_a_field_hides_no_row_of_the_field(spark: SparkSession, tmp_path: Path):
    """Spark's pushed filters call both `a.b`, and would skip by the statistics of the wrong one."""
    lake = ul.connect(tmp_path)
    schema = pa.schema([("a", pa.struct([("b", pa.int64())])), ("a.b", pa.int64())])
    table = lake.create_table("twin.rows", schema, properties={"block_rows": "1"})
    table.append(pa.table({"a": [{"b": 1}, {"b": 11}], "a.b": [100, 200]}, schema))
    frame = read_table(spark, lake, "twin.rows")
    assert [frame.where(where).count() for where in ("a.b = 11", "a.b < 20", "`a.b` = 200")] == [1, 2, 1]


def test_column_that_sparks_reader_would_fill_itself_is_read_right(spark: SparkSession, tmp_path: Path):
    lake = ul.connect(tmp_path)
    table = lake.create_table("own.rows", "id bigint, _tmp_metadata_row_index double")
    table.append(pa.table({"id": [1, 2], "_tmp_metadata_row_index": [0.5, 1.5]}))
    with pytest.warns(RangedReadWarning, match="_tmp_metadata_row_index"):
        frame = read_table(spark, lake, "own.rows")
    assert frame.where("_tmp_metadata_row_index > 1").collect() == [(2, 1.5)]


def test_condition_on_what_spark_says_of_files_is_none_on_columns_of_that_name(spark: SparkSession, tmp_path: Path):
    lake = ul.connect(tmp_path)
    table = lake.create_table("named.files", "file_size bigint, file_name string")
    for size in (1, 2):
        table.append(pa.table({"file_size": [size], "file_name": ["a"]}))
    frame = read_table(spark, lake, "named.files")
    assert frame.where("_metadata.file_size > 100 and _metadata.file_name like '%.parquet'").count() == 2
    assert frame.where("_metadata.file_name > 'a' or _metadata.file_name < '9'").count() == 2
    assert "1 of 2 files" in explain(frame.where("file_size = 1"))


def test_codec_that_spark_lacks_is_left_to_the_ranged_reader(spark: SparkSession, tmp_path: Path):
    lake = ul.connect(tmp_path)
    table = lake.create_table("small.rows", "id bigint", properties={"codec": "brotli"})
    table.append(pa.table({"id": [1, 2]}))
    with pytest.warns(RangedReadWarning, match="brotli"):
        frame = read_table(spark, lake, "small.rows")
    assert frame.where("id > 1").collect() == [(2,)]
