"""The registry that misleads is asked, and does mislead; every other test of the contract may run with it."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from tests.contract.chaos import ChaoticRegistry
from tests.contract.worlds import World
from tests.gate import SEED, sized
from tests.registry.far import far_store


def test_no_answer_changes_whatever_a_registry_says():
    said: Counter[str] = Counter()
    for number in range(sized(8, 40)):
        registry = ChaoticRegistry(SEED * 100 + number)
        check_answers(World(far_store(), registry))
        said += registry.answers
        said["refused"] += len(registry.refused)
    assert min(said[kind] for kind in ("nothing", "newest", "old", "wrong", "refused")) > 0


def check_answers(world: World) -> None:
    """Each step by a lake that has nothing in memory, and begins with what the registry says."""
    for number in range(8):
        name = f"shop.sales{number % 2}"
        table = world.again().create_table(name, "id bigint") if number < 2 else world.again().table(name)
        table.append(pa.table({"id": [number]}))
        if number in (4, 5):
            table.rollback(1)
        if number == 6:
            world.again().rename_table(name, "shop.other")
            world.again().create_table(name, "id bigint")
    names = [table.name for table in world.again().tables()]
    found = {name: sorted(world.again().table(name).to_arrow()["id"].to_pylist()) for name in names}
    assert found == {"shop.sales0": [], "shop.sales1": [1, 7], "shop.other": [0, 6]}
