from __future__ import annotations

import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    NullType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

import underlay as ul
from tests.spark.streams import Feed, run, sink_of
from underlay.api.table import Table
from underlay.errors import InvalidRequest, SchemaMismatch
from underlay.schema.cast.conform import conform
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.convert.ddl import parse_ddl
from underlay.spark.api.data_source import register_source
from underlay.spark.api.write import append, overwrite
from underlay.spark.native.columns import fits_native
from underlay.spark.source.options import read_options
from underlay.spark.source.write import TableWriter
from underlay.spark.stream.batch_writer import batch_writer
from underlay.spark.tasks import collect as small
from underlay.spark.types.from_spark import table_rows
from underlay.spark.types.to_spark import source_schema

UUID_TEXT = "12345678-1234-5678-1234-567812345678"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("byte", pa.uint8()),
        ("short", pa.uint16()),
        ("whole", pa.uint32()),
        ("long", pa.uint64()),
        ("at", pa.timestamp("ms", "UTC")),
        ("local", pa.timestamp("s")),
        ("token", pa.uuid()),
        ("code", pa.binary(3)),
    ]
)
VALUES = (1, 255, 65535, 2**32 - 1, Decimal(2**64 - 1), datetime(2024, 5, 1, 1, 2, 3, 4000, UTC),
          datetime(1969, 12, 31, 23, 59, 59), UUID_TEXT, b"abc")  # fmt: skip
NULLS = (2, *[None] * 8)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return ul.connect(tmp_path / "lake").create_table("some.table", SCHEMA)


def test_rows_of_types_that_spark_lacks_are_written_in_process_and_by_tasks(
    spark: SparkSession, table: Table, monkeypatch: pytest.MonkeyPatch
):
    columns = source_schema(table.snapshot().schema, tuple(SCHEMA.names))
    frame = spark.createDataFrame([VALUES, NULLS], columns)
    append(frame, table)
    expected = table.to_arrow().sort_by("id")
    assert expected.to_pylist()[0] == {
        **dict(zip(SCHEMA.names, VALUES, strict=True)),
        "long": 2**64 - 1,
        "token": UUID(UUID_TEXT),
    }
    monkeypatch.setattr(small, "SMALL_BYTES", -1)
    for zone in ("UTC", "Europe/Berlin"):  # batches of tasks have the session's
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            overwrite(frame, table)
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
        assert table.to_arrow().sort_by("id").equals(expected)


EXACT = (
    "a double, b int, c decimal(10, 2), d timestamp, e smallint, f date, g struct<x: tinyint>, h array<float>, i int"
)
EXACT_FRAME = (
    "select cast(id as bigint) a, cast(id * 2 as bigint) b, cast(id as int) c, date'2024-05-01' d,"
    " cast(id as double) e, timestamp_ntz'2024-05-01 00:00:00' f, named_struct('x', cast(id as decimal(5, 1))) g,"
    " array(cast(0.5 as double), null) h, null i from range(3)"
)
EXACT_ROWS = [
    {"a": float(n), "b": 2 * n, "c": Decimal(n), "d": datetime(2024, 5, 1), "e": n, "f": date(2024, 5, 1),
     "g": {"x": n}, "h": [0.5, None], "i": None}
    for n in range(3)
]  # fmt: skip


def test_values_that_the_table_has_are_taken_by_every_way_to_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lake = ul.connect(tmp_path / "lake")
    register_source(spark, lake)
    frame = spark.sql(EXACT_FRAME)
    collected, by_tasks = lake.create_table("some.collected", EXACT), lake.create_table("some.tasks", EXACT)
    append(frame, collected)
    monkeypatch.setattr(small, "SMALL_BYTES", -1)
    assert not fits_native(frame.schema, by_tasks.definition)
    append(frame, by_tasks)
    frame.write.format("underlay").mode("append").save("some.tasks")
    assert collected.to_arrow().sort_by("b").to_pylist() == EXACT_ROWS
    assert by_tasks.to_arrow().sort_by("b").to_pylist() == [row for row in EXACT_ROWS for _ in range(2)]
    with pytest.raises(PySparkException, match="a value does not fit the column's type in row"):
        append(spark.sql("select 2.5 b from range(2)"), by_tasks)
    assert by_tasks.count() == 6
    monkeypatch.undo()
    with pytest.raises(SchemaMismatch, match=r"b: a value does not fit .* in row 0, and in 1 more .*found Decimal"):
        append(spark.sql("select 2.5 b from range(2)"), collected)
    with pytest.raises(SchemaMismatch, match="b: the column has another type"):
        append(spark.sql("select '2' b"), collected)


def test_only_columns_that_widen_are_written_by_spark_itself():
    definition = ul.connect(f"memory://{os.urandom(6).hex()}").create_table("a.b", "a bigint, b timestamp").definition
    long, naive = LongType(), TimestampNTZType()
    for a, b, is_native in (
        (long, naive, True), (IntegerType(), naive, True), (long, NullType(), True),
        (DoubleType(), naive, False), (long, DateType(), False), (long, TimestampType(), False),
    ):  # fmt: skip
        schema = StructType([StructField("a", a), StructField("b", b)])
        assert fits_native(schema, definition) == is_native, (a, b)


LOCAL = "at timestamp, s struct<at: timestamp>, l array<timestamp>, m map<string, timestamp>, d timestamptz"
INSTANTS = (
    "select at, named_struct('at', at) s, array(at, null) l, map('k', at) m, at d"
    " from (select timestamp'2024-07-01 10:00:00+00:00' at union all select null)"
)


def local_rows(at: datetime) -> list[dict[str, object]]:
    return [
        {"at": at, "s": {"at": at}, "l": [at, None], "m": [("k", at)], "d": datetime(2024, 7, 1, 10, tzinfo=UTC)},
        {"at": None, "s": {"at": None}, "l": [None, None], "m": [("k", None)], "d": None},
    ]


def test_instants_go_into_columns_without_a_zone_only_when_the_user_says_which_local_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lake = ul.connect(tmp_path / "lake")
    register_source(spark, lake)
    table = lake.create_table("some.table", LOCAL)
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        frame = spark.sql(INSTANTS)
        with pytest.raises(SchemaMismatch, match=r'at: the column has no zone.*naive_timestamps="session"'):
            append(frame, table)
        with pytest.raises(InvalidRequest, match="naive_timestamps"):
            append(frame, table, naive_timestamps="berlin")
        writer = frame.write.format("underlay").mode("overwrite")
        for choice, hour in (("utc", 10), ("session", 12)):
            expected = local_rows(datetime(2024, 7, 1, hour))
            overwrite(frame, table, naive_timestamps=choice)
            assert table.to_arrow().sort_by("d").to_pylist() == expected
            writer.option("naive_timestamps", choice).save("some.table")
            assert table.to_arrow().sort_by("d").to_pylist() == expected
        monkeypatch.setattr(small, "SMALL_BYTES", -1)
        overwrite(frame, table, naive_timestamps="session")
        assert table.to_arrow().sort_by("d").to_pylist() == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_local_times_are_those_of_the_batchs_zone_or_of_the_one_that_is_named():
    at = datetime(2024, 7, 1, 10, tzinfo=UTC)
    columns = parse_ddl("at timestamp, s struct<at: timestamp>, l array<timestamp>, m map<string, timestamp>")
    for given, named, hour in (("Europe/Berlin", None, 12), ("UTC", "Europe/Berlin", 12), ("UTC", "+05:30", 15)):
        zoned = pa.timestamp("us", given)
        rows = pa.table(
            {
                "at": pa.array([None, at, None], zoned),
                "s": pa.array([None, {"at": at}, None], pa.struct([("at", zoned)])),
                "l": pa.array([[at], [at, None], None], pa.list_(zoned)),
                "m": pa.array([[], [("k", at)], None], pa.map_(pa.string(), zoned)),
            }
        ).slice(1)
        for naive, expected in (("session", at.replace(hour=hour, minute=30 if hour == 15 else 0)), ("utc", at)):
            local = expected.replace(tzinfo=None)
            assert conform(table_rows(rows, columns, naive, session_zone=named), columns).to_pylist() == [
                {"at": local, "s": {"at": local}, "l": [local, None], "m": [("k", local)]},
                {"at": None, "s": None, "l": None, "m": None},
            ]


def test_a_writer_of_the_data_source_casts_and_takes_the_zone_of_its_batches(tmp_path: Path):
    lake = ul.connect(tmp_path / "lake")
    table = lake.create_table("some.table", "id int, at timestamp")
    schema = StructType([StructField("id", DoubleType()), StructField("at", TimestampType())])
    given = {"lake": str(tmp_path / "lake"), "path": "some.table"}
    with pytest.raises(SchemaMismatch, match="naive_timestamps"):
        TableWriter(read_options(given), schema, is_overwrite=False)
    writer = TableWriter(read_options({**given, "naive_timestamps": "session"}), schema, is_overwrite=False)
    at = pa.array([datetime(2024, 7, 1, 10, tzinfo=UTC)], pa.timestamp("us", "Europe/Berlin"))
    writer.commit([writer.write(iter([pa.record_batch({"id": [1.0], "at": at})]))])
    assert table.to_arrow().to_pylist() == [{"id": 1, "at": datetime(2024, 7, 1, 12)}]


def test_a_stream_writes_what_a_batch_writes(spark: SparkSession, tmp_path: Path):
    lake = ul.connect(tmp_path / "lake")
    register_source(spark, lake)
    table, other = (lake.create_table(name, "id int, at timestamp") for name in ("some.table", "some.other"))
    feed = Feed(tmp_path / "in")
    feed.put(range(3))
    stream = feed.stream(spark).selectExpr("id", "timestamp'2024-07-01 10:00:00+00:00' at")
    run(sink_of(stream, table, tmp_path / "one").option("naive_timestamps", "session"))
    write = batch_writer(other, naive_timestamps="utc")
    run(stream.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "two")))
    for found in (table, other):
        rows = found.to_arrow().sort_by("id").to_pylist()
        assert rows == [{"id": n, "at": datetime(2024, 7, 1, 10)} for n in range(3)]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("byte", pa.array([256], pa.int16())),
        ("whole", pa.array([-1], pa.int64())),
        ("long", pa.array([Decimal(2**64)], pa.decimal128(20, 0))),
        ("at", pa.array([1], pa.timestamp("us", "UTC"))),
        ("token", pa.array(["no uuid"])),
        ("code", pa.array([b"ab"], pa.binary())),
    ],
)
def test_value_that_would_change_is_refused(name: str, given: pa.Array):
    schema = from_arrow(SCHEMA)
    with pytest.raises(SchemaMismatch, match=f'^"?{name}"?: a value does not fit'):
        conform(table_rows(pa.table({name: given}), schema), schema)
