"""Files that are older than a change of columns: their rows in Spark are those of a scan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import underlay as ul
from tests.contract.worlds import add_column, change, delete_positions, drop_column, rename_column, widen_column
from tests.spark.relation.test_relation import found_by, handed_over, planned
from underlay.api.table import Table
from underlay.errors import SchemaMismatch
from underlay.schema.record import FieldRecord, SchemaRecord
from underlay.spark.api.write import append
from underlay.spark.native.columns import fits_native
from underlay.spark.relation.relation import read_table
from underlay.spark.tasks import collect
from underlay.table.commit.transaction import Transaction

OLD = pa.schema(
    [
        ("id", pa.int32()),
        ("single", pa.float32()),
        ("price", pa.decimal128(9, 2)),
        ("name", pa.string()),
        ("unsigned", pa.uint16()),
        ("at", pa.timestamp("ms", "UTC")),
        ("inner", pa.struct([("x", pa.int32()), ("y", pa.string()), ("gone", pa.int64())])),
        ("bare", pa.struct([("x", pa.int32())])),
        ("things", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]))),
        ("marks", pa.map_(pa.string(), pa.struct([("x", pa.int32())]))),
        ("b", pa.int64()),
        ("a.dot", pa.int64()),
        ("born", pa.date32()),
        ("second", pa.timestamp("s")),
    ]
)


def old_rows(first: int) -> pa.Table:
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    rows = [
        {
            "id": n,
            "single": [0.1, float("nan"), -0.0, 7.5][n % 4],
            "price": Decimal(n) / 4,
            "name": f"n{n}",
            "unsigned": 60_000 + n,
            "at": moment.replace(hour=n),
            "inner": {"x": n, "y": f"y{n}", "gone": 1} if n % 3 else None,
            "bare": {"x": n},
            "things": [{"x": n, "y": "t"}, None] if n % 4 else None,
            "marks": [("k", {"x": n})],
            "b": n * 10,
            "a.dot": n * 100,
            "born": date(2000, 1, 1 + n),
            "second": datetime(2020, 1, 1, n),
        }
        for n in range(first, first + 5)
    ]
    rows[4] = dict.fromkeys(OLD.names) | {"id": first + 4}
    return pa.Table.from_pylist(rows, OLD)


def change_column(table: Table, name: str, edit: Callable[[FieldRecord, int], FieldRecord]) -> None:
    """Change one column: `edit` gets the old one and the first of two free ids."""

    def make(transaction: Transaction) -> None:
        definition = transaction.base.definition
        free = definition.schema.last_id + 1
        fields = tuple(edit(field, free) if field.name == name else field for field in definition.schema.fields)
        transaction.set_definition(replace(definition, schema=SchemaRecord(fields=fields, last_id=free + 1)))

    change(table, make, "evolve")


def add_inside(record: FieldRecord, free: int) -> FieldRecord:
    """A struct with x renamed and wider, the others dropped but for y, and two that old files do not have."""
    kept = {part.name: part for part in record.fields}
    renamed = replace(kept["x"], name="wide x", type="int64")
    added = (
        FieldRecord(id=free, name="new", type="string", default="none"),
        FieldRecord(id=free + 1, name="more", type="int32"),
    )
    return replace(record, fields=(added[0], *([kept["y"]] if "y" in kept else []), renamed, added[1]))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Two old files, one of them with a deleted row, every kind of change, and a new file."""
    found = ul.connect(tmp_path_factory.mktemp("evolved")).create_table("old.rows", OLD)
    found.append(old_rows(0))
    found.append(old_rows(10))
    for name, type_ in (("id", "int64"), ("single", "float64"), ("price", "decimal(20, 4)"), ("unsigned", "int64")):
        widen_column(found, name, type_)
    widen_column(found, "born", "timestamp(us)")
    widen_column(found, "second", "timestamp(us)")
    with found.evolve() as evolution:
        evolution.set_partition_by(["bucket(2, id)", "month(born)"])
        evolution.add_check("early", "born < '2100-01-01'")
    rename_column(found, "name", "title")
    rename_column(found, "a.dot", "dot`ted.name")
    drop_column(found, "b")
    add_column(found, "b", "string")
    change_column(found, "inner", add_inside)
    change_column(found, "things", lambda record, free: replace(record, fields=(add_inside(record.fields[0], free),)))
    change_column(
        found,
        "marks",
        lambda record, free: replace(record, fields=(record.fields[0], add_inside(record.fields[1], free))),
    )
    change_column(
        found, "bare", lambda record, free: replace(record, fields=(FieldRecord(id=free, name="other", type="int32"),))
    )
    for name, (type_, default) in DEFAULTS.items():
        add_column(found, name, type_, default)
    found.append(found.to_arrow().slice(0, 3))
    delete_positions(found, {1: [1, 4]})
    return found


DEFAULTS = {
    "flag": ("boolean", "true"),
    "number": ("int64", str(2**60)),
    "half": ("float32", "0.1"),
    "nothing": ("float64", "nan"),
    "text": ("string", 'it\'s \\ "x"'),
    "bytes": ("binary", "00ff27"),
    "money": ("decimal(10, 2)", "-1.50"),
    "day": ("date", "1500-03-01"),
    "moment": ("timestamp(us, UTC)", "2021-05-06 07:08:09.123456"),
    "local": ("timestamp(us)", "0099-05-06 07:08:09.5"),
    "big": ("uint64", str(2**64 - 1)),
    "empty": ("int64", None),
}


@pytest.fixture(scope="module")
def frame(spark: SparkSession, table: Table) -> DataFrame:
    return read_table(spark, ul.connect(table.snapshot().store), "old.rows")


def rows(found: pa.Table) -> list[str]:
    return sorted(map(str, found.to_pylist()))


def comparable(found: pa.Table) -> pa.Table:
    """With the type that Spark has for unsigned numbers."""
    at = found.column_names.index("big")
    return found.set_column(at, "big", found.column(at).cast(pa.decimal128(20, 0)))


def test_rows_are_those_of_a_scan(frame: DataFrame, table: Table):
    assert frame.columns == list(table.snapshot().schema.names)
    assert rows(frame.toArrow()) == rows(comparable(table.to_arrow()))


def test_zone_of_the_session_changes_no_default(spark: SparkSession, frame: DataFrame):
    query = "select unix_micros(moment), cast(local as string), cast(day as string) from {t} where id = 2"
    expected = spark.sql(query, t=frame).first()
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        assert spark.sql(query, t=frame).first() == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


CONDITIONS = {
    "id = 11": "id = 11",
    "id > 4294967295": "id > 4294967295",
    "single > 0.1D": "single > 0.1e0",
    "single = 0.1D": "single = 0.1e0",
    "single = 0.0D": "single = 0.0e0",
    "isnan(single)": "isnan(single)",
    "single <> 7.5": "single <> 7.5",
    "price = 2.75": "price = 2.75",
    "title in ('n1', 'n12')": "title in ('n1', 'n12')",
    "unsigned >= 60012": "unsigned >= 60012",
    "b is null": "b is null",
    "number = 1152921504606846976L": "number = 1152921504606846976",
    "number = 1": "number = 1",
    "empty is null and `dot``ted.name` = 1300": '"dot`ted.name" = 1300',
    "at = timestamp '2020-01-01 12:00:00Z'": "at = '2020-01-01 12:00:00+00:00'",
    "born = timestamp_ntz '2000-01-13 00:00:00'": "born = '2000-01-13 00:00:00'",
    "born > timestamp_ntz '2000-01-12 00:00:01'": "born > '2000-01-12 00:00:01'",
    "second = timestamp_ntz '2020-01-01 12:00:00'": "second = '2020-01-01 12:00:00'",
    "inner.`wide x` = 2": '"inner"."wide x" = 2',
    "inner.new = 'none'": "\"inner\".new = 'none'",
}
"""A condition as Spark has it, and as a scan has it."""


def test_conditions_find_what_a_scan_finds(frame: DataFrame, table: Table):
    answers = zip(found_by(frame, CONDITIONS, "id"), CONDITIONS.items(), strict=True)
    for found, (ours, theirs) in answers:
        assert found == sorted(table.scan(["id"], theirs).to_arrow()["id"].to_pylist()), ours


def test_rows_that_spark_writes_are_checked(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In tasks, and where few rows are written in process; Spark's own writer, which does not check, is not used."""
    lake = ul.connect(tmp_path)
    found = lake.create_table("a.b", "id bigint, fare double")
    with found.evolve() as evolution:
        evolution.add_check("not negative", "fare >= 0")
        evolution.add_check("even", "id % 2 = 0")
    good = spark.createDataFrame([(2, 1.5), (4, None)], "id bigint, fare double")
    for small_bytes in (collect.SMALL_BYTES, -1):
        monkeypatch.setattr(collect, "SMALL_BYTES", small_bytes)
        append(good, "a.b", lake=lake)
        for bad in ((3, 1.5), (6, -1.0)):
            with pytest.raises((SchemaMismatch, PySparkException), match="the check"):
                append(good.union(spark.createDataFrame([bad], good.schema)), "a.b", lake=lake)
    assert len(found) == 4
    assert not fits_native(good.schema, found.definition)


def test_renamed_and_widened_columns_prune_files_and_columns(spark: SparkSession, tmp_path: Path):
    lake = ul.connect(tmp_path)
    found = lake.create_table("a.b", pa.schema([("id", pa.int32()), ("name", pa.string())]))
    for first in (0, 100, 200):
        found.append(pa.table({"id": pa.array([first, first + 1], pa.int32()), "name": ["x", "y"]}))
    rename_column(found, "id", "number")
    widen_column(found, "number", "int64")
    frame = read_table(spark, lake, "a.b").where("number = 101").select("number")
    assert frame.collect() == [(101,)]
    assert handed_over(frame) == 1
    plan = planned(frame)
    assert "EqualTo(id,101)" in plan
    assert "ReadSchema: struct<id:int>" in plan
    assert "Batched: true" in plan
