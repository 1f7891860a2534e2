from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from underlay.api.table import Table
from underlay.errors import SchemaMismatch
from underlay.schema.convert.arrow import from_arrow
from underlay.spark.api.write import append, overwrite
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
    with pytest.raises(SchemaMismatch, match=f"{name}: a value does not fit"):
        table_rows(pa.table({name: given}), from_arrow(SCHEMA))
