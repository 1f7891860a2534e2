from __future__ import annotations

import json

from tests.index.segment_examples import file_entry, schema_of
from tests.plan.worlds import stored
from underlay.plan.chunks import all_ranges, block_identities, chunk_places, fetch_bytes, ranges_of
from underlay.plan.explain import explain, steps_of, to_dict
from underlay.plan.part import Part
from underlay.plan.plan import BlockPlan, make_plan
from underlay.prune.parse.sql import parse_where
from underlay.values.ranges import ByteRange

SCHEMA = schema_of({"id": "int64", "name": "string", "real": "float64"})
ENTRIES = [
    file_entry("a", SCHEMA, {"id": [[1], [2], [3]], "name": [[b"x"], [None], [b"z"]]}),
    file_entry("b", SCHEMA, {"id": [[50], [60]], "name": [[b"x"], [b"y"]]}),
    file_entry("c", SCHEMA, {"id": [[70]], "name": [[b"x"]]}, deleted=[0]),
]


def plan_of(where: str, columns: tuple[int, ...] = (1, 2, 3)) -> BlockPlan:
    return make_plan([Part(segment=stored(ENTRIES, SCHEMA))], SCHEMA, parse_where(where), columns)


def test_chunks_are_found_by_block_and_leaf():
    plan = plan_of("id between 2 and 3")
    (file,) = plan.files()
    chunks = chunk_places(plan, file, [2, 1, 3])
    assert chunks.begins.tolist() == [[1204, 1104, 0], [2204, 2104, 0]]
    assert chunks.sizes.tolist() == [[90, 90, 0], [90, 90, 0]]
    assert chunks.columns.tolist() == [[1, 0, -1], [1, 0, -1]]
    assert chunks.is_fetched.tolist() == [[False, True, False], [True, True, False]]


def test_ranges_are_joined_and_leave_out_chunks_that_are_all_null_or_absent():
    plan = plan_of("id between 2 and 3")
    (file,) = plan.files()
    assert ranges_of(plan, file) == [ByteRange(1104, 1194), ByteRange(2104, 2194), ByteRange(2204, 2294)]
    assert ranges_of(plan, file, gap_bytes=10) == [ByteRange(1104, 1194), ByteRange(2104, 2294)]
    assert fetch_bytes(plan) == 270
    assert [found.location for found, _ in all_ranges(plan)] == ["a"]


def test_blocks_are_named_by_file_content_and_first_row():
    assert block_identities(plan_of("id between 2 and 3")) == ["a@00000061#1", "a@00000061#2"]


def test_steps_say_what_was_dropped_and_why():
    steps = steps_of(plan_of("id >= 60"))
    assert [(step.level, step.predicate, step.reason, step.files, step.blocks) for step in steps] == [
        ("file", "id >= 60", "by range", 1, 3),
        ("block", "id >= 60", "by range", 0, 1),
        ("deleted", "", "since all their rows are deleted", 0, 1),
    ]
    assert steps[0].data_bytes == 100_000
    assert steps[1].data_bytes == 180


def test_an_explanation_has_a_line_for_each_step():
    assert explain(plan_of("id >= 60")).splitlines() == [
        "table: 3 files, 6 blocks, 5 rows, 300,000 bytes",
        "id >= 60: 1 of 3 files dropped by range",
        "id >= 60: 1 of 3 blocks dropped by range",
        "1 of 2 blocks dropped since all their rows are deleted",
        "read: 1 file, 1 block, 1 row, 180 bytes of 3 columns; 1 block matched in full without a filter",
    ]


def test_a_plan_is_json():
    found = json.loads(json.dumps(to_dict(plan_of("id >= 60"))))
    assert found["kept"]["fetch_bytes"] == 180
    assert len(found["steps"]) == 3
