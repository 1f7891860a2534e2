"""Every run leaves a record: what it did, how it ended and why, before its intent goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingest.worlds import NAME, memory
from tests.table.coordination.owners import LaterStore
from tests.table.entries import surroundings
from underlay.api.lake import Lake
from underlay.errors import Damaged, InvalidRequest, NotFound, SourceChanged, TooManyRejected, Unsupported
from underlay.ingest.work.progress import NoProgress
from underlay.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.coordination.run_record import RunRecord, decode_record, encode_record


class Interrupted(NoProgress):
    """A person who presses Ctrl-C once the first source is in the table."""

    def committed(self, version: int) -> None:
        raise KeyboardInterrupt


def a_lake(store: Store) -> Lake:
    lake = Lake(store, surroundings=surroundings())
    if not lake.exists():
        lake.create_table(NAME, "id bigint not null")
    return lake


def write(folder: Path, name: str, *values: object) -> str:
    path = folder / name
    path.write_text("id\n" + "".join(f"{value}\n" for value in values))
    return str(path)


def test_a_run_that_is_done_says_what_it_did(tmp_path: Path):
    lake = a_lake(memory())
    one, two = write(tmp_path, "1.csv", 1, 2), write(tmp_path, "2.csv", 3, "x")
    summary = lake.ingest(NAME, [one, two])
    [run] = lake.runs()
    assert (run.table, run.run, run.state, run.operation) == (NAME, summary.run, "done", "ingest")
    assert (run.sources, run.row_count, run.rejected_count, run.failed) == (2, 3, 1, 0)
    assert (run.source_bytes, run.versions, run.version_count) == (summary.source_bytes, summary.versions, 1)
    assert (run.asked, run.workers, run.reason) == (f"{one} {two}", "local", None)
    assert str(run.owner).startswith("tests:")
    assert lake.jobs() == []
    assert next(lake.table(NAME).history()).run == summary.run


def test_the_record_is_put_once_and_before_the_intent_goes(tmp_path: Path):
    store = CountingStore(memory())
    lake = a_lake(store)
    source = write(tmp_path, "1.csv", 1)
    lake.ingest(NAME, source)
    changes = [served.request for served in store.log if served.request.op in (StoreMethod.PUT, StoreMethod.DELETE)]
    kinds = [
        (one.op, key.split("/_index/")[1].partition("/")[0]) for one in changes for key in one.keys if "_index/" in key
    ]
    assert [kind for kind in kinds if kind[1] in ("jobs", "intents")][-2:] == [
        (StoreMethod.PUT, "jobs"),
        (StoreMethod.DELETE, "intents"),
    ]
    assert kinds.count((StoreMethod.PUT, "jobs")) == 1


def test_a_run_that_finds_nothing_to_do_puts_a_record_and_nothing_else(tmp_path: Path):
    store = CountingStore(memory())
    lake = a_lake(store)
    source = write(tmp_path, "1.csv", 1)
    lake.ingest(NAME, source)
    store.reset()
    lake.ingest(NAME, source)
    assert store.request_count(StoreMethod.PUT, StoreMethod.CREATE, StoreMethod.DELETE) == 1
    newest = lake.runs()[0]
    assert (newest.state, newest.sources, newest.known, newest.versions) == ("nothing", 0, 1, ())


def test_a_source_that_could_not_be_read_is_the_reason_of_a_failure(tmp_path: Path):
    lake = a_lake(memory())
    (tmp_path / "9.parquet").write_bytes(b"nonsense")
    lake.ingest(NAME, [write(tmp_path, "1.csv", 1), str(tmp_path / "9.parquet")])
    [run] = lake.runs()
    assert (run.state, run.sources, run.failed) == ("failed", 1, 1)
    assert "9.parquet: " in str(run.reason)


def test_a_run_that_raised_keeps_its_reason_and_what_it_had_committed(tmp_path: Path):
    lake = a_lake(memory())
    sources = [write(tmp_path, "1.csv", 1), write(tmp_path, "2.csv", "x", "y")]
    with pytest.raises(TooManyRejected) as raised:
        lake.ingest(NAME, sources, max_rejected=1, batch_sources=1)
    [run] = lake.runs(NAME)
    assert (run.state, run.reason) == ("failed", str(raised.value))
    assert (run.sources, run.row_count, run.version_count) == (1, 1, 1)
    write(tmp_path, "1.csv", 1, 2)
    with pytest.raises(SourceChanged):
        lake.ingest(NAME, sources[0])
    assert "changed since" in str(lake.runs(NAME, most=1)[0].reason)


def test_a_run_whose_sources_cannot_be_found_leaves_its_reason_with_the_table(tmp_path: Path):
    lake = a_lake(memory())
    for name in (NAME, "taxi.other"):
        with pytest.raises(NotFound):
            lake.ingest(name, str(tmp_path / "*.csv"))
    [run] = lake.runs()
    assert (run.table, run.state, run.sources) == (NAME, "failed", 0)
    assert "no source matches" in str(run.reason)


def test_a_run_that_a_person_stops_is_no_failure(tmp_path: Path):
    lake = a_lake(memory())
    sources = [write(tmp_path, "1.csv", 1), write(tmp_path, "2.csv", 2)]
    with pytest.raises(KeyboardInterrupt):
        lake.ingest(NAME, sources, batch_sources=1, progress=Interrupted())
    [run] = lake.runs()
    assert (run.state, run.sources, run.reason) == ("stopped", 1, None)
    assert lake.jobs() == []
    assert lake.ingest(NAME, sources).ingested == 1


def test_runs_are_listed_newest_first_and_unreadable_ones_by_name(tmp_path: Path):
    store = memory()
    lake = a_lake(store)
    for number in range(4):
        lake.ingest(NAME, write(tmp_path, f"{number}.csv", number))
    listed = [run.versions for run in lake.runs(most=3)]
    assert listed == sorted(listed, reverse=True)
    assert len(listed) == 3
    newest = max(found.key for found in store.list_objects() if "/_index/jobs/" in found.key)
    store.put(newest, b"garbage")
    [broken] = [run for run in lake.runs() if run.problem is not None]
    assert (broken.state, broken.owner, broken.run) == ("unreadable", None, newest.rpartition("/")[2])
    with pytest.raises(InvalidRequest):
        lake.runs(most=0)


def test_a_watch_that_is_heard_of_no_more_is_lost():
    store = memory()
    lake = a_lake(store)
    record = RunRecord(
        job="ingest-1",
        owner="a",
        operation="ingest",
        state="watching",
        started_us=1,
        ended_us=2,
        duration_us=1,
        ttl_us=300_000_000,
    )
    store.put(lake.table(NAME).snapshot().keys.record("ingest-1"), encode_record(record))
    assert [run.state for run in lake.runs()] == ["watching"]
    assert [run.state for run in a_lake(LaterStore(store, 600)).runs()] == ["lost"]


def test_a_record_that_is_cut_or_changed_is_refused():
    record = RunRecord(
        job="ingest-1",
        owner="a",
        operation="ingest",
        state="done",
        started_us=1,
        ended_us=2,
        duration_us=1,
        versions=(3,),
    )
    data = encode_record(record)
    assert decode_record(memoryview(data)) == record
    for end in range(len(data)):
        with pytest.raises(Damaged):
            decode_record(memoryview(data[:end]))
    for place in range(0, len(data), 7):
        with pytest.raises(Damaged):
            decode_record(memoryview(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]))
    newer = RunRecord(**{name: getattr(record, name) for name in record.__struct_fields__} | {"format": 2})
    with pytest.raises(Unsupported):
        decode_record(memoryview(encode_record(newer)))
