from __future__ import annotations

import io
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schema.examples import array_of, field, plain_schemas, schema_of, table_of, values
from underlay.errors import SchemaMismatch
from underlay.schema.cast.conform import conform, unfit_rows
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.convert.ddl import parse_ddl
from underlay.schema.ids import number_fields
from underlay.schema.table_schema import TableSchema


@given(data=st.data(), schema=plain_schemas())
def test_rows_of_the_schema_pass_and_can_be_written(data, schema: TableSchema):
    rows = data.draw(st.lists(st.fixed_dictionaries({f.name: values(f) for f in schema.fields}), max_size=5))
    arrow = to_arrow(schema)
    table = table_of(arrow, rows)
    shuffled = table.select(list(reversed(table.column_names)))
    found = conform(shuffled, schema)
    assert found.schema.equals(arrow, check_metadata=True)
    assert found.equals(table)
    pq.write_table(found, io.BytesIO())


def test_columns_that_fit_are_passed_on_as_they_are():
    column = pa.array([1, 2], pa.int32())
    found = conform(pa.table({"a": column}), schema_of(a="int32"))
    assert found.column("a").chunk(0).buffers()[1].address == column.buffers()[1].address


def test_a_batch_is_taken_as_a_table_is():
    batch = pa.record_batch({"a": pa.array([1], pa.int8())})
    assert conform(batch, schema_of(a="int32")).to_pylist() == [{"a": 1}]


def test_an_unknown_column_is_refused_with_the_known_ones():
    with pytest.raises(SchemaMismatch, match=r"no column b\. .*Columns: a"):
        conform(pa.table({"a": [1], "b": [1]}), schema_of(a="int64"))


def test_an_unknown_column_is_refused_with_the_nearest_of_many():
    schema = schema_of(**{f"fare_{number}": "int64" for number in range(300)})
    with pytest.raises(SchemaMismatch) as raised:
        conform(pa.table({"fare_30x": [1]}), schema)
    assert str(raised.value).endswith("Did you mean fare_30 or fare_230 or fare_130? There are 300 columns.")


def test_a_column_in_other_case_is_refused_with_a_suggestion():
    with pytest.raises(SchemaMismatch, match="Did you mean a"):
        conform(pa.table({"A": [1]}), schema_of(a="int64"))


def test_a_column_given_twice_is_refused():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(SchemaMismatch, match="twice"):
        conform(table, schema_of(a="int64"))


def test_a_missing_column_is_null_or_its_default():
    schema = number_fields([field("a", "int8"), field("b", "int8"), field("c", "int8", default="7", is_required=True)])
    found = conform(pa.table({"a": pa.array([1, 2], pa.int8())}), schema)
    assert found.to_pylist() == [{"a": 1, "b": None, "c": 7}, {"a": 2, "b": None, "c": 7}]


def test_a_missing_required_column_is_refused():
    with pytest.raises(SchemaMismatch, match="b: a required column is missing"):
        conform(pa.table({"a": [1]}), parse_ddl("a bigint, b int not null"))


def test_a_column_of_nulls_without_a_type_fits_every_nullable_column():
    assert conform(pa.table({"a": pa.nulls(2)}), parse_ddl("a struct<x: int>")).to_pylist() == [{"a": None}] * 2
    with pytest.raises(SchemaMismatch, match="required column holds null in row 0"):
        conform(pa.table({"a": pa.nulls(2)}), parse_ddl("a int not null"))


def test_a_type_with_other_values_is_refused():
    with pytest.raises(SchemaMismatch, match=r"a: the column has another type \(expected int32, found string\)"):
        conform(pa.table({"a": ["1"]}), schema_of(a="int32"))


def test_values_that_are_the_same_in_the_tables_type_are_taken():
    given_rows = pa.table({"a": [1, 2**31 - 1], "b": [2**53, None], "c": [1.0, None], "d": [7, 8]})
    found = conform(given_rows, parse_ddl("a int, b double, c smallint, d decimal(3, 1)"))
    assert found.to_pylist() == [
        {"a": 1, "b": 2.0**53, "c": 1, "d": Decimal("7.0")},
        {"a": 2**31 - 1, "b": None, "c": None, "d": Decimal("8.0")},
    ]


@pytest.mark.parametrize(
    ("column", "ddl", "row", "more", "shown"),
    [
        (pa.chunked_array([[1, 2], [3, 2**31, 5, -(2**31) - 1]]), "a int", 3, ", and in 1 more", "2147483648"),
        (pa.array([2**53, 2**53 + 1]), "a double", 1, "", "9007199254740993"),
        (pa.array([1.0, float("nan"), 1.5]), "a bigint", 1, ", and in 1 more", "nan"),
        (pa.array([1, 1000, None, 1001]), "a decimal(5, 2)", 1, ", and in 1 more", "1000"),
        (pa.array([[1], [2, 300], None, [999]]), "a array<tinyint>", 1, ", and in 1 more", r"\[2, 300\]"),
        (pa.array([{"x": 1}, None, {"x": 300}]), "a struct<x: tinyint>", 2, "", "{'x': 300}"),
        (pa.array([1000, 1001], pa.timestamp("ns")), "a timestamp", 1, "", ".*"),
        (pa.array([300] * 5000), "a decimal(2, 0)", 0, ", and in at least 999 more", "300"),
    ],
)
def test_the_first_row_that_does_not_fit_is_named_with_its_value_and_how_many_do_not(column, ddl, row, more, shown):
    for begin in (0, 1000):
        problem = f"a value does not fit the column's type in row {begin + row}{more} .*found {shown}"
        with pytest.raises(SchemaMismatch, match=problem):
            conform(pa.table({"a": column}), parse_ddl(ddl), first_row=begin)


def test_rows_that_do_not_fit_are_found_with_their_reasons():
    given_rows = pa.table({"a": [1, 300, None], "b": [["x"], None, [None]], "c": [1.0, 2.0, 2.5]})
    assert unfit_rows(given_rows, parse_ddl("a tinyint, b array<string not null>, c bigint")) == {
        1: "column a: a value does not fit the column's type: 300",
        2: "column b.element: a required column holds null: [None]",
    }


def test_a_value_under_a_null_struct_does_not_matter():
    column = pa.StructArray.from_arrays([pa.array([1, 2**40])], names=["x"], mask=pa.array([False, True]))
    assert conform(pa.table({"a": column}), parse_ddl("a struct<x: int>")).to_pylist() == [{"a": {"x": 1}}, {"a": None}]


def test_views_and_dictionaries_within_lists_and_structs_are_taken():
    category = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.uint32()), pa.array(["a", "b"], pa.string_view()))
    gaps = pa.array([1, 0, 2], pa.int64())
    view = pa.LargeListViewArray.from_arrays(gaps, pa.array([2, 1, 1], pa.int64()), category)
    texts = pa.LargeListViewArray.from_arrays(
        gaps, pa.array([2, 1, 1], pa.int64()), pa.array(["x", "y", "z"], pa.string_view())
    )
    runs = pa.compute.run_end_encode(pa.array([7, 7, 8], pa.int64()))
    struct = pa.StructArray.from_arrays([category, runs], names=["c", "r"], mask=pa.array([False, True, False]))
    inside = pa.LargeListViewArray.from_arrays(gaps, pa.array([2, 1, 1], pa.int64()), struct)
    found = conform(
        pa.table({"l": view, "t": texts, "s": struct, "i": inside}),
        parse_ddl("l array<string>, t array<string>, s struct<c: string, r: int>, i array<struct<c: string, r: int>>"),
    )
    structs = [{"c": "b", "r": 7}, None, {"c": "b", "r": 8}]
    assert found.to_pydict() == {
        "l": [["a", "b"], ["b"], ["b"]],
        "t": [["y", "z"], ["x"], ["z"]],
        "s": structs,
        "i": [[None, structs[2]], [structs[0]], [structs[2]]],
    }


@given(data=st.data(), schema=plain_schemas())
def test_rows_of_other_arrow_types_of_the_same_values_pass(data, schema: TableSchema):
    rows = data.draw(st.lists(st.fixed_dictionaries({f.name: values(f) for f in schema.fields}), max_size=5))
    table = table_of(to_arrow(schema), rows)
    other = pa.table({name: otherwise(table[name], data) for name in table.column_names})
    assert conform(other, schema).equals(table)


def otherwise(column: pa.ChunkedArray, data: st.DataObject) -> pa.Array:
    """The same values in another of Arrow's types, where there is one."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return _otherwise(array, data)


def _otherwise(array: pa.Array, data: st.DataObject) -> pa.Array:
    types = pa.types
    if isinstance(array, pa.StructArray):
        parts = [_otherwise(part, data) for part in array.flatten()]
        names = [array.type.field(at).name for at in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(parts, names=names, mask=array.is_null())
    if types.is_list(array.type):
        kind = data.draw(st.sampled_from((pa.LargeListArray, pa.ListArray)))
        offsets = array.offsets.cast(pa.int64() if kind is pa.LargeListArray else pa.int32())
        return kind.from_arrays(offsets, _otherwise(array.values, data), mask=array.is_null())
    other = {pa.string(): (pa.large_string(), pa.string_view()), pa.binary(): (pa.large_binary(), pa.binary_view())}
    if array.type in other:
        array = array.cast(data.draw(st.sampled_from(other[array.type])))
    elif types.is_integer(array.type):
        array = array.cast(pa.decimal128(20, 0))
    elif types.is_float32(array.type):
        array = array.cast(pa.float64())
    elif types.is_date(array.type):
        array = array.cast(pa.timestamp("s"))
    if types.is_nested(array.type) or isinstance(array, pa.ExtensionArray) or types.is_float16(array.type):
        return array
    if types.is_string(array.type) or types.is_integer(array.type):
        return array.dictionary_encode() if data.draw(st.booleans()) else array
    return array


def test_an_overflow_names_the_first_row_and_its_value():
    column = pa.chunked_array([[1, 2], [3, 2**62, 2**61]], pa.timestamp("ms"))
    with pytest.raises(SchemaMismatch, match="a: a value does not fit the column's type in row 3"):
        conform(pa.table({"a": column}), schema_of(a="timestamp(us)"))


def bad_text(*values_: bytes) -> pa.Array:
    binary = pa.array(values_, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(binary), binary.buffers())


def test_text_that_is_not_utf_8_is_refused_with_its_row():
    with pytest.raises(SchemaMismatch, match="a: text is not valid UTF-8 in row 2"):
        conform(pa.table({"a": bad_text(b"a", b"b", b"c\xff", b"\xff")}), schema_of(a="string"))


def test_text_in_a_list_that_is_not_utf_8_is_refused_with_its_row():
    column = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), bad_text(b"a", b"b", b"\xff"))
    with pytest.raises(SchemaMismatch, match=r"a\.element: text is not valid UTF-8 in row 2"):
        conform(pa.table({"a": column}), parse_ddl("a string[]"))


def test_a_decimal_with_too_many_digits_is_refused():
    wide = pa.array([Decimal("1.00"), Decimal("123456.00")], pa.decimal128(20, 2))
    lying = pa.Array.from_buffers(pa.decimal128(5, 2), 2, wide.buffers())
    with pytest.raises(SchemaMismatch, match="a: a decimal has too many digits in row 1"):
        conform(pa.table({"a": lying}), schema_of(a="decimal(5,2)"))


@pytest.mark.parametrize(
    ("ddl", "rows", "row", "place"),
    [
        ("a int not null", [1, None], 1, "a"),
        ("a struct<x: int not null>", [None, {"x": 1}, {"x": None}], 2, "a.x"),
        ("a array<int not null>", [[1], None, [2, None]], 2, "a.element"),
        ("a map<string, int not null>", [None, [("k", None)]], 1, "a.value"),
        ("a array<struct<x: int not null>>", [[None], [{"x": None}]], 1, "a.element.x"),
        ("a struct<s: struct<x: int not null> not null>", [None, {"s": None}], 1, "a.s"),
    ],
)
def test_a_null_that_is_not_allowed_is_refused_with_its_row(ddl, rows, row, place):
    schema = parse_ddl(ddl)
    loose = parse_ddl(ddl.replace(" not null", ""))
    table = pa.table([pa.array(rows, to_arrow(loose).field("a").type)], names=["a"])
    with pytest.raises(SchemaMismatch, match=f"required column holds null in row {row}") as caught:
        conform(table, schema)
    assert caught.value.place == place


@pytest.mark.parametrize(
    ("ddl", "rows"),
    [
        ("a struct<x: int not null, t: string not null, u: uuid not null>", [None, {"x": 1, "t": "a", "u": b"u" * 16}]),
        ("a struct<l: array<int not null> not null>", [{"l": [1]}, None]),
        ("a struct<s: struct<x: int not null> not null>", [None, {"s": {"x": 1}}]),
        ("a struct<m: map<string, int> not null>", [None, {"m": [("k", 1)]}]),
        ("a array<struct<x: int not null>>", [[None, {"x": 1}], None, []]),
        ("a map<string, struct<x: int not null>>", [[("k", None), ("l", {"x": 1})], None]),
    ],
)
def test_a_null_under_a_null_is_nobodys_and_the_rows_can_be_written(ddl, rows):
    schema = parse_ddl(ddl)
    loose = parse_ddl(ddl.replace(" not null", ""))
    given_rows = pa.table([array_of([*rows, *rows], to_arrow(loose).field("a").type)], names=["a"]).slice(1)
    found = conform(given_rows, schema)
    assert found.to_pylist() == given_rows.to_pylist()
    target = io.BytesIO()
    pq.write_table(found, target)
    assert pq.read_table(target).to_pylist() == given_rows.to_pylist()
    missing = conform(pa.table({"b": [1, 2]}), parse_ddl(f"{ddl}, b bigint"))
    pq.write_table(missing, target)
    assert missing["a"].null_count == 2


def test_fields_of_structs_are_matched_by_name():
    table = pa.table({"s": [{"y": 1, "x": 2}]})
    assert conform(table, parse_ddl("s struct<x: bigint, y: bigint, z: int>")).to_pylist() == [
        {"s": {"x": 2, "y": 1, "z": None}}
    ]


def test_an_unknown_field_of_a_struct_is_refused_with_its_path():
    with pytest.raises(SchemaMismatch, match=r"no column s\.y"):
        conform(pa.table({"s": [{"x": 2, "y": 1}]}), parse_ddl("s struct<x: bigint>"))


def test_a_zone_is_neither_added_nor_taken_away():
    naive, aware = pa.array([0], pa.timestamp("us")), pa.array([0], pa.timestamp("us", "UTC"))
    for column, type_ in ((naive, "timestamptz"), (aware, "timestamp")):
        with pytest.raises(SchemaMismatch, match="another type"):
            conform(pa.table({"a": column}), parse_ddl(f"a {type_}"))


def test_no_rows_conform():
    assert conform(pa.table({"a": pa.array([], pa.int8())}), schema_of(a="int64")).num_rows == 0
