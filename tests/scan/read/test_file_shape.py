from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from underlay.index.entry import FileLayout
from underlay.index.intake.entries import match_footer
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import TAIL_BYTES, read_tail
from underlay.scan.read.file_shape import FileShape
from underlay.schema.convert.ddl import parse_ddl
from underlay.schema.record import FieldRecord, SchemaRecord, from_record, to_record
from underlay.schema.table_schema import TableSchema


def layout_of(data: pa.Table, table: TableSchema, *, ignore_surplus: bool = False) -> FileLayout:
    """The layout of a file that somebody wrote."""
    sink = io.BytesIO()
    pq.write_table(data, sink)
    stored = sink.getvalue()
    tail = read_tail(stored[-TAIL_BYTES:], len(stored))
    footer = Footer.parse(stored[tail.footer_offset : tail.footer_offset + tail.footer_length])
    found = match_footer(footer, table, ignore_surplus=ignore_surplus)
    assert isinstance(found, FileLayout)
    return found


def shape_of(data: pa.Table, table: TableSchema, later: TableSchema | None = None, *names: str) -> FileShape:
    schema = later or table
    wanted = tuple(schema.column(name) for name in names or schema.names)
    return FileShape.of(layout_of(data, table, ignore_surplus=True), schema, wanted)


OLD = parse_ddl("a bigint, s struct<x: bigint, y: string>, b int")
DATA = pa.table({"b": pa.array([1, 2], pa.int32()), "a": [3, 4], "s": [{"x": 5, "y": "u"}, None]})


def evolved(*fields: FieldRecord) -> TableSchema:
    return from_record(SchemaRecord(fields=fields, last_id=100))


def test_columns_are_found_wherever_they_lie_in_the_file():
    shape = shape_of(DATA, OLD)
    assert [(column.name_in_file, column.leaves) for column in shape.columns] == [
        ("a", (1,)),
        ("s", (2, 3)),
        ("b", (0,)),
    ]
    assert shape.adapt(DATA, 2, ()).to_pylist() == DATA.select(["a", "s", "b"]).to_pylist()


def test_only_wanted_columns_have_leaves():
    shape = shape_of(DATA, OLD, None, "s")
    assert [column.leaves for column in shape.columns] == [(2, 3)]
    assert shape.adapt(DATA.select(["s"]), 2, ()).schema.names == ["s"]


def test_a_column_that_the_file_lacks_has_its_default():
    first = to_record(OLD).fields[0]
    later = evolved(first, FieldRecord(id=90, name="new", type="int64", default="7"))
    shape = shape_of(DATA, OLD, later)
    assert shape.columns[1].leaves == ()
    assert shape.adapt(DATA.select(["a"]), 2, ()).to_pylist() == [{"a": 3, "new": 7}, {"a": 4, "new": 7}]


def test_a_renamed_column_is_found_by_its_id():
    record = to_record(OLD).fields[0]
    later = evolved(FieldRecord(id=record.id, name="z", type=record.type))
    shape = shape_of(DATA, OLD, later)
    assert shape.columns[0].name_in_file == "a"
    assert shape.adapt(DATA.select(["a"]), 2, ()).to_pylist() == [{"z": 3}, {"z": 4}]


def test_a_wider_type_is_what_the_table_has_now():
    record = to_record(OLD).fields[2]
    later = evolved(FieldRecord(id=record.id, name="b", type="int64"))
    found = shape_of(DATA, OLD, later).adapt(DATA.select(["b"]), 2, ())
    assert found.schema.field("b").type == pa.int64()
    assert found.to_pylist() == [{"b": 1}, {"b": 2}]


def test_columns_that_are_known_to_be_null_need_no_decoded_column():
    shape = shape_of(DATA, OLD, None, "a", "b")
    found = shape.adapt(DATA.select(["b"]), 2, {OLD.column("a").id})
    assert found.to_pylist() == [{"a": None, "b": 1}, {"a": None, "b": 2}]


def test_parts_of_a_struct_that_the_table_does_not_have_are_not_decoded():
    narrow = parse_ddl("s struct<y: string>")
    shape = shape_of(DATA, narrow)
    assert shape.columns[0].leaves == (3,)


def test_a_shape_is_worked_out_once():
    assert shape_of(DATA, OLD) is shape_of(DATA, OLD)
