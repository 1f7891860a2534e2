from __future__ import annotations

import msgspec
from hypothesis import given

from tests.gate import costly
from tests.index.segment_examples import file_entry, schema_of
from tests.plan.worlds import TYPES, World, obvious_plan, predicates, worlds
from underlay.index.root import SegmentRef
from underlay.index.segment.write import write_segment
from underlay.plan.by_segment import surviving
from underlay.prune import Predicate
from underlay.prune.parse.sql import parse_where
from underlay.schema.table_schema import TableSchema

SCHEMA = schema_of({"id": "int64", "name": "string"})


def ref_of(ids: list[int | None], schema: TableSchema = SCHEMA) -> SegmentRef:
    return write_segment([file_entry("a", schema, {"id": [ids]})], schema, segment_id="s", bounded_fields=[1, 2])[1]


@costly
@given(worlds(), predicates())
def test_a_segment_with_a_block_that_may_match_survives(world: World, predicate: Predicate):
    fields = range(1, len(TYPES) + 1)
    refs = [write_segment(e, world.schema, segment_id="s", bounded_fields=fields)[1] for e in world.entries]
    kept = surviving(refs, world.schema, predicate)
    assert all(kept[part] for part, _, _ in obvious_plan(world, predicate))


def test_segments_out_of_range_are_left_out():
    refs = [ref_of([1, 5]), ref_of([10, 20]), ref_of([None])]
    assert surviving(refs, SCHEMA, parse_where("id >= 7")).tolist() == [False, True, False]
    assert surviving(refs, SCHEMA, parse_where("id is null")).tolist() == [False, False, True]


def test_a_segment_without_bounds_survives():
    bare = msgspec.structs.replace(ref_of([1]), bounds=())
    assert surviving([bare], SCHEMA, parse_where("id = 9 and name = 'x'")).tolist() == [True]


def test_bounds_of_an_older_type_are_converted():
    """T8."""
    old, new = schema_of({"id": "decimal(9, 2)"}), schema_of({"id": "decimal(20, 4)"})
    refs = [ref_of([150, 200], old), ref_of([150, 200], new)]
    assert surviving(refs, new, parse_where("id >= 1.5")).tolist() == [True, False]
    assert surviving(refs, new, parse_where("id < 1")).tolist() == [False, True]


def test_no_segments_have_no_survivors():
    assert surviving([], SCHEMA, parse_where("id = 1")).tolist() == []
