"""Blocks of other writers that were copied as they are: pyarrow, DuckDB and Spark read of them what a scan does."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from underlay.api.table import Table
from underlay.schema.convert.arrow import from_arrow
from underlay.spark.relation.relation import read_table
from underlay.spark.types.spark_types import spark_schema

COUNT = 200
"""Rows of a file."""
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("word", pa.string()),
        ("zone", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us")),
        ("flag", pa.bool_()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("box", pa.struct([("x", pa.int64())])),
    ]
)
PYARROW = {
    "delta": {
        "use_dictionary": False,
        "data_page_version": "2.0",
        "column_encoding": {
            "id": "DELTA_BINARY_PACKED",
            "small": "DELTA_BINARY_PACKED",  # DuckDB splits bytes of floats only, and those are encoded again
            "word": "DELTA_BYTE_ARRAY",
            "zone": "DELTA_LENGTH_BYTE_ARRAY",
        },
        "compression": "gzip",
    },
    "dictionary": {"use_dictionary": True, "compression": "lz4", "bloom_filter_options": {"word": {"ndv": COUNT}}},
    "plain": {"use_dictionary": False, "compression": "none"},
}
CONDITIONS = (
    "id = 1203",
    "small between -40 and -30",
    "word = 'word 408'",
    "word = 'no such word'",
    "zone = 'JFK' and id > 1100",
    "price < 0.05",
    "day = date '2024-02-10'",
    "moment >= timestamp '2024-01-13 05:00:00'",
    "flag and small > -9",
    "word is null",
    "box.x = 309",
)


def rows(file: int) -> pa.Table:
    ids = range(200 * file, 200 * file + COUNT)
    columns = {
        "id": list(ids),
        "small": [-one % 100 - 100 for one in ids],
        "word": [None if one % 11 == 0 else f"word {one}" for one in ids],
        "zone": [("JFK", "LGA", "EWR")[one // 20 % 3] for one in ids],
        "price": [Decimal(one) / 100 for one in ids],
        "day": [date(2024, 1, 1) + timedelta(days=one // 20) for one in ids],
        "moment": [datetime(2024, 1, 1) + timedelta(minutes=15 * one) for one in ids],
        "flag": [one % 3 == 0 for one in ids],
        "raw": [one.to_bytes(3, "big") for one in ids],
        "tags": [[f"x{one}", None] if one % 5 else None for one in ids],
        "box": [{"x": one} if one % 7 else None for one in ids],
    }
    return pa.table(columns, SCHEMA)


def write_others(spark: SparkSession, folder: Path) -> None:
    """Two files of each way to write, each with small pages and page indexes where the writer has them."""
    files = iter(range(100))
    for name, options in PYARROW.items():
        for _ in range(2):
            number = next(files)
            options = {"write_page_index": True, "data_page_size": 300, "write_batch_size": 20, **options}
            pq.write_table(rows(number), folder / f"{name} {number}.parquet", **options)
    for _ in range(2):
        number = next(files)
        found = duckdb.from_arrow(rows(number))
        found.write_parquet(str(folder / f"duckdb {number}.parquet"), compression="zstd")
    for version in ("v1", "v2"):
        for _ in range(2):
            number = next(files)
            frame = spark.createDataFrame(rows(number), spark_schema(from_arrow(SCHEMA)))
            (
                frame.coalesce(1)
                .write.option("parquet.writer.version", version)
                .option("parquet.page.row.count.limit", 20)
                .option("parquet.bloom.filter.enabled#word", "true")
                .option("parquet.bloom.filter.expected.ndv#word", str(COUNT))
                .parquet(str(folder / f"spark {number}"))
            )


@pytest.fixture
def copied(spark: SparkSession, tmp_path: Path) -> Table:
    """A table of the files of all writers, imported and then joined by copying."""
    (tmp_path / "in").mkdir()
    write_others(spark, tmp_path / "in")
    lake = ul.connect(tmp_path / "lake")
    table = lake.create_table("shop.items", SCHEMA, properties={"block_rows": COUNT})
    table.register(tmp_path / "in")
    wanted = sorted(map(repr, table.to_arrow().to_pylist()))
    count = 2 * (len(PYARROW) + 3)
    done = table.import_files()
    assert (done.files_before, done.blocks_encoded) == (count, 0)
    done = table.compact()
    assert (done.files_before, done.files_after, done.blocks_copied, done.blocks_encoded) == (count, 3, count, 0)
    assert sorted(map(repr, table.to_arrow().to_pylist())) == wanted
    return table


def test_every_engine_reads_copied_blocks_of_all_writers_as_a_scan_does(
    spark: SparkSession, copied: Table, tmp_path: Path
):
    folder = tmp_path / "lake" / copied.snapshot().keys.folder
    paths = [str(folder / entry.location) for entry in copied.snapshot().files()]
    blocks = [one.row_group(at) for one in map(pq.read_metadata, paths) for at in range(one.num_row_groups)]
    assert sum(one.column(2).bloom_filter_offset is not None for one in blocks) >= 2 + 4
    assert sum(one.column(0).has_offset_index for one in blocks) == 2 * len(PYARROW) + 4
    every = copied.to_arrow()
    assert pa.concat_tables([pq.read_table(path) for path in paths]).cast(SCHEMA).equals(every.cast(SCHEMA))
    spark.read.parquet(*paths).createOrReplaceTempView("copied_files")
    read_table(spark, ul.connect(tmp_path / "lake"), "shop.items").createOrReplaceTempView("copied_table")
    connection = duckdb.connect()
    for condition in CONDITIONS:
        wanted = sorted(copied.scan(["id", "small", "word"], condition).to_arrow().to_pylist(), key=repr)
        assert (condition == "word = 'no such word'") == (not wanted)
        for name in ("copied_files", "copied_table"):
            found = spark.sql(f"select id, small, word from {name} where {condition}").collect()
            assert sorted((row.asDict() for row in found), key=repr) == wanted, (name, condition)
        query = f"select id, small, word from read_parquet({paths!r}) where {condition}"
        assert sorted(connection.execute(query).to_arrow_table().to_pylist(), key=repr) == wanted, condition
    found = ds.dataset(paths).to_table(filter=ds.field("word") == "word 408")
    assert found["id"].to_pylist() == [408]
