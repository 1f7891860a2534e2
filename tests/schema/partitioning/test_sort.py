from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate import costly
from tests.schema.examples import SCALARS, field, schema_of, values
from underlay.errors import InvalidRequest, UnknownColumn
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.ids import number_fields
from underlay.schema.partitioning.sort import SortField, parse_sort, sort_indices
from underlay.schema.types import StructOf, TypeKind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", SortField(field=1)),
        ("-a", SortField(field=1, is_descending=True)),
        ("a desc", SortField(field=1, is_descending=True)),
        ("a ASC nulls LAST", SortField(field=1, is_nulls_last=True)),
        ("- a nulls first", SortField(field=1, is_descending=True)),
        ('"desc" desc nulls last', SortField(field=2, is_descending=True, is_nulls_last=True)),
    ],
)
def test_an_order_is_read(text, expected):
    assert parse_sort(schema_of(a="int32", desc="int32"), [text]) == (expected,)


@pytest.mark.parametrize("texts", [["-a desc"], ["a up"], [""], ["a", "-a"], ["h"]])
def test_text_that_is_no_order_is_refused(texts):
    with pytest.raises(InvalidRequest):
        parse_sort(schema_of(a="int32", h="float16"), texts)


def test_an_unknown_column_is_refused():
    with pytest.raises(UnknownColumn):
        parse_sort(schema_of(a="int32"), ["b"])


def sort_key(value: object) -> object:
    """Python's order of one value: NaN last, zeros alike."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("type_", [t for t in SCALARS if t.kind is not TypeKind.FLOAT16], ids=str)
@given(data=st.data(), descending=st.booleans(), last=st.booleans())
@costly
def test_rows_are_sorted_as_python_sorts_them(type_, data, descending, last):
    schema = schema_of(c=type_, n="int32")
    raw = data.draw(st.lists(values(schema.fields[0]), max_size=8))
    raw = [*raw, math.nan, -0.0, 0.0, None] if type_.kind in (TypeKind.FLOAT32, TypeKind.FLOAT64) else [*raw, *raw[:2]]
    table = pa.table(
        [pa.array(raw, to_arrow(schema).field("c").type), pa.array([0] * len(raw), pa.int32())], schema=to_arrow(schema)
    )
    cells = raw if type_.kind in (TypeKind.TIME, TypeKind.TIMESTAMP) else table.column("c").to_pylist()
    order = SortField(field=1, is_descending=descending, is_nulls_last=last)
    found = sort_indices(table, (SortField(field=2), order), schema).to_pylist()
    given_rows = [at for at, cell in enumerate(cells) if cell is not None]
    nulls = [at for at, cell in enumerate(cells) if cell is None]
    ordered = sorted(given_rows, key=lambda at: sort_key(cells[at]), reverse=descending)
    assert found == (ordered + nulls if last else nulls + ordered)


def test_rows_are_sorted_by_a_field_of_a_struct_that_is_null_where_the_struct_is():
    schema = number_fields([field("s", StructOf((field("x", "int32"),)))])
    table = pa.table([pa.array([{"x": 2}, None, {"x": 1}], to_arrow(schema).field("s").type)], schema=to_arrow(schema))
    assert sort_indices(table, parse_sort(schema, ["s.x"]), schema).to_pylist() == [1, 2, 0]


def test_without_fields_rows_stay_where_they_are():
    schema = schema_of(a="int32")
    table = pa.table({"a": pa.array([3, 1], pa.int32())})
    assert sort_indices(table, (), schema).to_pylist() == [0, 1]


def test_chunks_are_sorted_together():
    schema = schema_of(a="float64")
    table = pa.table({"a": pa.chunked_array([[3.0], [], [math.nan, -1.0]], pa.float64())})
    assert sort_indices(table, parse_sort(schema, ["-a"]), schema).to_pylist() == [1, 0, 2]
