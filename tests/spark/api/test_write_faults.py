"""Writes of which something fails: nothing is visible unless it was committed, and no row is there twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.spark.own_jvm.faulty_session import ROWS, FaultySession, make_pipes, write_rows
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.spark.api.data_source import register_source
from underlay.spark.api.write import append
from underlay.spark.tasks import collect as small
from underlay.table.coordination.intent import list_intents

pytestmark = pytest.mark.local_only

WAYS = ("append", "source")
NUMBERS = count()
Begin = Callable[..., "Future[None]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("faults")
    make_pipes(found)
    return found


@pytest.fixture
def lake(folder: Path) -> Lake:
    return ul.connect(folder / "lake")


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table(f"some.t{next(NUMBERS)}", "id bigint not null")


@pytest.fixture
def begin(spark: SparkSession, lake: Lake, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Has rows written by a thread, whose job group is its own. Nothing is small enough to be written in process."""
    monkeypatch.setattr(small, "SMALL_BYTES", -1)

    def run(scenario: str, way: str, table: Table) -> None:
        register_source(spark)  # Spark finds sources in the session that is active in a thread, and a new one has none
        write_rows(spark, lake, folder, scenario, way, table.name, 0)

    with ThreadPoolExecutor(1) as pool:
        yield lambda *arguments: pool.submit(run, *arguments)


def ids(table: Table) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


def intents(table: Table) -> list[object]:
    head = table.read_head()
    return list(list_intents(head.revision.store, head.revision.keys))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scenario", ["fails once", "killed once"])
def test_a_task_that_is_tried_again_adds_its_rows_once(begin: Begin, table: Table, scenario: str, way: str):
    begin(scenario, way, table).result()
    assert (table.version, ids(table), intents(table)) == (1, list(range(ROWS)), [])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("scenario", "message"), [("fails always", "every attempt fails"), ("cancelled", "cancel")])
def test_a_write_that_fails_adds_nothing_and_the_next_one_lands(
    begin: Begin, table: Table, scenario: str, message: str, way: str
):
    with pytest.raises(Exception, match=message):
        begin(scenario, way, table).result()
    assert (table.version, ids(table), intents(table)) == (0, [], [])
    begin("plain", way, table).result()
    assert (table.version, ids(table)) == (1, list(range(ROWS)))


def test_a_long_write_holds_an_intent_until_its_commit(begin: Begin, folder: Path, table: Table):
    for version, way in enumerate(WAYS, 1):
        writing = begin("pausing", way, table)
        (folder / "begun").read_text()
        assert len(intents(table)) == 1
        (folder / "go_on").write_text("go on")
        writing.result()
        assert (table.version, intents(table)) == (version, [])


@pytest.mark.own_jvm
def test_writers_of_two_sessions_all_land_one_of_them_without_pandas(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lake = ul.connect(tmp_path / "lake")
    table = lake.create_table("some.shared", "id bigint not null")
    monkeypatch.setattr(small, "SMALL_BYTES", -1)
    faulty = FaultySession(tmp_path)
    for turn in range(4):
        faulty.begin("plain", WAYS[turn % 2], table.name, turn * ROWS)
    for turn in range(4, 8):
        append(spark.range(turn * ROWS, (turn + 1) * ROWS, 1, 2), table.name, lake=lake)
    answers = [faulty.end() for _ in range(4)] + [faulty.run("killed once", "append", table.name, 8 * ROWS)]
    faulty.close()
    assert answers == ["done"] * 5
    assert (table.version, ids(table)) == (9, list(range(9 * ROWS)))
