from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from tests.gate import costly
from tests.index.segment_examples import file_entry, schema_of
from tests.plan.worlds import World, obvious_plan, predicates, stored, worlds
from underlay.errors import BadPredicate, UnknownColumn
from underlay.index.deletion_vectors import pack
from underlay.index.entry import Flag
from underlay.index.segment.segment import Segment
from underlay.plan import by_part as choice
from underlay.plan.part import Part
from underlay.plan.plan import BlockPlan, make_plan
from underlay.prune import TRUE, Predicate
from underlay.prune.parse.sql import parse_where
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, StructOf, parse_scalar

SCHEMA = schema_of({"id": "int64", "name": "string"})


def found(plan: BlockPlan) -> dict[tuple[int, int, int], bool]:
    keys = zip(plan.parts.tolist(), plan.file_rows.tolist(), plan.blocks.tolist(), strict=True)
    return dict(zip(keys, plan.must.tolist(), strict=True))


@costly
@given(worlds(), predicates())
def test_a_plan_is_that_of_the_obvious_planner(world: World, predicate: Predicate):
    plan = make_plan(world.parts(), world.schema, predicate)
    assert found(plan) == obvious_plan(world, predicate)


@costly
@given(worlds(), predicates())
def test_files_that_match_in_full_are_as_the_obvious_planner_has_them(world: World, predicate: Predicate):
    few, choice._FEW_BLOCKS = choice._FEW_BLOCKS, -1
    try:
        plan = make_plan(world.parts(), world.schema, predicate)
    finally:
        choice._FEW_BLOCKS = few
    assert found(plan) == obvious_plan(world, predicate)


def test_without_a_predicate_every_block_with_rows_is_kept_and_matches():
    entries = [file_entry("a", SCHEMA, {"id": [[1], []]}), file_entry("b", SCHEMA, {"id": [[2, 3]]})]
    plan = make_plan([Part(segment=stored(entries, SCHEMA))], SCHEMA, TRUE)
    assert found(plan) == {(0, 0, 0): True, (0, 1, 0): True}


def test_an_unknown_column_is_refused_without_a_file():
    with pytest.raises(UnknownColumn, match="nme"):
        make_plan([], SCHEMA, parse_where("nme = 'a'"))


def test_a_literal_of_another_kind_is_refused():
    part = Part(segment=stored([file_entry("a", SCHEMA, {"id": [[1]]})], SCHEMA))
    with pytest.raises(BadPredicate):
        make_plan([part], SCHEMA, parse_where("id = 'x'"))


@pytest.mark.parametrize(("where", "ids"), [("id > 500", [[1, 2], [900]]), ("id < -500", [[1, 2], [-900]])])
def test_a_file_has_a_range_only_when_each_of_its_blocks_has_one(where: str, ids: list[list[int]]):
    """T26."""
    entry = file_entry("a", SCHEMA, {"id": ids}, clear=[0, Flag.HAS_LOW | Flag.HAS_HIGH])
    plan = make_plan([Part(segment=stored([entry], SCHEMA))], SCHEMA, parse_where(where))
    assert found(plan) == {(0, 0, 1): False}


def test_a_planned_file_says_where_its_blocks_begin_and_what_is_deleted():
    entry = file_entry("a", SCHEMA, {"id": [[1, 2], [3], [4, 5, 6]]}, deleted=[2])
    part = Part(segment=stored([entry], SCHEMA), deletes={0: pack([0, 2])})
    (file,) = make_plan([part], SCHEMA, parse_where("id > 0")).files()
    assert (file.location, file.blocks.tolist(), file.first_rows.tolist()) == ("a", [0, 2], [0, 3])
    assert (file.block_rows.tolist(), file.must.tolist(), file.deletes) == ([2, 3], [True, True], pack([0, 2]))


def test_removed_files_are_in_no_total():
    entries = [file_entry(name, SCHEMA, {"id": [[1, 2]]}, deleted=[0]) for name in "abc"]
    part = Part(segment=stored(entries, SCHEMA), is_removed=np.array([False, True, False]))
    plan = make_plan([part], SCHEMA)
    assert (plan.totals.files, plan.totals.blocks, plan.totals.rows) == (2, 2, 2)
    assert plan.kept == plan.totals


def test_a_leaf_of_a_struct_prunes_and_its_group_does_not():
    leaf = Field(id=2, name="x", type=parse_scalar("int64"))
    schema = TableSchema(fields=(Field(id=1, name="s", type=StructOf((leaf,))),), last_id=2)
    flat = TableSchema(fields=(leaf,), last_id=2)
    entry = file_entry("a", flat, {"x": [[1], [7]]})
    part = Part(segment=Segment.of_entries([entry], schema))
    assert found(make_plan([part], schema, parse_where("s.x = 7"))) == {(0, 0, 1): True}
    assert found(make_plan([part], schema, parse_where("s is null"))) == {(0, 0, 0): False, (0, 0, 1): False}


def test_items_of_a_list_prove_nothing():
    """T25."""
    item = Field(id=2, name="element", type=parse_scalar("int64"))
    schema = TableSchema(fields=(Field(id=1, name="l", type=ListOf(item)),), last_id=2)
    entry = file_entry("a", TableSchema(fields=(item,), last_id=2), {"element": [[1], [7]]})
    part = Part(segment=Segment.of_entries([entry], schema))
    plan = make_plan([part], schema, parse_where("l.element = 9"))
    assert found(plan) == {(0, 0, 0): False, (0, 0, 1): False}
