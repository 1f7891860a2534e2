from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from tests.schema.examples import field, plain_schemas, schema_of
from underlay.errors import SchemaMismatch, Unsupported
from underlay.schema.convert.arrow import FIELD_ID_KEY, from_arrow, to_arrow
from underlay.schema.ids import number_fields
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import ListOf, MapOf, Scalar, StructOf, TypeKind, parse_scalar


@given(plain_schemas())
def test_a_schema_comes_back_from_arrow(schema: TableSchema):
    assert from_arrow(to_arrow(schema)) == schema


def test_a_parquet_file_has_the_ids_of_all_fields():
    text = Scalar(TypeKind.STRING)
    schema = number_fields(
        [
            field("a", ListOf(field("element", StructOf((field("x", "int32"), field("y", "uuid")))))),
            field("m", MapOf(field("key", text, is_required=True), field("value", "float16"))),
        ]
    )
    target = io.BytesIO()
    pq.write_table(pa.table([pa.nulls(0, f.type) for f in to_arrow(schema)], schema=to_arrow(schema)), target)
    back = pq.read_schema(target)
    assert back.field("a").metadata[FIELD_ID_KEY] == b"1"
    element = back.field("a").type.value_field
    assert (element.name, element.metadata[FIELD_ID_KEY]) == ("element", b"2")
    assert [part.metadata[FIELD_ID_KEY] for part in element.type] == [b"3", b"4"]
    entries = back.field("m").type
    assert [f.metadata[FIELD_ID_KEY] for f in (entries.key_field, entries.item_field)] == [b"6", b"7"]


def test_comments_stay_out_of_the_metadata():
    schema = number_fields([field("a", "int32", comment="secret")])
    assert to_arrow(schema).field("a").metadata == {FIELD_ID_KEY: b"1"}


def test_ids_are_depth_first_from_the_one_given_whatever_the_metadata_says():
    inner = pa.struct([pa.field("x", pa.int32(), metadata={FIELD_ID_KEY: b"99"}), pa.field("y", pa.int8())])
    schema = from_arrow(pa.schema([pa.field("s", inner), pa.field("z", pa.int8())]), first_id=10)
    assert [leaf.id for leaf in schema.leaves] == [11, 12, 13]
    assert schema.last_id == 13


@pytest.mark.parametrize(
    ("arrow", "ours"),
    [
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.run_end_encoded(pa.int32(), pa.int16()), "int16"),
        (pa.large_binary(), "binary"),
        (pa.binary_view(), "binary"),
        (pa.date64(), "date"),
        (pa.decimal32(5, 1), "decimal(5, 1)"),
        (pa.decimal64(15, 1), "decimal(15, 1)"),
        (pa.decimal256(38, 1), "decimal(38, 1)"),
        (pa.time32("ms"), "time(ms)"),
        (pa.timestamp("ns", "+02:00"), "timestamp(ns, +02:00)"),
    ],
    ids=str,
)
def test_arrow_types_that_mean_the_same_become_one(arrow, ours):
    assert from_arrow(pa.schema([("c", arrow)])).fields[0].type == parse_scalar(ours)


@pytest.mark.parametrize(
    "arrow",
    [pa.large_list(pa.int8()), pa.list_view(pa.int8()), pa.large_list_view(pa.int8()), pa.list_(pa.int8(), 2)],
    ids=str,
)
def test_every_kind_of_list_is_a_list(arrow):
    assert from_arrow(pa.schema([("c", arrow)])) == from_arrow(pa.schema([("c", pa.list_(pa.int8()))]))


@pytest.mark.parametrize(
    "arrow",
    [
        pa.duration("us"),
        pa.month_day_nano_interval(),
        pa.decimal256(50, 2),
        pa.decimal128(5, -2),
        pa.dense_union([pa.field("a", pa.int8())]),
        pa.bool8(),
        pa.struct([]),
    ],
    ids=str,
)
def test_a_type_that_tables_do_not_have_is_refused_with_its_path(arrow):
    with pytest.raises(Unsupported) as caught:
        from_arrow(pa.schema([("s", pa.struct([("deep", arrow)]))]))
    assert caught.value.place == "s.deep"
    assert caught.value.hint


def test_a_column_of_nulls_is_refused():
    with pytest.raises(SchemaMismatch, match=r"c: .*no type.*Cast"):
        from_arrow(pa.schema([("c", pa.null())]))


@pytest.mark.parametrize("names", [["a", "a"], [""], ["a\n"], ["a\x00b"]])
def test_bad_names_are_refused(names):
    with pytest.raises(SchemaMismatch):
        from_arrow(pa.schema([(name, pa.int8()) for name in names]))


def test_names_that_differ_in_case_are_allowed():
    assert from_arrow(pa.schema([("A", pa.int8()), ("a", pa.int8())])).names == ("A", "a")


def test_siblings_in_a_struct_have_different_names():
    with pytest.raises(SchemaMismatch, match=r"s\.x"):
        from_arrow(pa.schema([("s", pa.struct([("x", pa.int8()), ("x", pa.int8())]))]))


def test_required_is_not_nullable():
    schema = number_fields([field("a", "int32", is_required=True)])
    assert not to_arrow(schema).field("a").nullable
    assert to_arrow(schema_of(a="int32")).field("a").nullable
