"""The field tables: without gaps, of the published sizes, and the same as struct and as dtype."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from underlay.pm.format.layout import CHUNK, DESCRIPTOR, FOOTER, HEADER, LAYOUTS, MINIMUM_SIZE, RecordLayout

each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)


def test_records_have_the_sizes_of_the_format():
    assert [layout.size_bytes for layout in (HEADER, DESCRIPTOR, CHUNK, FOOTER)] == [32, 32, 64, 40]
    assert MINIMUM_SIZE == 80


@each_layout
def test_fields_follow_each_other_without_gaps(layout: RecordLayout):
    ends = [field.offset + field.size_bytes for field in layout.fields]
    assert [field.offset for field in layout.fields] == [0, *ends[:-1]]
    assert ends[-1] == layout.size_bytes


@each_layout
def test_struct_and_dtype_read_the_same_values(layout: RecordLayout):
    raw = bytes(range(1, layout.size_bytes + 1))
    record = np.frombuffer(raw, layout.dtype)[0]
    assert layout.dtype.itemsize == layout.size_bytes
    assert record.tolist() == layout.struct.unpack(raw)
    assert layout.struct.pack(*record.tolist()) == raw


@each_layout
def test_dtype_offsets_are_those_of_the_table(layout: RecordLayout):
    fields = layout.dtype.fields
    assert fields is not None
    assert {name: offset for name, (_, offset) in fields.items()} == {f.name: f.offset for f in layout.fields}
    assert all(layout.offset(field.name) == field.offset for field in layout.fields)


@each_layout
def test_the_table_in_words_has_a_row_for_every_field(layout: RecordLayout):
    rows = layout.markdown().splitlines()[2:]
    assert [row.split(" | ")[:4] for row in rows] == [
        [f"| {f.offset}", str(f.size_bytes), f.type, f.name] for f in layout.fields
    ]
    assert all(field.meaning for field in layout.fields)


@each_layout
def test_names_are_unique(layout: RecordLayout):
    names = sorted(field.name for field in layout.fields)
    assert all(a != b for a, b in itertools.pairwise(names))
