"""Partition specs and the format of roots: what a reader goes by must be there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.contract.worlds import World
from tests.end_to_end.lakes import memory, rows
from underlay.index.root import Definition, Root, encode_root


def forged(world: World, definition: Definition, format_: int) -> str:
    """What `verify` says of the newest root with another definition and format."""
    revision, root = world.lake.table("shop.sales").read_head()
    other: Root = replace(root, format=format_, definition=definition, delta=replace(root.delta, definition=definition))
    world.overwrite(revision.keys.root(root.version), encode_root(other))
    (finding,) = world.again().verify().findings
    return finding.problem


@pytest.fixture
def world() -> World:
    found = World(memory())
    table = found.create("id bigint", partition_by=["truncate(100, id)"])
    table.append(rows(range(3)).select(["id"]))
    with table.evolve() as evolution:
        evolution.set_partition_by([])
    assert not found.again().verify().findings
    return found


def test_a_partition_spec_that_is_lost_is_found(world: World):
    definition = replace(world.lake.table("shop.sales").definition, other_specs=())
    assert "a partition spec that the table lacks" in forged(world, definition, 3)


def test_a_format_that_is_too_old_for_its_definition_is_found(world: World):
    assert "the format is 1" in forged(world, world.lake.table("shop.sales").definition, 1)
