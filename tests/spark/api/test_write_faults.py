"""Writes of which something fails: nothing is visible unless it was committed, and no row is there twice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.spark.faulty_session import ROWS, FaultySession
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.spark.api.write import append
from underlay.spark.tasks import collect as small
from underlay.table.coordination.intent import list_intents

pytestmark = pytest.mark.local_only

WAYS = ("append", "source")
NUMBERS = count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def faulty(folder: Path) -> Iterator[FaultySession]:
    """A session that tries tasks again, which is decided when one is started."""
    found = FaultySession(folder)
    yield found
    found.close()


@pytest.fixture
def lake(folder: Path) -> Lake:
    return ul.connect(folder / "lake")


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table(f"some.t{next(NUMBERS)}", "id bigint not null")


def ids(table: Table) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


def intents(table: Table) -> list[object]:
    head = table.read_head()
    return list(list_intents(head.revision.store, head.revision.keys))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scenario", ["fails once", "killed once"])
def test_a_task_that_is_tried_again_adds_its_rows_once(faulty: FaultySession, table: Table, scenario: str, way: str):
    assert faulty.run(scenario, way, table.name, 0) == "done"
    assert (table.version, ids(table), intents(table)) == (1, list(range(ROWS)), [])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("scenario", "message"), [("fails always", "every attempt fails"), ("cancelled", "cancel")])
def test_a_write_that_fails_adds_nothing_and_the_next_one_lands(
    faulty: FaultySession, table: Table, scenario: str, message: str, way: str
):
    assert message in faulty.run(scenario, way, table.name, 0)
    assert (table.version, ids(table), intents(table)) == (0, [], [])
    assert faulty.run("plain", way, table.name, 0) == "done"
    assert (table.version, ids(table)) == (1, list(range(ROWS)))


def test_writers_of_two_sessions_all_land(
    faulty: FaultySession, spark: SparkSession, lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(small, "SMALL_BYTES", -1)
    for turn in range(4):
        faulty.begin("plain", WAYS[turn % 2], table.name, turn * ROWS)
    for turn in range(4, 8):
        append(spark.range(turn * ROWS, (turn + 1) * ROWS, 1, 2), table.name, lake=lake)
    assert [faulty.end() for _ in range(4)] == ["done"] * 4
    assert (table.version, ids(table)) == (8, list(range(8 * ROWS)))


def test_a_long_write_holds_an_intent_until_its_commit(faulty: FaultySession, folder: Path, table: Table):
    for version, way in enumerate(WAYS, 1):
        faulty.begin("pausing", way, table.name, 0)
        (folder / "begun").read_text()
        assert len(intents(table)) == 1
        (folder / "go_on").write_text("go on")
        assert faulty.end() == "done"
        assert (table.version, intents(table)) == (version, [])
