"""Sealing: partitions become files of the table exactly once, whatever crashes, and readers see each row once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numpy as np
import pyarrow as pa
import pytest

import underlay as ul
from tests.gate import SEED, every_third, sized
from tests.hot.recorded_disk import Op, RecordingDisk
from tests.hot.trips import SCHEMA, Place, ids, trips, writing
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.change.update.edit import FileAccess
from underlay.errors import CommitConflict, CommitUnknown, Inconsistent, UnderlayError
from underlay.hot.files import place_rows
from underlay.hot.seal.open import HotWriter, open_writer
from underlay.store import open_store
from underlay.store.testing.faulty import Crashed, Fault, FaultyStore, at, on
from underlay.store.testing.wrapper import StoreMethod

DAY_SECONDS = 86_400


def writer_of(table: Table, place: Place, disk: RecordingDisk | None = None) -> HotWriter:
    context = table._context
    files = FileAccess(stores=context.stores, cache=context.cache)
    return open_writer(table.writable(), place.partitions, files, disk=disk, reader_age_seconds=3600.0)


def three_days(hot: HotWriter) -> list[int]:
    hot.append(trips(range(0, 3 * DAY_SECONDS, DAY_SECONDS // 4)))
    hot.append(trips([5, DAY_SECONDS + 5, 10], 12))
    return list(range(15))


def test_finished_partitions_become_files_and_the_others_stay(place: Place):
    table = place.create()
    with writing(table) as hot:
        three_days(hot.writer)
        done = hot.seal(before="2024-01-03")
        assert done.partitions == ("2024-01-01", "2024-01-02")
        assert (done.row_count, done.version) == (11, 2)
        assert ids(table) == list(range(15))
        assert len(ids(place.table(with_hot=False))) == 11
        assert hot.seal(before="2024-01-03").version is None
        hot.append(trips([7], 100))
        assert hot.row_count == 5
        assert hot.seal(everything=True).row_count == 5
    assert ids(place.table(with_hot=False)) == [*range(15), 100]
    version = next(iter(table.history(1)))
    assert version.operation == "seal"
    assert version.counts["hot_rows"] == 5
    assert [str(one) for one in place.lake().verify().findings] == []


def test_a_time_travel_sees_what_was_sealed_by_then(place: Place):
    table = place.create()
    with writing(table) as hot:
        three_days(hot.writer)
        first = hot.seal(before="2024-01-02").version
        second = hot.seal(before="2024-01-03").version
    assert first is not None
    assert second is not None
    assert [len(ids(table.at(version=version))) for version in (first, second)] == [6, 11]


def test_large_blocks_are_copied_byte_for_byte(place: Place, monkeypatch: pytest.MonkeyPatch):
    table = place.create(sort_by=["ts"], partition_by=["month(ts)"], properties={"block_rows": 64})
    monkeypatch.setattr(place_rows, "TOP_UP_ROWS", 16)
    with writing(table) as hot:
        hot.append(trips(range(200)))
        hot.append(trips(range(200, 210), 200))
        (partition,) = hot.writer.state.partitions
        data = (hot.writer.commits.directory_of(partition) / "data.parquet").read_bytes()
        hot.seal(everything=True)
    sealed = place.table(with_hot=False)
    copied = [name for name in (place.folder / "lake").rglob("*.parquet") if data[4:4000] in name.read_bytes()]
    assert len(copied) == 1
    assert ids(sealed) == list(range(210))
    assert sealed.plan(where="ts >= '2024-02-01'").kept.files == 0
    assert sealed.plan(where="id = 205").kept.blocks == 1


@pytest.mark.parametrize(
    "options",
    [
        {"partition_by": ["zone"]},
        {"partition_by": ["hour(ts)"]},
        {"partition_by": ["bucket(4, id)", "day(ts)"]},
        {"sort_by": ["-id"]},
        {"sort_by": ["zone", "ts"], "partition_by": ["day(ts)"]},
    ],
    ids=str,
)
def test_a_table_with_other_partitions_or_another_order(place: Place, options: dict[str, list[str]]):
    table = place.create(**options)
    with writing(table) as hot:
        three_days(hot.writer)
        before = ids(table)
        hot.seal(everything=True)
        assert ids(place.table(with_hot=False)) == before
    assert ids(table, "zone = 'JFK' and id > 5") == [6, 9, 12]
    assert [str(one) for one in place.lake().verify().findings] == []


def seal_and_die(place: Place, faulty: FaultyStore, disk: RecordingDisk, *, fails_at: int | None) -> int:
    """Seal the first two days, until the process dies at a request or at a call of the disk. Returns these calls."""
    lake = Lake(faulty, hot=str(place.hot))
    begin = 0
    writer: HotWriter | None = None

    def fail(number: int, op: Op) -> None:
        if fails_at is not None and number - begin >= fails_at:
            raise Crashed

    try:
        writer = writer_of(lake.table("taxi.trips"), place, disk)
        begin = len(disk.ops)
        disk.fail = fail
        writer.seal(1704240000000000)
    except (Crashed, UnderlayError):
        pass
    finally:
        if writer is not None:
            writer.close()
    return len(disk.ops) - begin


def check_once(place: Place, expected: list[int]) -> None:
    """Before another writer, behind it, and when all is sealed: each row once."""
    assert ids(place.table()) == expected
    writer = writer_of(place.table(), place)
    assert not writer.state.sealing
    assert ids(place.table()) == expected
    writer.append(trips([20, DAY_SECONDS + 20], 2000))
    assert ids(place.table()) == [*expected, 2000, 2001]
    writer.seal(everything=True)
    writer.close()
    assert ids(place.table(with_hot=False)) == [*expected, 2000, 2001]


def new_place(tmp_path: Path, name: str) -> tuple[Place, list[int]]:
    place = Place(tmp_path / name)
    place.folder.mkdir()
    table = place.create()
    table.append(trips([1], 1000))
    writer = writer_of(table, place)
    expected = three_days(writer)
    writer.close()
    return place, [*expected, 1000]


def lake_store(place: Place) -> Callable[[], FaultyStore]:
    return lambda: FaultyStore(open_store(place.folder / "lake"), lambda number, request: None)


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_process_that_dies_at_any_request_of_a_seal(tmp_path: Path, fault: Fault):
    place, expected = new_place(tmp_path, "whole")
    counted = lake_store(place)()
    seal_and_die(place, counted, RecordingDisk(), fails_at=None)
    requests = counted.request_count
    assert requests >= 5
    check_once(place, expected)
    begin, step = every_third().values()
    for number in range(begin, requests, step):
        place, expected = new_place(tmp_path, f"{number}")
        faulty = FaultyStore(open_store(place.folder / "lake"), at(number, fault))
        seal_and_die(place, faulty, RecordingDisk(), fails_at=None)
        check_once(place, expected)


def test_a_process_that_dies_at_any_call_of_the_disk(tmp_path: Path):
    place, expected = new_place(tmp_path, "whole")
    calls = seal_and_die(place, lake_store(place)(), RecordingDisk(), fails_at=None)
    check_once(place, expected)
    assert calls >= 10
    for number in range(0, calls, sized(2, 1)):
        place, expected = new_place(tmp_path, f"{number}")
        seal_and_die(place, lake_store(place)(), RecordingDisk(), fails_at=number)
        check_once(place, expected)


@pytest.mark.parametrize("fault", [Fault.LOST_RESPONSE, Fault.LOST_REQUEST, Fault.OWN_REFUSAL, Fault.LATE])
def test_a_commit_of_a_seal_whose_answer_is_unclear(tmp_path: Path, fault: Fault):
    place, expected = new_place(tmp_path, "unclear")
    inner = open_store(place.folder / "lake")
    faulty = FaultyStore(inner, on(StoreMethod.CREATE, fault, key=".root", times=sized(2, 40)))
    seal_and_die(place, faulty, RecordingDisk(), fails_at=None)
    assert ids(place.table()) == expected
    faulty.release()
    check_once(place, expected)


def test_a_seal_that_the_table_refuses_leaves_the_rows_hot(place: Place, monkeypatch: pytest.MonkeyPatch):
    table = place.create()
    with writing(table) as hot:
        expected = three_days(hot.writer)
        from underlay.hot.seal import seal

        made = seal.make_files

        def meanwhile(*given: object) -> object:
            with place.table().evolve() as change:
                change.make_required("id")
            return made(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(seal, "make_files", meanwhile)
        with pytest.raises(CommitConflict):
            hot.seal(everything=True)
        monkeypatch.undo()
        assert ids(place.table()) == expected
        hot.append(trips([11], 99))
        assert hot.seal(everything=True).row_count == 16
    assert ids(place.table(with_hot=False)) == [*expected, 99]


def test_a_lake_that_was_restored_from_an_older_copy_is_noticed(place: Place):
    import shutil

    table = place.create()
    with writing(table) as hot:
        three_days(hot.writer)
        shutil.copytree(place.folder / "lake", place.folder / "older")
        hot.seal(before="2024-01-02")
    older = ul.connect(place.folder / "older", registry="none", hot=place.hot).table("taxi.trips")
    with pytest.raises(Inconsistent, match="older"):
        older.to_arrow()
    with pytest.raises(Inconsistent, match=r"belong together|older"), older.hot() as hot:
        hot.seal(everything=True)


def test_rows_for_a_partition_that_is_being_sealed_wait(place: Place, monkeypatch: pytest.MonkeyPatch):
    from underlay.hot.seal import seal

    table = place.create()
    made, reached, go_on = seal.make_files, Event(), Event()

    def slow(*given: object) -> object:
        reached.set()
        assert go_on.wait(300)
        return made(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(seal, "make_files", slow)
    with writing(table) as hot, ThreadPoolExecutor(2) as pool:
        expected = three_days(hot.writer)
        sealing = pool.submit(hot.seal, "2024-01-02")
        assert reached.wait(300)
        hot.append(trips([2 * DAY_SECONDS + 9], 200))
        late = pool.submit(hot.append, trips([9], 201))
        assert ids(table) == [*expected, 200]
        go_on.set()
        assert sealing.result().partitions == ("2024-01-01",)
        late.result()
        assert ids(table) == [*expected, 200, 201]
        assert hot.row_count == 11


def test_a_reader_in_a_loop_sees_each_row_once_while_partitions_are_sealed(place: Place):
    table = place.create()
    stopped = Event()
    appended = [0]

    def read() -> int:
        seen = reads = 0
        mine = place.table()
        while not stopped.is_set():
            before = appended[0]
            found = ids(mine)
            assert found == list(range(len(found)))
            assert len(found) >= max(seen, before)
            seen, reads = len(found), reads + 1
        return reads

    rng = np.random.default_rng(SEED)
    with writing(table, commit_interval_ms=1) as hot, ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for number in range(sized(40, 400)):
            times = rng.integers(0, 3, 5) * DAY_SECONDS + rng.integers(0, DAY_SECONDS, 5)
            hot.append(trips(sorted(times.tolist()), 5 * number))
            appended[0] = 5 * (number + 1)
            if number % 5 == 4:
                hot.seal(before=("2024-01-02", "2024-01-03", "2024-01-04")[number // 5 % 3])
        stopped.set()
        assert all(reader.result() > 0 for reader in readers)
    assert len(ids(table)) == appended[0]


def test_a_schema_without_a_timestamp_has_no_hot_partitions(place: Place):
    table = place.lake().create_table("a.b", pa.schema([SCHEMA.field("id")]))
    with pytest.raises(UnderlayError, match="no timestamp"):
        table.hot()


def test_a_seal_whose_outcome_stays_unknown_ends_the_writer_and_the_next_one_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("underlay.hot.seal.seal._ATTEMPTS", 1)
    place, expected = new_place(tmp_path, "unknown")
    lost = FaultyStore(open_store(place.folder / "lake"), on(StoreMethod.CREATE, Fault.LATE, key=".root", times=10_000))
    writer = writer_of(Lake(lost, hot=str(place.hot)).table("taxi.trips"), place)
    with pytest.raises(CommitUnknown):
        writer.seal(everything=True)
    with pytest.raises(UnderlayError, match="closed"):
        writer.append(trips([5], 600))
    writer.close()
    assert ids(place.table()) == expected
    lost.release()
    check_once(place, expected)
