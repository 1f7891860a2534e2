"""A registry whose disk fails at each of its calls, while the lake's own works. Run by `test_faulty_disk.py`.

    python -m tests.disk.registry_program FOLDER STEP BEGIN FAILURE

Every commit is acknowledged and every answer right all the while, and afterwards the registry is what the store says.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path

import underlay
from tests.disk.faulty_disk import Disk
from tests.disk.program import FAILURES, copied
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from underlay.registry.registry import Registry, open_registry
from underlay.store import open_store

APPLY_SECONDS = 240
FEW_SECONDS = 1
"""How long the thread of the registry may meet the failure. What it did not do by then is done afterwards."""


def main(folder: Path, step: int, begin: int, name: str) -> int:
    """Fail at one point after another until the registry makes no more calls; how many there were."""
    disk = Disk()
    disk.quick(folder)
    template = folder / "template"
    lake, registry = opened(template)
    lake.create_table(NAME, SCHEMA).append(rows([0]))
    assert registry.wait(APPLY_SECONDS)
    lake.close()
    for point in count(begin, step):
        with copied(template, folder / "lake") as place:
            if not one_point(disk, place, name, point):
                return point // step
    raise AssertionError("the registry makes calls for ever")


def opened(folder: Path) -> tuple[underlay.Lake, Registry]:
    store = open_store(folder)
    registry = open_registry(f"sqlite:///{folder}/_registry/registry.sqlite", store)
    assert registry is not None
    return underlay.Lake(store, registry=registry), registry


def one_point(disk: Disk, place: Path, name: str, point: int) -> bool:
    """Whether a call failed."""
    lake, registry = opened(place)
    with disk.failing(place / "_registry", FAILURES[name], point):
        table = lake.table(NAME)
        for number in (1, 2):
            table.append(rows([number]))
            registry.finish(FEW_SECONDS)
        assert ids(table) == [0, 1, 2]
        lake.close()
    lake, registry = opened(place)
    assert ids(lake.table(NAME)) == [0, 1, 2], "another answer after the failure"
    lake.table(NAME).append(rows([3]))
    assert registry.wait(APPLY_SECONDS)
    registry.follow()
    found = registry.differences()
    assert found == [], f"{name}, call {point}: {found}"
    assert ids(lake.table(NAME)) == [0, 1, 2, 3]
    lake.close()
    return bool(disk.failed)


if __name__ == "__main__":
    place, step, begin, name = sys.argv[1:]
    print(json.dumps(main(Path(place), int(step), int(begin), name)))
