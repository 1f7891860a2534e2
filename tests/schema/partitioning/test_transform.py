from __future__ import annotations

import pytest

from tests.schema.examples import field, schema_of
from underlay.errors import InvalidRequest, UnknownColumn
from underlay.schema.ids import number_fields
from underlay.schema.partitioning.transform import (
    WrittenTransform,
    bind_partition,
    parse_transform,
    partition_fields,
    write_transform,
)
from underlay.schema.types import ListOf, Scalar, StructOf, TypeKind


@pytest.mark.parametrize(
    ("text", "path", "transform", "width"),
    [
        ("zone", ("zone",), "identity", 0),
        ("pos.x", ("pos", "x"), "identity", 0),
        ('"my zone"', ("my zone",), "identity", 0),
        ("month(pickup)", ("pickup",), "month", 0),
        (" MONTH ( `pick up` ) ", ("pick up",), "month", 0),
        ("bucket(16, id)", ("id",), "bucket", 16),
        ("bucket(id, 16)", ("id",), "bucket", 16),
        ('truncate(4, "a.b".c)', ("a.b", "c"), "truncate", 4),
    ],
)
def test_a_transform_is_read(text, path, transform, width):
    found = parse_transform(text)
    assert found == WrittenTransform(path=path, transform=transform, width=width)
    assert parse_transform(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "week(at)",
        "bucket(id)",
        "bucket(0, id)",
        "bucket(99999999999, id)",
        "day(at, 3)",
        "day()",
        "a.",
        '"a',
    ],
)
def test_text_that_is_no_transform_is_refused(text):
    with pytest.raises(InvalidRequest):
        parse_transform(text)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("int32", "day(c)"),
        ("date", "hour(c)"),
        ("time(us)", "day(c)"),
        ("float64", "bucket(4, c)"),
        ("boolean", "bucket(4, c)"),
        ("decimal(9,2)", "truncate(4, c)"),
        ("fixed(8)", "truncate(4, c)"),
        ("float16", "c"),
    ],
)
def test_a_type_that_the_transform_does_not_take_is_refused(type_, text):
    with pytest.raises(InvalidRequest, match="does not take"):
        partition_fields(schema_of(c=type_), [text])


def test_results_have_the_documented_types():
    schema = schema_of(at="timestamp(us)", name="string", id="int64")
    found = partition_fields(schema, ["name", "month(at)", "bucket(4, id)", "truncate(2, name)"])
    assert [str(one.type) for one in found] == ["string", "int64", "int32", "string"]
    assert [one.field for one in found] == [2, 1, 3, 2]
    assert [write_transform(schema, one) for one in found] == [
        "name",
        "month(at)",
        "bucket(4, id)",
        "truncate(2, name)",
    ]


def test_a_field_of_a_struct_partitions_and_an_item_of_a_list_does_not():
    schema = number_fields(
        [field("s", StructOf((field("x", "int32"),))), field("l", ListOf(field("element", "int32")))]
    )
    assert partition_fields(schema, ["s.x"])[0].field == 2
    with pytest.raises(InvalidRequest, match="many values"):
        partition_fields(schema, ["l.element"])
    with pytest.raises(InvalidRequest, match="nested"):
        partition_fields(schema, ["s"])


def test_an_unknown_column_is_refused_and_the_right_one_suggested():
    with pytest.raises(UnknownColumn, match="Did you mean Zone"):
        partition_fields(schema_of(Zone="int32"), ["zone"])


def test_the_same_transform_twice_is_refused():
    with pytest.raises(InvalidRequest, match="already"):
        partition_fields(schema_of(zone="int32"), ["zone", "zone"])


def test_a_stored_field_is_bound_to_the_current_type():
    found = bind_partition(schema_of(at="timestamp(ns)"), 1, "day", 0)
    assert found.source == Scalar(TypeKind.TIMESTAMP, unit="ns")
    with pytest.raises(InvalidRequest, match="gone"):
        bind_partition(schema_of(at="timestamp(ns)"), 2, "day", 0)
