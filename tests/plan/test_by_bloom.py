from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.index.segment_examples import file_entry, schema_of
from tests.plan.worlds import stored
from underlay.index.entry import Flag
from underlay.plan.by_bloom import LeafBlooms, bloom_candidates, refine
from underlay.plan.explain import steps_of
from underlay.plan.part import Part
from underlay.plan.plan import BlockPlan, make_plan
from underlay.prune import Domain, Integers, Text
from underlay.prune.parse.sql import parse_where

SCHEMA = schema_of({"id": "int64", "name": "string"})
ENTRIES = [
    file_entry("a", SCHEMA, {"id": [[1, 9], [2, 8]], "name": [[b"a", b"z"]] * 2}, extra=Flag.HAS_BLOOM),
    file_entry("b", SCHEMA, {"id": [[1, 9]], "name": [[b"a", b"z"]]}),
]


def plan_of(where: str) -> BlockPlan:
    return make_plan([Part(segment=stored(ENTRIES, SCHEMA))], SCHEMA, parse_where(where), [1])


def filters(domain: Domain, *held: set[bytes] | None) -> LeafBlooms:
    """Filters of the first blocks; None for a block without one."""

    def may_hold(plain: bytes, blocks: NDArray[np.int64]) -> NDArray[np.bool_]:
        of = [held[block] if block < len(held) else None for block in blocks]
        return np.array([octets is None or plain in octets for octets in of], dtype=np.bool_)

    return LeafBlooms(domains={"l1": domain}, may_hold=may_hold)


def four(value: int) -> bytes:
    return value.to_bytes(4, "little")


def test_files_with_filters_of_a_column_that_equality_asks_for_are_candidates():
    found = bloom_candidates(plan_of("id = 5 and name > 'b'"))
    assert (found.fields, found.files) == ((1,), ((0, 0),))
    assert bloom_candidates(plan_of("id > 5")).files == ()


def test_blocks_whose_filters_hold_no_literal_are_dropped():
    """T7: the file's own type is INT32."""
    plan = plan_of("id in (5, 6)")
    blooms = {(0, 1): filters(Integers(32), {four(1)}, {four(6)})}
    refined = refine(plan, blooms)
    assert [(f.location, f.blocks.tolist()) for f in refined.files()] == [("a", [1]), ("b", [0])]
    assert [(step.level, step.blocks) for step in steps_of(refined)] == [("bloom", 1)]


def test_each_equality_drops_for_itself():
    plan = plan_of("id = 5 and name = 'k'")
    blooms = {(0, 1): filters(Integers(64), set(), {(5).to_bytes(8, "little")}), (0, 2): filters(Text(), {b"k"}, set())}
    assert [f.location for f in refine(plan, blooms).files()] == ["b"]


def test_a_literal_that_the_files_type_cannot_hold_is_in_no_filter():
    plan = plan_of("id = 4294967303 or id = 5")
    assert len(refine(plan, {(0, 1): filters(Integers(32), set(), set())}).blocks) == len(plan.blocks)


def test_without_filters_nothing_changes():
    plan = plan_of("id = 5")
    assert refine(plan, {}).blocks.tolist() == plan.blocks.tolist()
    assert refine(plan, {(0, 1): filters(Integers(64))}).blocks.tolist() == plan.blocks.tolist()
