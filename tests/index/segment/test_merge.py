from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.gate import costly
from tests.index.segment_examples import file_entry, schema_of
from tests.plan.worlds import World, stored, worlds
from underlay.index.deletion_vectors import pack
from underlay.index.entry import FileEntry
from underlay.index.segment.merge import MergeInput, merge_segments
from underlay.index.segment.segment import Segment
from underlay.index.segment.widen import widened
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import parse_scalar


def merged(inputs: list[MergeInput], schema: TableSchema) -> list[FileEntry]:
    data, ref = merge_segments(inputs, schema, segment_id="m", bounded_fields=())
    return Segment.open(ref, lambda ranges: [memoryview(data)[a:b] for a, b in ranges], "m").entries()


@costly
@given(worlds(), st.data())
def test_a_merge_is_what_writing_the_kept_entries_would_be(world: World, data: st.DataObject):
    inputs, expected = [], []
    for entries, removed in zip(world.entries, world.removed, strict=True):
        deletes = {row: (pack([0, 3]), 2) for row in range(len(entries)) if data.draw(st.booleans())}
        is_kept = None if not any(removed) else ~np.array(removed, dtype=np.bool_)
        inputs.append(MergeInput(segment=stored(entries, world.schema), is_kept=is_kept, deletes=deletes))
        for row, entry in enumerate(entries):
            if not removed[row]:
                replaced = deletes.get(row, (entry.deletes, entry.deleted_rows))
                expected.append(msgspec.structs.replace(entry, deletes=replaced[0], deleted_rows=replaced[1]))
    assert merged(inputs, world.schema) == expected


def test_bounds_of_a_widened_decimal_are_rescaled():
    narrow, wide = schema_of({"price": "decimal(9, 2)"}), schema_of({"price": "decimal(20, 4)"})
    old = file_entry("a", narrow, {"price": [[-150, 99]]})
    new = file_entry("b", wide, {"price": [[1]]})
    inputs = [MergeInput(segment=stored([old], narrow)), MergeInput(segment=stored([new], wide))]
    assert merged(inputs, wide) == [file_entry("a", wide, {"price": [[-15_000, 9_900]]}), new]


def test_bounds_of_wider_integers_and_floats_stay():
    narrow = schema_of({"n": "int32", "f": "float32"})
    wide = schema_of({"n": "int64", "f": "float64"})
    old = file_entry("a", narrow, {"n": [[1, 5]], "f": [[0.5]]})
    assert merged([MergeInput(segment=stored([old], narrow))], wide) == [old]


def test_bounds_of_a_finer_timestamp_are_multiplied_and_one_that_overflows_is_no_bound():
    coarse, fine = schema_of({"at": "timestamp(ms)"}), schema_of({"at": "timestamp(ns)"})
    (entry,) = merged([MergeInput(segment=stored([file_entry("a", coarse, {"at": [[5, 2**60]]})], coarse))], fine)
    column = entry.columns[0]
    assert np.frombuffer(column.low, "<i8").tolist() == [5_000_000]
    assert column.flags[0] & 0b1111 == 0b0101


def test_bounds_of_another_meaning_are_left_out_and_null_counts_stay():
    plain = schema_of({"at": "timestamp(us)"})
    statistics = stored([file_entry("a", plain, {"at": [[5, None]]})], plain).statistics(1)
    assert statistics is not None
    found = widened(statistics, parse_scalar("timestamp(us, UTC)"))
    assert found.flags[0] & 0b1111 == 0
    assert found.null_counts.tolist() == [1]


def test_a_dropped_column_is_left_out():
    both, one = schema_of({"n": "int32", "f": "float32"}), schema_of({"n": "int32"})
    old = file_entry("a", both, {"n": [[1]], "f": [[0.5]]})
    assert merged([MergeInput(segment=stored([old], both))], one) == [file_entry("a", one, {"n": [[1]]})]
