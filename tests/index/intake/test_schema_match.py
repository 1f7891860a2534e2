"""Which files fit a table, and which of their leaves hold which of its fields."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import genuine
from tests.parquet.footers import footer_bytes, written
from underlay.index.intake.entries import match_footer
from underlay.index.intake.schema_match import Fit, Misfit, match_schema, schema_of, source_fields
from underlay.index.intake.shape import ColumnForm, shapes_of
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import load_footer
from underlay.schema.cast.adapt import SourceField
from underlay.schema.convert.arrow import from_arrow, to_arrow
from underlay.schema.table_schema import TableSchema

NESTED = pa.schema(
    [
        pa.field("n", pa.int64()),
        pa.field("s", pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])),
        pa.field("l", pa.list_(pa.struct([pa.field("v", pa.float64())]))),
        pa.field("m", pa.map_(pa.string(), pa.list_(pa.int32()))),
    ]
)


def footer_of(table: pa.Table, **options: object) -> Footer:
    return Footer.parse(footer_bytes(written(table, **options)))


def table_of(*fields: pa.Field) -> TableSchema:
    return from_arrow(pa.schema(fields))


def column(type_: pa.DataType, value: object = None, name: str = "c") -> pa.Table:
    return pa.table({name: pa.array([value], type_)})


def fits(found: pa.Table, wanted: pa.DataType, **options: object) -> bool:
    return not isinstance(match_footer(footer_of(found, **options), table_of(pa.field("c", wanted))), Misfit)


def reasons(footer: Footer, table: TableSchema, **options: object) -> tuple[str, ...]:
    found = match_footer(footer, table, **options)
    assert isinstance(found, Misfit)
    return found.reasons


def test_nested_columns_match_by_name():
    table = from_arrow(NESTED)
    found = match_schema(footer_of(NESTED.empty_table()).schema, "x", table)
    assert isinstance(found, Fit)
    assert found.layout.fields == tuple(leaf.id for leaf in table.leaves)
    assert found.demands == ()


def test_a_file_with_our_ids_matches_whatever_its_names():
    table = from_arrow(NESTED)
    names = ["1", "2", "3", "4"]
    footer = footer_of(to_arrow(table).empty_table().rename_columns(names))
    # rename_columns drops no metadata of fields, so the ids are still there
    found = match_footer(footer, table, by="id")
    assert not isinstance(found, Misfit)
    assert found.fields == tuple(leaf.id for leaf in table.leaves)
    assert isinstance(match_footer(footer, table, by="name"), Misfit)


def test_source_fields_mirror_arrow():
    table = from_arrow(NESTED)
    found = match_footer(footer_of(NESTED.empty_table()), table)
    assert not isinstance(found, Misfit)
    n, s, l, m = table.fields  # noqa: E741 - the columns' own names
    sources = source_fields(found, table)
    assert [source.id for source in sources] == [n.id, s.id, l.id, m.id]
    assert [child.id for child in sources[1].children] == [3, 4]
    element = sources[2].children[0]
    assert element == SourceField(id=6, children=(SourceField(id=7),))
    key, value = sources[3].children
    assert (key.id, value.id, value.children[0].id) == (9, 10, 11)


def test_source_fields_of_a_column_dropped_since_are_none():
    table = from_arrow(NESTED)
    found = match_footer(footer_of(NESTED.empty_table()), table)
    assert not isinstance(found, Misfit)
    fewer = TableSchema(fields=table.fields[1:], last_id=table.last_id)
    assert source_fields(found, fewer)[0] == SourceField(id=None)


def test_a_layout_keeps_the_schema():
    footer = footer_of(NESTED.empty_table())
    assert schema_of(footer.schema.raw) == footer.schema


def test_layout_ids_tell_schema_writer_and_fields_apart():
    table = from_arrow(NESTED)
    schema = footer_of(NESTED.empty_table()).schema
    made = [match_schema(schema, by, table) for by in ("x", "y", "x")]
    ids = [found.layout.id for found in made if isinstance(found, Fit)]
    assert ids[0] == ids[2] != ids[1]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.int32(), pa.int64()),
        (pa.uint8(), pa.uint32()),
        (pa.uint32(), pa.int64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(9, 2), pa.decimal128(20, 4)),
        (pa.timestamp("ms"), pa.timestamp("ns")),
        (pa.timestamp("us", "Europe/Warsaw"), pa.timestamp("us", "UTC")),
        (pa.time32("ms"), pa.time64("us")),
        (pa.large_string(), pa.string()),
        (pa.null(), pa.string()),
    ],
)
def test_exactly_widenable_types_fit(found, wanted):
    assert fits(column(found), wanted)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.int64(), pa.int32()),
        (pa.uint64(), pa.int64()),
        (pa.int32(), pa.uint32()),
        (pa.float64(), pa.float32()),
        (pa.decimal128(9, 4), pa.decimal128(20, 2)),
        (pa.decimal128(9, 0), pa.decimal128(9, 2)),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.timestamp("ms"), pa.timestamp("s")),
        (pa.binary(), pa.string()),
        (pa.string(), pa.int32()),
        (pa.struct([pa.field("x", pa.int32())]), pa.int32()),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.int32(), pa.list_(pa.int32())),
    ],
)
def test_other_types_are_refused(found, wanted):
    assert not fits(column(found), wanted)


def test_a_reason_names_column_and_both_types():
    table = table_of(pa.field("s", pa.struct([pa.field("x", pa.int32())])))
    footer = footer_of(pa.table({"s": pa.array([{"x": "text"}])}))
    assert reasons(footer, table) == ("Column s.x is int32 in the table and string in the file.",)


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_int96_fits_timestamps(unit, zone):
    data = column(pa.timestamp("ns"), 5)
    assert fits(data, pa.timestamp(unit, zone), use_deprecated_int96_timestamps=True)


@pytest.mark.parametrize("unit", ["ms", "s"])
def test_int96_does_not_fit_coarser_timestamps(unit):
    footer = footer_of(column(pa.timestamp("ns"), 5), use_deprecated_int96_timestamps=True)
    assert reasons(footer, table_of(pa.field("c", pa.timestamp(unit)))) == (
        f"Column c is timestamp({unit}) in the table and INT96 in the file, "
        "which only microseconds and nanoseconds hold.",
    )


def test_int96_does_not_fit_other_types():
    footer = footer_of(column(pa.timestamp("ns"), 5), use_deprecated_int96_timestamps=True)
    assert reasons(footer, table_of(pa.field("c", pa.int64()))) == (
        "Column c is int64 in the table and timestamp(ns) in the file.",
    )


@pytest.mark.parametrize(
    ("type_", "path"),
    [
        (pa.struct([pa.field("x", pa.timestamp("ns"))]), "c.x"),
        (pa.list_(pa.timestamp("ns")), "c.element"),
        (pa.map_(pa.string(), pa.timestamp("ns")), "c.value"),
    ],
)
def test_int96_inside_another_column_is_refused(type_, path):
    footer = footer_of(column(type_), use_deprecated_int96_timestamps=True)
    assert reasons(footer, table_of(pa.field("c", type_))) == (
        f"Column {path} is INT96 in the file, which is read only in a column that is not nested.",
    )


def test_seconds_of_our_own_files_lie_as_milliseconds():
    table = table_of(pa.field("c", pa.timestamp("s")))
    footer = footer_of(to_arrow(table).empty_table())
    assert not isinstance(match_footer(footer, table, by="id"), Misfit)


def test_surplus_columns_are_refused_unless_ignored():
    table = table_of(pa.field("a", pa.int64()))
    footer = footer_of(pa.table({"a": [1], "b": [2]}))
    assert reasons(footer, table) == ("Column b is in the file and not in the table.",)
    found = match_footer(footer, table, ignore_surplus=True)
    assert not isinstance(found, Misfit)
    assert found.fields == (1, -1)
    assert [source.id for source in source_fields(found, table)] == [1, None]


def test_ambiguous_names_are_refused():
    table = table_of(pa.field("a", pa.int64()))
    footer = footer_of(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    assert "one of 2 columns" in reasons(footer, table)[0]


def test_names_are_compared_as_they_are():
    assert reasons(footer_of(pa.table({"A": [1]})), table_of(pa.field("a", pa.int64())))


def test_missing_optional_columns_are_fine_and_required_ones_are_not():
    footer = footer_of(pa.table({"a": [1]}))
    optional = table_of(pa.field("a", pa.int64()), pa.field("b", pa.int64()))
    assert not isinstance(match_footer(footer, optional), Misfit)
    required = table_of(pa.field("a", pa.int64()), pa.field("b", pa.int64(), nullable=False))
    assert reasons(footer, required) == ("Column b is required in the table and not in the file.",)


def test_a_required_column_needs_blocks_that_are_known_to_hold_no_null():
    table = table_of(pa.field("a", pa.int64(), nullable=False))
    assert not isinstance(match_footer(footer_of(pa.table({"a": [1, 2]}), row_group_size=1), table), Misfit)
    with_null = footer_of(pa.table({"a": [1, None]}), row_group_size=1)
    assert reasons(with_null, table) == ("Column a is required in the table, and the file may hold nulls in it.",)
    assert reasons(footer_of(pa.table({"a": [1]}), write_statistics=False), table)


def test_a_required_struct_is_proven_by_one_leaf_without_nulls():
    inner = [pa.field("x", pa.int32()), pa.field("y", pa.int32())]
    table = table_of(pa.field("s", pa.struct(inner), nullable=False))
    proven = pa.table({"s": pa.array([{"x": None, "y": 1}], pa.struct(inner))})
    assert not isinstance(match_footer(footer_of(proven), table), Misfit)
    unproven = pa.table({"s": pa.array([{"x": None, "y": None}], pa.struct(inner))})
    assert isinstance(match_footer(footer_of(unproven), table), Misfit)


@pytest.mark.parametrize(
    "name", ["old_list_structure", "list_columns", "nested_lists.snappy", "null_list", "repeated_no_annotation"]
)
def test_shapes_of_genuine_lists_are_those_of_arrow(name):
    path = genuine.fixtures() / "parquet-testing" / "data" / f"{name}.parquet"
    arrow = pq.read_schema(path)
    for shape, field in zip(shapes_of(load_footer(path).footer.schema), arrow, strict=True):
        assert_same_shape(shape, field.type)


def assert_same_shape(shape, type_):
    if pa.types.is_list(type_):
        assert shape.form is ColumnForm.LIST
        assert_same_shape(shape.children[0], type_.value_type)
    elif pa.types.is_struct(type_):
        assert shape.form is ColumnForm.STRUCT
        for child, index in zip(shape.children, range(type_.num_fields), strict=True):
            assert child.node.name == type_.field(index).name
            assert_same_shape(child, type_.field(index).type)
    elif pa.types.is_map(type_):
        assert shape.form is ColumnForm.MAP
        assert_same_shape(shape.children[1], type_.item_type)
    else:
        assert shape.form is ColumnForm.SCALAR


def test_a_two_level_list_fits_a_table_with_a_list():
    path = genuine.fixtures() / "parquet-testing" / "data" / "old_list_structure.parquet"
    table = from_arrow(pq.read_schema(path))
    found = match_footer(load_footer(path).footer, table)
    assert not isinstance(found, Misfit)
    read = pq.read_table(io.BytesIO(path.read_bytes()))
    assert len(source_fields(found, table)) == read.num_columns


def test_a_map_without_values_fits_no_table():
    path = genuine.fixtures() / "parquet-testing" / "data" / "map_no_value.parquet"
    table = table_of(pa.field("my_map_no_v", pa.map_(pa.int32(), pa.int32())))
    assert "a group that no reader understands" in " ".join(
        reasons(load_footer(path).footer, table, ignore_surplus=True)
    )
