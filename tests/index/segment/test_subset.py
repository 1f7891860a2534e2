"""Files chosen array by array are those that writing their entries would give."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.gate import costly
from tests.index.segment_examples import file_entry, schema_of
from tests.plan.worlds import World, stored, worlds
from underlay.index.entry import FileEntry
from underlay.index.segment.arrays import Arrays
from underlay.index.segment.segment import Segment
from underlay.index.segment.subset import FileSubset, PartitionedFiles
from underlay.index.segment.write import encode_segment, write_segment
from underlay.schema.table_schema import TableSchema


def reopened(arrays: Arrays) -> list[FileEntry]:
    data, ref = encode_segment(arrays, segment_id="s", bounded_fields=())
    return Segment.open(ref, lambda ranges: [memoryview(data)[a:b] for a, b in ranges], "s").entries()


@costly
@given(worlds(), st.data())
def test_chosen_files_are_what_writing_their_entries_would_be(world: World, data: st.DataObject):
    for entries in world.entries:
        rows = data.draw(st.permutations(range(len(entries))))[: data.draw(st.integers(0, len(entries)))]
        chosen = FileSubset(stored(entries, world.schema), np.array(rows, np.int64))
        assert reopened(chosen) == [entries[row] for row in rows]


def two_shapes() -> tuple[list[FileEntry], TableSchema]:
    schema = schema_of({"a": "int64", "s": "string"})
    without = file_entry("x", schema_of({"a": "int64"}), {"a": [[1], [2]]})
    return [without, file_entry("y", schema, {"a": [[3]], "s": [[b"q"]]})], schema


def test_a_leaf_that_no_chosen_file_has_is_left_out():
    entries, schema = two_shapes()
    chosen = FileSubset(stored(entries, schema), np.array([0]))
    (leaf,) = chosen.files.fields
    assert [field for field in schema.leaf_by_id if chosen.statistics(field) is not None] == [leaf]
    wanted, _ = write_segment(entries[:1], schema, segment_id="s", bounded_fields=())
    assert encode_segment(chosen, segment_id="s", bounded_fields=())[0] == wanted


def test_partitions_are_replaced():
    entries, schema = two_shapes()
    values = [(b"p", None), (b"", b"q")]
    made = reopened(PartitionedFiles(stored(entries, schema), values, 3))
    assert made == [replace(entry, partition=value, spec=3) for entry, value in zip(entries, values, strict=True)]
