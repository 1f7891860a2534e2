from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schema.examples import array_of, field, plain_schemas, table_of, values
from underlay.errors import SchemaMismatch
from underlay.schema.cast.adapt import SourceField, adapt_column, source_of
from underlay.schema.convert.arrow import to_arrow, to_arrow_type
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import ListOf, MapOf, StructOf


def source(id_: int | None, *children: SourceField) -> SourceField:
    return SourceField(id=id_, children=children)


def chunks(values_: list[object], type_: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values_, type_)])


def test_a_column_of_the_same_type_is_returned_as_it_is():
    column = chunks([1], pa.int32())
    assert adapt_column(column, source(1), field("a", "int32", 1), 1) is column


def test_a_narrower_column_is_widened():
    found = adapt_column(chunks([1, None], pa.int32()), source(1), field("a", "int64", 1), 2)
    assert found.equals(chunks([1, None], pa.int64()))


def test_a_missing_column_has_its_default_or_null():
    assert adapt_column(None, None, field("a", "int8", 1, default="42"), 3).to_pylist() == [42] * 3
    assert adapt_column(None, None, field("a", "uuid", 1), 2).to_pylist() == [None] * 2


def test_a_missing_required_column_is_refused_and_one_with_a_default_is_not():
    with pytest.raises(SchemaMismatch, match="a: a required column is missing"):
        adapt_column(None, None, field("a", "int8", 1, is_required=True), 3)
    assert adapt_column(None, None, field("a", "int8", 1, is_required=True, default="1"), 1).to_pylist() == [1]


STRUCT = field(
    "s", StructOf((field("x", "int64", 2), field("new", "string", 4, default="d"), field("y", "int8", 3))), 1
)


def test_fields_of_a_struct_are_matched_by_id_renamed_ordered_filled_and_dropped():
    old = pa.struct([("y_old", pa.int8()), ("gone", pa.int8()), ("x_old", pa.int32())])
    column = chunks([{"y_old": 1, "gone": 2, "x_old": 3}, None], old)
    found = adapt_column(column, source(1, source(3), source(None), source(2)), STRUCT, 2)
    assert found.type == to_arrow_type(STRUCT.type)
    assert found.to_pylist() == [{"x": 3, "new": "d", "y": 1}, None]


def test_swapped_fields_of_one_type_are_told_apart_by_id():
    pair = field("s", StructOf((field("a", "int8", 2), field("b", "int8", 3))), 1)
    column = chunks([{"a": 1, "b": 2}], to_arrow_type(pair.type))
    found = adapt_column(column, source(1, source(3), source(2)), pair, 1)
    assert found.to_pylist() == [{"a": 2, "b": 1}]


@pytest.mark.parametrize(
    "make",
    [pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda inner: pa.list_(inner, 2)],
    ids=["list", "large", "view", "large view", "fixed"],
)
def test_structs_in_every_kind_of_list_are_adapted(make):
    items = field("l", ListOf(field("element", StructOf((field("x", "int64", 3),)), 2)), 1)
    rows = [[{"o": 1}, None], None, [{"o": None}, {"o": 4}]]
    column = chunks(rows, make(pa.struct([("o", pa.int16())]))).slice(1)
    found = adapt_column(column, source(1, source(2, source(3))), items, 2)
    found.validate(full=True)
    assert found.to_pylist() == [None, [{"x": None}, {"x": 4}]]
    assert found.type == to_arrow_type(items.type)


def test_keys_and_values_of_a_map_are_adapted():
    entries = field("m", MapOf(field("key", "int64", 2, is_required=True), field("value", "float64", 3)), 1)
    rows = [[(1, 1.5)], None, [], [(2, None), (3, 2.5)]]
    column = chunks(rows, pa.map_(pa.int8(), pa.float32())).slice(1)
    found = adapt_column(column, source(1, source(2), source(3)), entries, 3)
    found.validate(full=True)
    assert found.to_pylist() == rows[1:]


def test_items_that_lie_under_a_null_list_are_nobodys():
    items = field("l", ListOf(field("element", ListOf(field("element", "uuid", 3)), 2)), 1)
    inner = array_of([[b"a" * 16], None, [b"b" * 16, None], []], pa.list_(pa.uuid()))
    column = pa.LargeListArray.from_arrays([0, 1, 3, 4], inner, mask=pa.array([False, True, False]))
    found = adapt_column(pa.chunked_array([column]), source(1, source(2, source(3))), items, 3)
    found.validate(full=True)
    assert found.chunk(0).values.equals(array_of([[b"a" * 16], []], to_arrow_type(items.type).value_type))
    assert found.chunk(0).is_valid().to_pylist() == [True, False, True]


def test_missing_fields_of_every_shape_are_null():
    uuids = ListOf(field("element", "uuid", 4))
    inner = field("s", StructOf((field("x", "int8", 2), field("l", uuids, 3))), 1)
    column = chunks([{"x": 1}, None], pa.struct([("x", pa.int8())]))
    assert adapt_column(column, source(1, source(2)), inner, 2).to_pylist() == [{"x": 1, "l": None}, None]


@pytest.mark.parametrize("type_", [pa.string(), pa.int8(), pa.struct([("x", pa.int8())])], ids=str)
def test_a_column_of_another_shape_is_refused_by_name(type_):
    items = field("l", ListOf(field("element", "int8", 2)), 1)
    with pytest.raises(SchemaMismatch, match="l: the column has another type"):
        adapt_column(pa.chunked_array([pa.nulls(1, type_)]), source(1, source(2)), items, 1)


def test_a_value_that_does_not_fit_is_refused_with_its_path():
    column = chunks([{"x": 1.5}], pa.struct([("x", pa.float64())]))
    with pytest.raises(SchemaMismatch, match=r"s\.x: a value does not fit the column's type"):
        adapt_column(column, source(1, source(2)), STRUCT, 1)


@given(data=st.data(), schema=plain_schemas())
def test_the_slow_way_gives_what_the_fast_way_gives(data, schema: TableSchema):
    rows = data.draw(st.lists(st.fixed_dictionaries({f.name: values(f) for f in schema.fields}), max_size=4))
    table = table_of(to_arrow(schema), rows)
    for one, column in zip(schema.fields, table.columns, strict=True):
        assert adapt_column(column, source_of(one), one, len(rows)) is column
        nullable = pa.chunked_array([_all_nullable(chunk) for chunk in column.chunks], _nullable_type(column.type))
        found = adapt_column(nullable, source_of(one), one, len(rows))
        found.validate(full=True)
        assert found.equals(column)


def _nullable_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _nullable_type(f.type)) for f in type_])
    if pa.types.is_map(type_):
        return pa.map_(_nullable_type(type_.key_type), _nullable_type(type_.item_type))
    if pa.types.is_list(type_):
        return pa.large_list(_nullable_type(type_.value_type))
    return pa.large_string() if pa.types.is_string(type_) else type_


def _all_nullable(chunk: pa.Array) -> pa.Array:
    """The same values in other Arrow types."""
    type_ = chunk.type
    target = _nullable_type(type_)
    if pa.types.is_struct(type_):
        parts = [_all_nullable(chunk.field(at)) for at in range(type_.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=chunk.is_null())
    if pa.types.is_map(type_):
        mask = chunk.is_null() if chunk.null_count else None
        return pa.MapArray.from_arrays(
            chunk.offsets, _all_nullable(chunk.keys), _all_nullable(chunk.items), type=target, mask=mask
        )
    if pa.types.is_list(type_):
        offsets = chunk.offsets.cast(pa.int64())
        mask = chunk.is_null() if chunk.null_count else None
        return pa.LargeListArray.from_arrays(offsets, _all_nullable(chunk.values), type=target, mask=mask)
    return chunk.cast(target) if pa.types.is_string(type_) else chunk
