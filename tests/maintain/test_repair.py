"""`--repair` rebuilds what is derived, and touches nothing else."""

from __future__ import annotations

import pytest

from tests.contract.worlds import World
from tests.end_to_end.lakes import memory
from tests.maintain.healthy import SALES, Truth, active, broken, build_small, build_tiny, built, objects, run
from underlay.maintain.verify.finding import FindingKind, Severity


@pytest.fixture
def world() -> World:
    world = World(memory())
    build_tiny(world)
    return world


@pytest.mark.parametrize("data", [None, b"", b"something else"])
def test_a_sidecar_is_built_again_and_nothing_else_changes(world: World, data: bytes | None):
    key = Truth(world.store).keys("/_pm/")[0]
    original = bytes(world.store.get(key)[0])
    world.store.delete([key])
    if data is not None:
        world.store.put(key, data)
    before = objects(world.store)
    report = run(world.store, repair=True)
    (finding,) = report.findings
    assert (finding.kind, finding.place, finding.is_repaired) == (FindingKind.SIDECAR, key, True)
    assert report.is_sound
    assert bytes(world.store.get(key)[0]) == original
    after = objects(world.store)
    assert {name: about for name, about in after.items() if name != key} == {
        name: about for name, about in before.items() if name != key
    }
    assert run(world.store, deep=True).findings == ()


def test_all_sidecars_can_be_lost(world: World):
    keys = [key for key in objects(world.store) if "/_pm/" in key]
    before = {key: bytes(world.store.get(key)[0]) for key in keys}
    world.store.delete(keys)
    assert len(run(world.store).findings) == len(keys)
    assert run(world.store, repair=True).is_sound
    assert {key: bytes(world.store.get(key)[0]) for key in keys} == before


def test_a_sidecar_whose_file_is_damaged_is_not_repaired(world: World):
    truth = Truth(world.store)
    file, sidecar = truth.own_files()[0], truth.keys("/_pm/")[0]
    data = bytearray(world.store.get(file)[0])
    data[-20] ^= 1
    world.store.delete([sidecar])
    with broken(world.store, file, bytes(data)):
        before = objects(world.store)
        report = run(world.store, repair=True)
        assert objects(world.store) == before
    (finding,) = report.findings
    assert not finding.is_repaired
    assert "rebuilding it from its file gives a different one" in finding.problem


@pytest.mark.parametrize("part", [".root", "/segments/", "/sources/", ".parquet"])
def test_what_is_not_derived_is_left_as_it_is(part: str):
    store = built(build_small)
    key = Truth(store).keys(part)[0]
    with broken(store, key, b"damaged"):
        before = objects(store)
        report = run(store, SALES, repair=True)
        assert objects(store) == before
    assert not report.is_sound
    assert active(report).findings[0].place == key


class Mirror:
    """A registry that says something else until it is restored."""

    def __init__(self, *differences: str) -> None:
        self.told = list(differences)

    def differences(self) -> list[str]:
        return self.told

    def restore(self) -> None:
        self.told = []


def test_differences_of_the_registry_are_findings(world: World):
    registry = Mirror("version 3 is not in it")
    report = run(world.store, registry=registry)
    (finding,) = report.registry
    assert (finding.kind, finding.severity, finding.is_repaired) == (FindingKind.REGISTRY, Severity.DERIVED, False)
    assert finding.problem == "version 3 is not in it"
    assert not report.is_sound
    assert registry.told


def test_the_registry_is_restored_by_a_repair(world: World):
    registry = Mirror("version 3 is not in it")
    report = run(world.store, registry=registry, repair=True)
    assert report.is_sound
    assert report.registry[0].is_repaired
    assert registry.told == []
