from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import datasource as pushed
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.pandas.types import to_arrow_schema

import underlay as ul
from tests.contract.worlds import delete_positions, rename_column
from tests.spark.conftest import FILES, ROWS, SCHEMA, rows_of
from underlay.api.lake import Lake
from underlay.errors import InvalidRequest
from underlay.prune import matches
from underlay.schema.convert.arrow import from_arrow
from underlay.spark.api.data_source import UnderlayDataSource, register_source
from underlay.spark.filters.pushed import read_pushed
from underlay.spark.source.options import read_options
from underlay.spark.source.read import PushingReader, TableReader
from underlay.spark.types.arrow_types import arrow_schema
from underlay.spark.types.spark_types import spark_schema

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
PUSHED = (
    "id in (1, 5003) and name is not null",
    "name like 'é4%' and not (small <= -4010) and name <> 'é4-4001'",
    "size = double('NaN')",
    "size = -0.0D",
    "price between 10 and 10.2 and array_contains(tags, 'x1003')",
    "at >= timestamp '2020-07-01 00:00:00.000001' and day > date '0100-01-01'",
    "local < timestamp_ntz '2020-01-01 00:30:00'",
    "inner.deep.text = 't1001'",
)


@pytest.fixture(scope="module", autouse=True)
def _registered(spark: SparkSession):
    register_source(spark)


@pytest.fixture
def pushing(spark: SparkSession):
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.unset(PUSHDOWN)


def reader_of(spark: SparkSession, lake: Lake) -> DataFrameReader:
    return spark.read.format("underlay").option("lake", lake.url)


def spark_rows(frame: DataFrame) -> list[str]:
    """The rows as text, in which NaN equals NaN and both zeros differ."""
    return sorted(str(row) for row in frame.collect())


def test_all_rows_of_every_type_are_those_of_plain_spark(spark: SparkSession, lake: Lake, plain: str):
    frame = reader_of(spark, lake).load("shop.items")
    assert frame.schema == spark_schema(lake.table("shop.items").snapshot().schema)
    assert spark_rows(frame) == spark_rows(spark.table(plain))


@pytest.mark.usefixtures("pushing")
def test_filters_that_are_pushed_give_the_rows_of_plain_spark(spark: SparkSession, lake: Lake, plain: str):
    reader = reader_of(spark, lake).option("push_filters", "true")

    def rows(frames: Iterable[DataFrame]) -> list[str]:
        found = [frame.selectExpr(f"{at} as at", "id", "size") for at, frame in enumerate(frames)]
        return spark_rows(reduce(DataFrame.unionAll, found))

    expected = rows(spark.table(plain).where(condition) for condition in PUSHED)
    assert rows(reader.load("shop.items").where(condition) for condition in PUSHED) == expected


@pytest.mark.usefixtures("pushing")
def test_pushed_filters_prune(spark: SparkSession, lake: Lake):
    reader = reader_of(spark, lake).option("push_filters", "true").option("task_bytes", 1)
    assert reader.load("shop.items").where("id between 2010 and 3010").rdd.getNumPartitions() == 2


@pytest.mark.usefixtures("pushing")
def test_a_dataframe_that_is_filtered_twice_is_read_right_when_nobody_asked_for_pushing(
    spark: SparkSession, lake: Lake
):
    frame = reader_of(spark, lake).option("columns", "id").load("shop.items")
    assert frame.where("id < 5").union(frame.where("id >= 5040")).count() == 15
    assert frame.count() == FILES * ROWS


def test_asking_for_filters_that_spark_does_not_push_changes_nothing(spark: SparkSession, lake: Lake):
    reader = reader_of(spark, lake).option("columns", "id").option("push_filters", "true")
    assert reader.load("shop.items").where("id < 5").count() == 5


SCHEMA_OF_TABLE = from_arrow(SCHEMA)
AT = ("at",)


@pytest.mark.parametrize(
    "given",
    [
        pushed.EqualTo(("id",), 2003),
        pushed.EqualTo(("id",), None),
        pushed.Not(pushed.EqualTo(("size",), math.nan)),
        pushed.GreaterThan(("size",), 1240.0),
        pushed.LessThanOrEqual(("size",), -0.0),
        pushed.EqualTo(("ratio",), 300.1),
        pushed.In(("name",), ["é2-2003", None]),
        pushed.Not(pushed.In(("name",), ["é2-2003", None])),
        pushed.EqualNullSafe(("name",), None),
        pushed.StringStartsWith(("name",), "é4"),
        pushed.GreaterThanOrEqual(("price",), Decimal("30.01")),
        pushed.LessThan(("day",), date(100, 1, 1)),
        pushed.GreaterThan(AT, datetime(2020, 7, 1, tzinfo=UTC)),
        pushed.LessThan(("local",), datetime(2020, 1, 1, 0, 30)),
        pushed.EqualTo(("flag",), True),
        pushed.EqualTo(("raw",), b"\0\0\x03\xe9"),
        pushed.IsNull(("inner", "deep", "text")),
        pushed.IsNotNull(("inner", "A")),
        pushed.GreaterThan(("unsigned",), 2**31 + 4900),
    ],
    ids=str,
)
def test_a_filter_as_spark_hands_it_over_is_the_same_condition_on_rows(lake: Lake, given: pushed.Filter):
    predicate = read_pushed(given, SCHEMA_OF_TABLE)
    assert predicate is not None
    table = lake.table("shop.items")
    whole = table.to_arrow()
    expected = whole.filter(matches(predicate, whole))
    assert table.scan(["id"], predicate).to_arrow()["id"].to_pylist() == expected["id"].to_pylist()


@pytest.mark.parametrize(
    "given",
    [
        pushed.StringContains(("name",), "x"),
        pushed.EqualTo(("name",), 5),
        pushed.EqualTo(("other",), 5),
        pushed.EqualTo(("tags",), ["x"]),
        pushed.Not(pushed.StringEndsWith(("name",), "x")),
    ],
    ids=str,
)
def test_what_cannot_be_translated_is_left_to_spark(given: pushed.Filter):
    assert read_pushed(given, SCHEMA_OF_TABLE) is None


def test_a_condition_by_option_prunes_and_filters(spark: SparkSession, lake: Lake):
    frame = reader_of(spark, lake).option("where", "id >= 2010 and id < 2020").load("shop.items")
    assert sorted(row.id for row in frame.select("id").collect()) == list(range(2010, 2020))
    assert frame.rdd.getNumPartitions() == 1


def test_columns_by_option_are_read_alone_in_their_order(spark: SparkSession, lake: Lake):
    frame = reader_of(spark, lake).option("columns", "name, id").load("shop.items")
    assert frame.columns == ["name", "id"]
    assert frame.count() == FILES * ROWS
    listed = reader_of(spark, lake).option("columns", '["day"]').load("shop.items")
    assert listed.columns == ["day"]


def test_tasks_are_cut_by_bytes(spark: SparkSession, lake: Lake):
    small = reader_of(spark, lake).option("task_bytes", 1).option("columns", "id").load("shop.items")
    assert small.rdd.getNumPartitions() == FILES
    assert small.distinct().count() == FILES * ROWS


def test_a_dataframe_stays_at_its_version(spark: SparkSession, tmp_path):
    lake = ul.connect(tmp_path / "lake")
    table = lake.create_table("some.table", "id bigint")
    table.append(pa.table({"id": [1]}))
    frame = reader_of(spark, lake).load("some.table")
    table.append(pa.table({"id": [2]}))
    table.tag("first", version=1)
    assert [row.id for row in frame.collect()] == [1]
    assert reader_of(spark, lake).load("some.table").count() == 2
    assert reader_of(spark, lake).option("version", 1).load("some.table").count() == 1
    assert reader_of(spark, lake).option("tag", "first").load("some.table").count() == 1
    assert reader_of(spark, lake).option("version", 0).load("some.table").count() == 0


def test_deleted_rows_renamed_columns_and_types_that_spark_lacks(spark: SparkSession, tmp_path):
    lake = ul.connect(tmp_path / "lake")
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("key", pa.uuid()),
            ("nano", pa.timestamp("ns")),
            ("half", pa.float16()),
            ("big", pa.uint64()),
            ("code", pa.binary(2)),
            ("seconds", pa.timestamp("s", "Europe/Berlin")),
        ]
    )
    table = lake.create_table("some.table", schema)
    uuids = [UUID(int=number) for number in range(3)]
    table.append(
        pa.table(
            {
                "id": [0, 1, 2],
                "key": pa.array([one.bytes for one in uuids], pa.uuid()),
                "nano": pa.array([1_000, 2_000, None], pa.timestamp("ns")),
                "half": pa.array([0.5, math.nan, None], pa.float16()),
                "big": pa.array([2**64 - 1, 0, None], pa.uint64()),
                "code": pa.array([b"ab", b"cd", None], pa.binary(2)),
                "seconds": pa.array([0, 1, None], pa.timestamp("s", "Europe/Berlin")),
            },
            schema,
        )
    )
    delete_positions(table, {0: [1]})
    rename_column(table, "id", "number")
    frame = reader_of(spark, lake).load("some.table")
    first = frame.where(f"key = '{uuids[0]}' and big = 18446744073709551615").collect()
    assert frame.count() == 2
    assert [(row.number, row.key, row.half, row.big, bytes(row.code)) for row in first] == [
        (0, str(uuids[0]), 0.5, Decimal(2**64 - 1), b"ab")
    ]
    assert spark_rows(frame.selectExpr("unix_micros(seconds)", "unix_micros(cast(nano as timestamp))")) == [
        "Row(unix_micros(seconds)=0, unix_micros(CAST(nano AS TIMESTAMP))=1)",
        "Row(unix_micros(seconds)=None, unix_micros(CAST(nano AS TIMESTAMP))=None)",
    ]


def test_nanoseconds_that_spark_cannot_hold_are_an_error_and_can_be_left_out(spark: SparkSession, tmp_path):
    lake = ul.connect(tmp_path / "lake")
    table = lake.create_table("some.table", pa.schema([("id", pa.int64()), ("nano", pa.timestamp("ns"))]))
    table.append(pa.table({"id": [1], "nano": pa.array([1_001], pa.timestamp("ns"))}))
    with pytest.raises(Exception, match="Spark cannot represent a value"):
        reader_of(spark, lake).load("some.table").collect()
    assert reader_of(spark, lake).option("columns", "id").load("some.table").count() == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "no.table"}, "no table"),
        ({"version": "99"}, "there is no version 99"),
        ({"columns": "id,other"}, "there is no column other"),
        ({"wher": "id > 1"}, "unknown option"),
    ],
)
def test_what_is_not_there_is_said_when_the_dataframe_is_made(spark: SparkSession, lake: Lake, options, message):
    reader = reader_of(spark, lake).options(**{"path": "shop.items", **options})
    with pytest.raises(AnalysisException, match=message):
        reader.load()


def test_another_schema_is_refused(spark: SparkSession, lake: Lake):
    frame = reader_of(spark, lake).schema("id string").load("shop.items")
    with pytest.raises(Exception, match="differs from the table"):
        frame.collect()


def test_a_source_that_is_registered_for_a_lake_needs_no_option(spark: SparkSession, lake: Lake):
    register_source(spark, lake)
    assert spark.read.format("underlay").option("columns", "id").load("shop.items").count() == FILES * ROWS


def test_the_first_reader_without_options_that_narrow_it_warns(lake: Lake, tmp_path: Path):
    class Marked(UnderlayDataSource):
        warned = str(tmp_path / "warned")

    def read(**options: str) -> None:
        source = Marked({"lake": lake.url, "path": "shop.items", **options})
        source.reader(source.schema())

    read(columns="id")
    read(where="id > 5")
    with pytest.warns(UserWarning, match=r"reads every column and row.*underlay\.spark\.session"):
        read()
    read()


def test_only_the_pushing_reader_defines_push_filters():
    inherited = getattr(DataSourceReader, "pushFilters", None)
    assert getattr(TableReader, "pushFilters", None) is inherited
    assert PushingReader.pushFilters is not inherited


def test_arrow_types_are_those_that_spark_checks(lake: Lake):
    schema = spark_schema(lake.table("shop.items").snapshot().schema)
    assert arrow_schema(schema).equals(to_arrow_schema(schema, timezone="UTC"))


def test_options_name_the_lake_its_store_and_the_table(monkeypatch: pytest.MonkeyPatch):
    found = read_options({"Lake": "s3://b/l", "path": "a.b", "option.endpoint": "http://x", "version": "7"})
    assert (found.lake.url, found.lake.options, found.table, found.version) == (
        "s3://b/l",
        {"endpoint": "http://x"},
        "a.b",
        7,
    )
    monkeypatch.setenv("UNDERLAY_LAKE", "elsewhere")
    assert read_options({"path": "a.b"}).lake.url == "elsewhere"


@pytest.mark.parametrize(
    "options",
    [
        {"lake": "x"},
        {"path": "a.b"},
        {"lake": "x", "path": "a.b", "version": "-1"},
        {"lake": "x", "path": "a.b", "columns": " , "},
        {"lake": "x", "path": "a.b", "columns": "[1"},
    ],
)
def test_options_that_say_nothing_are_refused(monkeypatch: pytest.MonkeyPatch, options):
    monkeypatch.delenv("UNDERLAY_LAKE", raising=False)
    with pytest.raises(InvalidRequest):
        read_options(options)


def test_the_source_is_called_underlay():
    assert UnderlayDataSource.name() == "underlay"


def test_rows_of_one_file_come_in_its_order(spark: SparkSession, lake: Lake):
    frame = reader_of(spark, lake).option("columns", "id").option("where", "id < 1000").load("shop.items")
    assert [row.id for row in frame.collect()] == rows_of(0)["id"].to_pylist()


def test_decimals_that_pyspark_may_have_rounded_are_left_to_spark():
    schema = from_arrow(pa.schema([("amount", pa.decimal128(38, 0))]))
    long, short = Decimal("1" * 28), Decimal("1" * 27)
    assert read_pushed(pushed.EqualTo(("amount",), long), schema) is None
    assert read_pushed(pushed.In(("amount",), (short, long)), schema) is None
    assert read_pushed(pushed.EqualTo(("amount",), short), schema) is not None


@pytest.mark.usefixtures("pushing")
def test_long_decimals_are_compared_exactly(spark: SparkSession, tmp_path: Path):
    values = [Decimal(10**38 - 1), Decimal("12345678901234567890123456789012345678"), Decimal(1)]
    lake = ul.connect(tmp_path)
    table = lake.create_table("long.decimals", pa.schema([("amount", pa.decimal128(38, 0))]))
    table.append(pa.table({"amount": pa.array(values, pa.decimal128(38, 0))}))
    reader = spark.read.format("underlay").option("lake", lake.url).option("push_filters", "true")
    for condition, count in {"=": 1, "<": 1, ">=": 2}.items():
        assert reader.load("long.decimals").where(f"amount {condition} {values[1]}").count() == count
