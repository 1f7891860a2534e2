"""A watch takes sources as they come, each once, whatever fails for a while."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import pytest

from tests.ingest.run.test_record import write
from tests.ingest.worlds import NAME, memory
from tests.table.entries import surroundings
from underlay.api.lake import Lake
from underlay.errors import NotFound, TooManyRejected, UnderlayError
from underlay.ingest.exactly_once.claim import claim
from underlay.ingest.exactly_once.run import begin_run
from underlay.ingest.run.summary import Summary
from underlay.ingest.run.watch import Pace, Ready
from underlay.ingest.source.find import find_sources
from underlay.ingest.source.source import Source, local_identity
from underlay.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.faulty import Fault, FaultyStore
from underlay.store.testing.wrapper import Request, StoreMethod

LATER_US = 4_000_000_000_000_000
"""A moment at which every file of a test is old."""


def a_lake(store: Store) -> Lake:
    clock = count(LATER_US)
    return Lake(store, surroundings=surroundings(now_us=lambda: next(clock)))


def a_pace(
    steps: Sequence[Callable[[], object]], waits: list[float], troubles: list[UnderlayError] | None = None
) -> Pace:
    """Between two looks the next step is made; after the last one the watch ends."""
    left = iter(steps)

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        step = next(left, None)
        if step is not None:
            step()
        return step is None

    return Pace(
        wait=wait,
        interval_seconds=5,
        on_trouble=lambda error, seconds: troubles.append(error) if troubles is not None else None,
    )


def counts(found: Sequence[Summary]) -> list[tuple[int, int, int]]:
    return [(one.ingested, one.known, one.failed) for one in found]


def test_sources_are_taken_as_they_come_and_one_record_tells_of_all(tmp_path: Path):
    lake = a_lake(memory())
    seen = list[str]()

    def look_at_runs() -> None:
        seen.extend(f"{run.state} {run.sources}" for run in lake.runs())

    steps = [lambda: write(tmp_path, "2.csv", 2), look_at_runs, lambda: write(tmp_path, "3.csv", 3, "x")]
    write(tmp_path, "1.csv", 1)
    watch = lake.watch(NAME, f"{tmp_path}/", pace=a_pace(steps, []))
    assert counts(list(watch)) == [(1, 0, 0), (1, 0, 0), (1, 0, 0)]
    assert seen == ["watching 2"]
    [run] = lake.runs()
    assert (run.state, run.sources, run.row_count, run.rejected_count, run.version_count) == ("stopped", 3, 3, 1, 3)
    assert (run.run, watch.total.ingested, watch.total.versions) == (watch.total.run, 3, run.versions)


def test_a_watch_that_is_begun_again_goes_on_where_it_was(tmp_path: Path):
    store = memory()
    write(tmp_path, "1.csv", 1)
    list(a_lake(store).watch(NAME, f"{tmp_path}/", pace=a_pace([], [])))
    write(tmp_path, "2.csv", 2)
    assert counts(list(a_lake(store).watch(NAME, f"{tmp_path}/", pace=a_pace([], [])))) == [(1, 1, 0)]


def test_a_look_that_meets_nothing_new_asks_the_lake_once(tmp_path: Path):
    store = CountingStore(memory())
    write(tmp_path, "1.csv", 1)
    asked = list[int]()
    steps = [store.reset, lambda: asked.append(store.request_count())]
    list(a_lake(store).watch(NAME, f"{tmp_path}/", pace=a_pace(steps, [])))
    assert asked == [1]


def test_a_file_is_taken_when_nobody_has_written_to_it_between_two_looks(tmp_path: Path):
    ready = Ready(5)
    path = tmp_path / "1.csv"

    def file(size: int, modified_s: int) -> Source:
        path.write_bytes(bytes(size))
        os.utime(path, (modified_s, modified_s))
        return Source(path.as_uri(), local_identity(path.stat()), size)

    now_us = 100_000_000
    assert ready.take([file(10, 99)], now_us) == []
    assert ready.take([file(20, 101)], now_us + 5_000_000) == []
    assert ready.take([file(20, 101)], now_us + 6_000_000) == [file(20, 101)]
    assert Ready(5).take([file(20, 90)], now_us) == [file(20, 90)]
    remote = Source("s3://in/1.csv", '"etag"', 20)
    assert ready.take([remote], now_us) == [remote]
    ready.settle([remote])
    assert ready.take([remote], now_us) == []
    assert ready.take([], now_us) == []
    assert ready.take([remote], now_us) == [remote]


def test_a_store_that_does_not_answer_is_asked_again_ever_more_seldom(tmp_path: Path):
    is_down = [True]

    def plan(number: int, request: Request) -> Fault | None:
        return Fault.LOST_REQUEST if is_down[0] and request.op is not StoreMethod.PUT else None

    store = memory()
    Lake(store, surroundings=surroundings()).create_table(NAME, "id bigint")
    write(tmp_path, "1.csv", 1)
    waits, troubles = list[float](), list[UnderlayError]()
    steps = [lambda: None, lambda: None, lambda: None, lambda: is_down.__setitem__(0, False), lambda: None]
    lake = a_lake(FaultyStore(store, plan))
    assert counts(list(lake.watch(NAME, f"{tmp_path}/", pace=a_pace(steps, waits, troubles)))) == [(1, 0, 0)]
    assert waits == [10, 20, 40, 60, 5, 5]
    assert len(troubles) == 4


def test_a_source_that_fails_is_reported_once(tmp_path: Path):
    lake = a_lake(memory())
    write(tmp_path, "1.csv", 1)
    (tmp_path / "9.parquet").write_bytes(b"nonsense")
    steps = [lambda: None, lambda: write(tmp_path, "2.csv", 2), lambda: None]
    looks = list(lake.watch(NAME, f"{tmp_path}/", pace=a_pace(steps, [])))
    assert counts(looks) == [(1, 0, 1), (1, 0, 0)]
    assert [len(one.failures) for one in looks] == [1, 0]


def test_a_changed_source_is_reported_once_and_the_watch_goes_on(tmp_path: Path):
    lake = a_lake(memory())
    write(tmp_path, "1.csv", 1)
    steps = [
        lambda: (write(tmp_path, "1.csv", 1, 2), write(tmp_path, "2.csv", 2)),
        lambda: None,
        lambda: write(tmp_path, "3.csv", 3),
    ]
    watch = lake.watch(NAME, f"{tmp_path}/", pace=a_pace(steps, []))
    looks = list(watch)
    assert [(one.ingested, one.changed) for one in looks] == [(1, 0), (1, 1), (1, 0)]
    assert [Path(one.uri).name for one in watch.total.failures] == ["1.csv"]
    assert lake.table(NAME).count() == 3


def test_what_does_not_pass_ends_the_watch_with_its_reason(tmp_path: Path):
    lake = a_lake(memory())
    write(tmp_path, "1.csv", 1)
    steps = [lambda: write(tmp_path, "2.csv", "x", "y")]
    with pytest.raises(TooManyRejected):
        list(lake.watch(NAME, f"{tmp_path}/", pace=a_pace(steps, []), max_rejected=1))
    [run] = lake.runs()
    assert (run.state, run.sources) == ("failed", 1)
    assert "do not fit the table" in str(run.reason)
    with pytest.raises(NotFound):
        list(lake.watch(NAME, str(tmp_path / "nowhere" / ""), pace=a_pace([], [])))


def test_a_table_that_is_made_anew_gets_the_sources_again(tmp_path: Path):
    store = memory()
    lake = a_lake(store)
    write(tmp_path, "1.csv", 1)

    def make_anew() -> None:
        other = Lake(store, surroundings=surroundings())
        other.drop_table(NAME)
        other.create_table(NAME, "id bigint")

    looks = list(lake.watch(NAME, f"{tmp_path}/", pace=a_pace([make_anew, lambda: None], [])))
    assert sum(one.ingested for one in looks) == 2
    assert lake.table(NAME).count() == 1


def test_sources_of_another_run_are_looked_at_again_and_the_others_are_counted_once(tmp_path: Path):
    store = memory()
    lake = a_lake(store)
    lake.create_table(NAME, "id bigint")
    for number in range(3):
        write(tmp_path, f"{number}.csv", number)
    other = begin_run(Lake(store, surroundings=surroundings()).table(NAME).writable())
    claim(other, find_sources([f"{tmp_path}/0.csv"]))
    watch = lake.watch(NAME, f"{tmp_path}/", pace=a_pace([lambda: None, other.release, lambda: None], []))
    assert counts(list(watch)) == [(2, 0, 0), (1, 0, 0)]
    total = watch.total
    assert (total.sources, total.ingested, total.known, total.claimed) == (3, 3, 0, 0)
