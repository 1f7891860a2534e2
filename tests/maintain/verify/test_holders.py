"""Intents, leases and records of runs that cannot be read are notes, and nobody touches them."""

from __future__ import annotations

import pytest

from tests.contract.worlds import World
from tests.end_to_end.lakes import memory
from tests.maintain.healthy import SALES, build_tiny, objects, run
from underlay.maintain.verify.finding import FindingKind, Severity


@pytest.fixture
def world() -> World:
    world = World(memory())
    build_tiny(world)
    return world


def test_jobs_and_leases_that_are_held_are_no_findings(world: World):
    table = world.lake.table(SALES)
    with table.job("nightly"), table.job("load", exclusive=True), table.lease():
        report = run(world.store)
    assert report.findings == ()


def test_what_cannot_be_read_is_a_note_that_names_it_and_stays_as_it_is(world: World):
    table = world.lake.table(SALES)
    with table.job("nightly"), table.lease("report"):
        records = world.keys("/_index/intents/")[0].replace("/intents/", "/jobs/")
        world.store.put(records, b"")
        keys = [*world.keys("/_index/intents/"), records, *world.keys("/_index/leases/")]
        for key in keys:
            world.overwrite(key, b"garbage")
        before = objects(world.store)
        report = run(world.store, repair=True)
        assert objects(world.store) == before
    assert report.is_sound
    assert [finding.place for finding in report.findings] == keys
    for finding, what in zip(report.findings, ("intent", "record of a run", "lease"), strict=True):
        assert (finding.kind, finding.severity, finding.is_repaired) == (FindingKind.DAMAGED, Severity.NOTE, False)
        assert finding.problem.startswith(f"the {what} cannot be read: ")
        assert "it can be deleted" in (finding.hint or "")
