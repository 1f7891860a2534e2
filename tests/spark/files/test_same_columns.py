from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import underlay as ul
from underlay.index.entry import FileLayout
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, Scalar, StructOf, TypeKind
from underlay.spark.files.read_schema import reads_by_name

pytestmark = pytest.mark.local_only

LONG = Scalar(TypeKind.INT64)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[FileLayout, TableSchema]:
    """The layout of a file with a number, a struct, a list, a map and seconds, and the table's columns then."""
    folder: Path = tmp_path_factory.mktemp("names")
    schema = pa.schema(
        [
            ("a", pa.int64()),
            ("s", pa.struct([("x", pa.int64()), ("y", pa.string())])),
            ("l", pa.list_(pa.int64())),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("t", pa.timestamp("s")),
        ]
    )
    table = ul.connect(folder).create_table("a.b", schema)
    table.append(pa.table({name: [None] for name in schema.names}, schema))
    snapshot = table.snapshot()
    return snapshot.root.layouts[0], snapshot.schema


def changed(schema: TableSchema, at: int, **changes: object) -> TableSchema:
    fields = list(schema.fields)
    fields[at] = replace(fields[at], **changes)
    return replace(schema, fields=tuple(fields))


def test_file_with_the_tables_columns_is_read_by_name(known: tuple[FileLayout, TableSchema]):
    assert reads_by_name(*known)


def test_order_of_columns_does_not_matter(known: tuple[FileLayout, TableSchema]):
    layout, schema = known
    assert reads_by_name(layout, replace(schema, fields=schema.fields[::-1]))


def test_dropped_column_does_not_matter(known: tuple[FileLayout, TableSchema]):
    layout, schema = known
    assert reads_by_name(layout, replace(schema, fields=schema.fields[1:]))


def test_added_column_is_null(known: tuple[FileLayout, TableSchema]):
    layout, schema = known
    added = Field(id=99, name="new", type=LONG)
    assert reads_by_name(layout, replace(schema, fields=(*schema.fields, added)))
    assert not reads_by_name(layout, replace(schema, fields=(*schema.fields, replace(added, default="1"))))


def test_renamed_column_is_not_read_by_name(known: tuple[FileLayout, TableSchema]):
    layout, schema = known
    assert not reads_by_name(layout, changed(schema, 0, name="b"))


@pytest.mark.parametrize("name", ["a", "A"])
def test_name_used_again_for_another_column_is_not_read_by_name(known: tuple[FileLayout, TableSchema], name: str):
    layout, schema = known
    assert not reads_by_name(layout, changed(schema, 0, name=name, id=99))


def test_widened_column_is_not_read_by_name(known: tuple[FileLayout, TableSchema]):
    layout, schema = known
    assert not reads_by_name(layout, changed(schema, 0, type=Scalar(TypeKind.DECIMAL, precision=20)))
    assert not reads_by_name(layout, changed(schema, 4, type=Scalar(TypeKind.TIMESTAMP, unit="ns")))
    assert not reads_by_name(layout, changed(schema, 4, type=Scalar(TypeKind.TIMESTAMP, unit="s", zone="UTC")))


def test_seconds_lie_as_microseconds_and_are_read_by_name(known: tuple[FileLayout, TableSchema]):
    layout, schema = known
    assert reads_by_name(layout, schema)
    for unit in ("ms", "us"):
        assert reads_by_name(layout, changed(schema, 4, type=Scalar(TypeKind.TIMESTAMP, unit=unit)))


def test_renamed_or_added_field_of_a_struct_is_not_read_by_name(known: tuple[FileLayout, TableSchema]):
    layout, schema = known
    inner = schema.fields[1].type
    assert isinstance(inner, StructOf)
    x, y = inner.fields
    assert not reads_by_name(layout, changed(schema, 1, type=StructOf((replace(x, name="z"), y))))
    assert not reads_by_name(layout, changed(schema, 1, type=StructOf((x, y, Field(id=99, name="z", type=LONG)))))
    assert not reads_by_name(layout, changed(schema, 1, type=ListOf(x)))
