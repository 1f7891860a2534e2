"""An ingest from its beginning to its end, in process."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.ingest.lakes import (
    COLUMNS,
    NAME,
    data_files,
    ids,
    lake_at,
    records,
    rejected,
    rows,
    run,
    write_csv,
)
from tests.table.coordination.owners import LaterStore, no_thread
from underlay.change.define.define import define
from underlay.change.define.evolution import add_columns
from underlay.errors import NotFound, SourceChanged, Unavailable
from underlay.index.operation import Operation
from underlay.index.root import Definition, SourceRecord
from underlay.ingest.exactly_once.claim import claim
from underlay.ingest.exactly_once.run import begin_run
from underlay.ingest.rows.reading import Dialect
from underlay.ingest.run import new_table
from underlay.ingest.run.dry_run import dry_run
from underlay.ingest.source.find import find_sources
from underlay.ingest.work.execute import do_work
from underlay.ingest.work.progress import NoProgress
from underlay.ingest.work.settings import make_settings
from underlay.ingest.work.work_unit import WorkDone, WorkUnit
from underlay.ingest.work.workers import LocalWorkers, Workers
from underlay.store.store import Store
from underlay.store.testing import CountingStore
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import create
from underlay.table.commit.commit import commit
from underlay.table.open_table import OpenTable


class Disturbed:
    """Workers beside which something happens once, before what they made is handed back."""

    def __init__(self, store: Store, happening: Callable[[], object]) -> None:
        self.parallelism = 2
        self.works: list[WorkUnit] = []
        self._workers = LocalWorkers(store, parallelism=2)
        self._happening = [happening]

    def run(self, works: Sequence[WorkUnit]) -> Generator[WorkDone, None, None]:
        self.works += works
        done = list(self._workers.run(works))
        while self._happening:
            self._happening.pop()()
        yield from done


def nobody(size_bytes: int, count: int) -> Workers:
    raise AssertionError("workers were asked for")


def keys(lake: LakeCatalog) -> list[str]:
    """All objects but records of what was done."""
    return sorted(found.key for found in lake.store.list_objects("") if "/_index/jobs/" not in found.key)


def test_each_source_comes_once_and_the_second_time_nothing_is_begun(lake: LakeCatalog, tmp_path: Path):
    for number in range(5):
        write_csv(tmp_path, f"{number}.csv", range(number * 10, number * 10 + 3), ["x,y,z,n"])
    first = run(lake, f"{tmp_path}/*.csv", batch_sources=2)
    assert (first.ingested, first.row_count, first.rejected_count, len(first.versions)) == (5, 15, 5, 3)
    assert first.is_created
    assert first.run is not None
    assert first.source_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())
    before = keys(lake)
    again = run(lake_at(lake.store), f"{tmp_path}/*.csv", workers=nobody)
    assert (again.sources, again.known, again.run, again.versions) == (5, 5, None, ())
    assert keys(lake) == before
    assert ids(lake) == [number * 10 + at for number in range(5) for at in range(3)]
    assert rejected(lake) == [(f"{number}.csv", 5, b"x,y,z,n") for number in range(5)]


def test_known_sources_cost_their_pages_and_no_run(lake: LakeCatalog, tmp_path: Path):
    count = 10_000
    for number in range(count):
        (tmp_path / f"{number:05}.csv").touch()
    run(lake, write_csv(tmp_path, "00000.csv", [1]))
    table = OpenTable(lake, NAME)
    transaction = table.begin(table.head(), Operation("test"))
    for found in find_sources([f"{tmp_path}/*"]):
        transaction.add_source(SourceRecord(uri=found.uri, identity=found.identity, version=0))
    commit(transaction)
    counting = CountingStore(lake.store)
    assert run(lake_at(counting), f"{tmp_path}/*", workers=nobody).known == count
    written = [
        served.request.keys[0]
        for served in counting.log
        if served.request.op in (StoreMethod.CREATE, StoreMethod.PUT, StoreMethod.DELETE)
    ]
    assert all("/_index/jobs/" in key or key.endswith("/hint") for key in written)
    assert counting.request_count() < 10 + count // 200  # pages, whose number goes with the length of names


def test_changed_sources_are_an_error_left_alone_or_replaced(lake: LakeCatalog, tmp_path: Path):
    path = write_csv(tmp_path, "a.csv", [1, 2])
    assert run(lake, path, changed="replace").is_created  # and has the column _source
    write_csv(tmp_path, "a.csv", [3, 4, 5])
    with pytest.raises(SourceChanged, match=r"a\.csv"):
        run(lake, path)
    assert run(lake, path, changed="skip").skipped == 1
    assert ids(lake) == [1, 2]
    done = run(lake, path, changed="replace")
    assert (done.ingested, done.replaced, ids(lake)) == (1, 1, [3, 4, 5])
    assert {row["_source"] for row in rows(lake)} == {path.as_uri()}


def test_a_failed_source_is_tried_again_when_asked_for_or_when_it_changed(lake: LakeCatalog, tmp_path: Path):
    write_csv(tmp_path, "good.csv", [1])
    other = tmp_path / "other.csv"
    other.write_text("id,what\n1,2\n")
    done = run(lake, f"{tmp_path}/*")
    assert (done.ingested, done.failed) == (1, 1)
    assert "line 1: the table has no column what" in done.failures[0].reason
    again = run(lake, f"{tmp_path}/*", workers=nobody)
    assert (again.known, again.failed_before, again.failures) == (1, 1, done.failures)
    assert run(lake, f"{tmp_path}/*", retry_failed=True).failed == 1
    assert run(lake, f"{tmp_path}/*", retry_failed=True, new_columns="ignore").ingested == 1
    assert ids(lake) == [1, 1]


def test_what_another_living_run_has_is_waited_for_or_left(lake: LakeCatalog, tmp_path: Path):
    write_csv(tmp_path, "a.csv", [1])
    write_csv(tmp_path, "b.csv", [2])
    create(lake_made(lake), NAME, define(COLUMNS))
    other = begin_run(OpenTable(lake, NAME), heartbeat=no_thread())
    assert len(claim(other, find_sources([f"{tmp_path}/a.csv"])).entries) == 1
    left = run(lake_at(lake.store), f"{tmp_path}/*", waits=False)
    assert (left.ingested, left.claimed) == (1, 1)
    told: list[tuple[int, str]] = []

    class Told(NoProgress):
        def waiting(self, count: int, owner: str) -> None:
            told.append((count, owner))
            if len(told) == 3:
                other.release()

    done = run(lake_at(lake.store), f"{tmp_path}/*", progress=Told())
    assert (done.ingested, done.known, done.claimed, ids(lake)) == (1, 1, 0, [1, 2])
    assert told == [(1, other.id)] * 3


def lake_made(lake: LakeCatalog) -> LakeCatalog:
    lake.initialise()
    return lake


def test_sources_whose_claims_are_lost_meanwhile_are_left_to_the_other_run(lake: LakeCatalog, tmp_path: Path):
    for number in range(4):
        write_csv(tmp_path, f"{number}.csv", [number, number + 100], ["bad"])
    later = lake_at(LaterStore(lake.store))
    workers = Disturbed(lake.store, lambda: run(later, f"{tmp_path}/0.csv"))
    done = run(lake, f"{tmp_path}/*", workers=lambda size, count: workers)
    assert (done.ingested, done.known, done.claimed) == (3, 1, 0)
    assert ids(lake) == [0, 1, 2, 3, 100, 101, 102, 103]
    assert len(rejected(lake)) == 4
    assert [len(work.sources) for work in workers.works] == [2, 2, 1]  # of the pair only the other one is read again
    assert len(data_files(lake)) == 3


def test_a_batch_is_read_again_when_the_table_is_stricter_meanwhile(lake: LakeCatalog, tmp_path: Path):
    path = write_csv(tmp_path, "a.csv", [1], ["2,,,"])
    assert run(lake, write_csv(tmp_path, "b.csv", [7])).ingested == 1

    def require_fares() -> None:
        table = OpenTable(lake_at(lake.store), NAME)
        transaction = table.begin(table.head(), Operation("test"))
        transaction.set_definition(define(COLUMNS.replace("fare double", "fare double not null")))
        commit(transaction)

    workers = Disturbed(lake.store, require_fares)
    done = run(lake, path, workers=lambda size, count: workers)
    assert (done.row_count, done.rejected_count, len(workers.works)) == (1, 1, 2)
    assert (ids(lake), rejected(lake)) == ([1, 7], [("a.csv", 3, b"2,,,")])


def test_columns_that_are_added_meanwhile_do_not_disturb(lake: LakeCatalog, tmp_path: Path):
    path = write_csv(tmp_path, "a.csv", [1])
    added = pa.schema([("more", pa.int64())])
    workers = Disturbed(lake.store, lambda: add_columns(OpenTable(lake_at(lake.store), NAME), added))
    assert run(lake, path, workers=lambda size, count: workers).ingested == 1
    assert [row["more"] for row in rows(lake)] == [None]
    assert len(workers.works) == 1


def test_an_error_of_a_worker_fails_the_run_and_leaves_nothing(lake: LakeCatalog, tmp_path: Path):
    write_csv(tmp_path, "a.csv", [1])
    write_csv(tmp_path, "b.csv", [2])

    def fail() -> None:
        raise RuntimeError("a task was lost")

    with pytest.raises(RuntimeError, match="a task was lost"):
        run(lake, f"{tmp_path}/*", workers=lambda size, count: Disturbed(lake.store, fail))
    assert {record.status for record in records(lake).values()} == {"claimed"}
    assert run(lake_at(lake.store), f"{tmp_path}/*").ingested == 2  # at once: the run was released


def test_a_source_that_may_not_be_read_fails_the_run_and_is_not_recorded(
    lake: LakeCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_csv(tmp_path, "a.csv", [1])
    write_csv(tmp_path, "b.csv", [2])

    def refuse(*given: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(os, "preadv", refuse)
        with pytest.raises(Unavailable, match="Permission denied"):
            run(lake, f"{tmp_path}/*")
    assert data_files(lake) == []
    assert {record.status for record in records(lake).values()} == {"claimed"}
    assert run(lake, f"{tmp_path}/*").ingested == 2


def test_a_table_is_made_of_the_sources_that_can_be_looked_into(lake: LakeCatalog, tmp_path: Path):
    (tmp_path / "a.csv").write_text("id,at\n1,2024-01-01T00:00:00\n")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 not")
    (tmp_path / "c.csv").write_text("id,name\n2.5,x\n")
    done = run(lake, f"{tmp_path}/*", columns=None, has_source_column=True)
    assert (done.ingested, done.failed) == (2, 1)
    assert sorted((row["id"], row["name"], str(row["_source"])[-5:]) for row in rows(lake)) == [
        (1.0, None, "a.csv"),
        (2.5, "x", "c.csv"),
    ]
    with pytest.raises(NotFound):
        run(lake, f"{tmp_path}/none*")


def test_a_table_that_another_makes_at_the_same_moment_is_used(
    lake: LakeCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = write_csv(tmp_path, "a.csv", [1])
    lake.initialise()

    def second(columns: object) -> Definition:
        create(lake_at(lake.store), NAME, define(f"{COLUMNS}, more int"))
        return define(columns)

    monkeypatch.setattr(new_table, "define", second)
    done = run(lake, path)
    assert (done.ingested, done.is_created) == (1, False)
    assert rows(lake)[0]["more"] is None


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(lake: LakeCatalog, tmp_path: Path):
    path = write_csv(tmp_path, "a.csv", [1])
    settings = make_settings(f"{tmp_path}/*.csv", new_columns="add")
    would = dry_run(lake, NAME, settings)
    assert would.is_created
    assert would.columns is not None
    assert would.columns.names == ["id", "fare", "day", "note"]
    assert keys(lake) == []
    run(lake, path)
    (tmp_path / "b.csv").write_text("id,more\n1,2\n")
    (tmp_path / "c.csv").write_bytes(b"id,\xff\n")
    before = keys(lake)
    would = dry_run(lake_at(lake.store), NAME, settings)
    assert [len(would.ledger.known), len(would.wanted)] == [1, 2]
    assert [(field.name, str(field.type)) for field in would.new_columns] == [("more", "int64")]
    assert [one.uri[-5:] for one in would.problems] == ["c.csv"]
    assert keys(lake) == before


@pytest.mark.parametrize("new_columns", ["error", "ignore", "add"])
def test_a_dry_run_names_the_sources_that_fail_when_it_is_done(lake: LakeCatalog, tmp_path: Path, new_columns: str):
    lake.initialise()
    create(lake, NAME, define("id bigint not null, fare double"))
    for name, table in (("text", {"id": ["x"]}), ("lacks", {"fare": [1.5]}), ("fits", {"id": [1]})):
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    texts = {"twice.csv": "id,id\n1,2\n", "more.csv": "id,c\n1,2\n", "more.json": '{"id":1,"d":1}', "empty.csv": ""}
    for name, text in {**texts, "empty.csv.gz": "", "what.md": "hello"}.items():
        (tmp_path / name).write_text(text)
    settings = make_settings(f"{tmp_path}/*", new_columns=new_columns)
    would = {(one.uri, one.reason.removeprefix("line 1: ")) for one in dry_run(lake, NAME, settings).problems}
    done = run(lake, f"{tmp_path}/*", new_columns=new_columns)
    assert would == {(one.uri, one.reason.removeprefix("line 1: ")) for one in done.failures}
    assert len(would) == (7 if new_columns == "error" else 5)


def test_a_dry_run_takes_sources_without_a_header_and_looks_into_those_of_a_new_table(
    lake: LakeCatalog, tmp_path: Path
):
    (tmp_path / "a.csv").write_text("1,2\n")
    settings = make_settings(f"{tmp_path}/*", columns="a bigint, b bigint", dialect=Dialect(has_header=False))
    assert dry_run(lake, NAME, settings).problems == ()
    (tmp_path / "b.csv.gz").write_bytes(b"no gzip")
    [problem] = dry_run(lake, NAME, make_settings(f"{tmp_path}/*")).problems
    assert problem.uri.endswith("b.csv.gz")


def test_a_large_source_is_written_alone_and_leaves_nothing_when_it_fails(lake: LakeCatalog, tmp_path: Path):
    write_csv(tmp_path, "a.csv", [1])
    long = write_csv(tmp_path, "b.csv", range(10, 60_000))
    packed = gzip.compress(long.read_bytes())
    (tmp_path / "c.csv.gz").write_bytes(packed[:-20])

    class Small:
        parallelism = 1

        def run(self, works: Sequence[WorkUnit]) -> Generator[WorkDone, None, None]:
            for work in works:
                yield do_work(work, lake.store, held_bytes=1000)

    done = run(lake, f"{tmp_path}/*", workers=lambda size, count: Small())
    assert (done.ingested, done.failed, done.row_count) == (2, 1, 59_991)
    assert "cannot be decompressed" in done.failures[0].reason
    assert ids(lake) == [1, *range(10, 60_000)]
    assert len(data_files(lake)) == 2
