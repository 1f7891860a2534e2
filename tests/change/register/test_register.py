from __future__ import annotations

from pathlib import Path
from threading import Barrier

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from tests.change.interrupting import InterruptingStore
from tests.contract.worlds import add_column, drop_column
from tests.end_to_end.lakes import NAME, SCHEMA, ids, quick, rows
from tests.table.checker import Checker
from underlay.change.register import read_footers as module
from underlay.errors import Damaged, InvalidRequest, NotFound, SchemaMismatch
from underlay.store.local import LocalStore
from underlay.store.store import StoredObject
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.wrapper import StoreMethod

WAIT_SECONDS = 240


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(LocalStore(tmp_path / "lake"))


@pytest.fixture
def table(store: CountingStore) -> underlay.Table:
    return quick(store).create_table(NAME, SCHEMA, sort_by=["id"])


@pytest.fixture
def folder(store: CountingStore) -> Path:
    """A folder within the lake's own store."""
    path = store.inner.root / "in"
    path.mkdir(parents=True)
    return path


def put(folder: Path, *names: str) -> None:
    """Files whose ids go on from file to file, three each."""
    for place, name in enumerate(names):
        pq.write_table(rows(range(3 * place, 3 * place + 3)), folder / f"{name}.parquet")


def requests(store: CountingStore, part: str) -> list[tuple[StoreMethod, str]]:
    return [(s.request.op, s.request.keys[0]) for s in store.log if part in s.request.keys[0]]


def test_files_are_named_within_the_lake(table: underlay.Table, folder: Path):
    put(folder, "a", "b")
    done = table.register(f"{folder}/*.parquet")
    assert (done.version, done.file_count, done.row_count) == (1, 2, 6)
    assert [file.location for file in table.snapshot().files()] == ["./in/a.parquet", "./in/b.parquet"]
    assert ids(table) == list(range(6))


def test_files_elsewhere_are_named_by_their_url(table: underlay.Table, tmp_path: Path):
    put(tmp_path, "a b%20")
    table.register(str(tmp_path / "a b%20.parquet"))
    assert [file.location for file in table.snapshot().files()] == [(tmp_path / "a b%20.parquet").as_uri()]
    assert ids(table) == [0, 1, 2]


def test_one_request_for_each_file_and_none_for_its_rows(store: CountingStore, table: underlay.Table, folder: Path):
    put(folder, *"abcdefgh")
    store.reset()
    table.register(f"{folder}/*.parquet")
    found = requests(store, ".parquet")
    assert sorted(found) == [(StoreMethod.GET_TAIL, f"in/{name}.parquet") for name in "abcdefgh"]


def test_files_that_are_named_are_not_listed(store: CountingStore, table: underlay.Table, folder: Path):
    put(folder, "a")
    store.reset()
    table.register(f"{folder}/a.parquet")
    assert requests(store, "in/") == [(StoreMethod.GET_TAIL, "in/a.parquet")]


def test_a_second_request_for_a_large_footer(store: CountingStore, folder: Path):
    names = [f"column number {number} with a rather long name" for number in range(300)]
    data = pa.table({name: np.arange(4) for name in names})
    pq.write_table(data, folder / "wide.parquet", row_group_size=1)
    table = quick(store).create_table(NAME, data.schema)
    store.reset()
    table.register(f"{folder}/wide.parquet")
    assert [op for op, _ in requests(store, "wide")] == [StoreMethod.GET_TAIL, StoreMethod.GET_RANGES]
    assert table.to_arrow().to_pylist() == data.to_pylist()


def test_progress_is_told(table: underlay.Table, folder: Path):
    put(folder, *"abc")
    told: list[tuple[int, int]] = []
    table.register(f"{folder}/*.parquet", progress=lambda done, all_: told.append((done, all_)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_every_file_that_does_not_fit_is_listed_and_nothing_is_changed(table: underlay.Table, folder: Path):
    put(folder, *"abcd")
    pq.write_table(pa.table({"id": ["x"]}), folder / "wrong.parquet")
    pq.write_table(rows([1]).append_column("more", pa.array([1])), folder / "more.parquet")
    with pytest.raises(SchemaMismatch, match="2 of 6 files do not match") as raised:
        table.register(f"{folder}/*.parquet")
    assert "./in/wrong.parquet" in str(raised.value)
    assert "./in/more.parquet" in str(raised.value)
    assert "./in/a.parquet" not in str(raised.value)
    assert table.version == 0


def test_many_misfits_are_counted_and_some_are_shown(table: underlay.Table, folder: Path):
    for number in range(30):
        pq.write_table(pa.table({"id": ["x"]}), folder / f"{number:02}.parquet")
    with pytest.raises(SchemaMismatch, match="and 10 more"):
        table.register(f"{folder}/*.parquet")


def test_columns_that_the_table_does_not_have_can_be_ignored(table: underlay.Table, folder: Path):
    pq.write_table(rows([1]).append_column("more", pa.array([1])), folder / "more.parquet")
    table.register(f"{folder}/more.parquet", ignore_surplus=True)
    assert ids(table) == [1]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", b"text" * 100], ids=len)
def test_what_is_no_parquet_file_is_named(table: underlay.Table, folder: Path, content: bytes):
    put(folder, "a")
    (folder / "bad.parquet").write_bytes(content)
    with pytest.raises(Damaged, match=r"bad\.parquet"):
        table.register(f"{folder}/*.parquet")
    assert table.version == 0


def test_a_file_that_is_not_there_is_named(table: underlay.Table, folder: Path):
    put(folder, "a")
    with pytest.raises(NotFound, match=r"none\.parquet"):
        table.register(f"{folder}/a.parquet", f"{folder}/none.parquet")
    assert table.version == 0


def test_a_file_named_twice_is_registered_once(table: underlay.Table, folder: Path):
    put(folder, "a")
    assert table.register(f"{folder}/a.parquet", f"{folder}/*.parquet", str(folder)).file_count == 1
    assert table.count() == 3


def test_a_file_is_registered_once_for_good(store: CountingStore, table: underlay.Table, folder: Path):
    put(folder, "a", "b")
    table.register(f"{folder}/a.parquet")
    with pytest.raises(InvalidRequest, match="already") as raised:
        table.register(f"{folder}/*.parquet")
    assert "./in/a.parquet" in str(raised.value)
    assert "./in/b.parquet" not in str(raised.value)
    assert table.version == 1


def test_two_processes_that_register_one_file_at_once(store: CountingStore, table: underlay.Table, folder: Path):
    put(folder, "a")
    path = f"{folder}/a.parquet"
    other = InterruptingStore(store, StoreMethod.CREATE, ".root", lambda: table.register(path))
    with pytest.raises(underlay.UnderlayError):
        quick(other).table(NAME).register(path)
    assert ids(table) == [0, 1, 2]
    Checker(store).check()


def test_a_column_added_meanwhile_is_seen(store: CountingStore, table: underlay.Table, folder: Path):
    put(folder, "a")
    other = InterruptingStore(store, StoreMethod.CREATE, ".root", lambda: add_column(table, "more", "int64", "7"))
    quick(other).table(NAME).register(f"{folder}/a.parquet")
    assert table.to_arrow()["more"].to_pylist() == [7, 7, 7]
    Checker(store).check()


def test_a_column_dropped_meanwhile_is_not_read(store: CountingStore, table: underlay.Table, folder: Path):
    put(folder, "a")
    other = InterruptingStore(store, StoreMethod.CREATE, ".root", lambda: drop_column(table, "value"))
    quick(other).table(NAME).register(f"{folder}/a.parquet")
    assert table.to_arrow().schema.names == ["id", "name"]
    assert table.to_arrow()["id"].to_pylist() == [0, 1, 2]
    Checker(store).check()


def test_files_of_a_partitioned_table_lie_in_one_partition_each(store: CountingStore, folder: Path):
    table = quick(store).create_table(NAME, SCHEMA, partition_by=["truncate(10, id)"])
    for name, numbers in (("a", [1, 5, 9]), ("b", [10, 19]), ("c", [30])):
        pq.write_table(rows(numbers), folder / f"{name}.parquet")
    table.register(f"{folder}/*.parquet")
    assert table.plan(where="id = 12").kept.files == 1
    assert ids(table, "id >= 10") == [10, 19, 30]


@pytest.mark.parametrize("how", ["two partitions", "no statistics"])
def test_a_file_without_one_partition_is_a_misfit(store: CountingStore, folder: Path, how: str):
    table = quick(store).create_table(NAME, "id bigint, name string, value double", partition_by=["truncate(10, id)"])
    numbers = [9, 10] if how == "two partitions" else [1, 2]
    pq.write_table(rows(numbers), folder / "a.parquet", write_statistics=how != "no statistics")
    with pytest.raises(SchemaMismatch, match=r"one value of truncate\(10, id\)"):
        table.register(f"{folder}/a.parquet")


class MeetingStore(LocalStore):
    """A store in which the end of a file is read only while that of another one is."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.meeting = Barrier(4)

    def get_tail(self, key: str, size_bytes: int) -> tuple[memoryview, StoredObject]:
        self.meeting.wait(WAIT_SECONDS)
        return super().get_tail(key, size_bytes)


def test_footers_are_read_side_by_side(folder: Path):
    put(folder, *"abcdefgh")
    table = quick(MeetingStore(folder.parent)).create_table(NAME, SCHEMA)
    assert table.register(str(folder)).file_count == 8


def test_many_files_are_a_segment(store: CountingStore, table: underlay.Table, folder: Path):
    put(folder, *(f"{number:03}" for number in range(150)))
    done = table.register(str(folder))
    assert (done.file_count, done.row_count) == (150, 450)
    assert len(table.snapshot().root.segments) == 1
    assert ids(table, "id >= 100 and id < 110") == list(range(100, 110))
    Checker(store).check()


@pytest.mark.parametrize("waiting_seconds", [0.0, float("inf")])
def test_many_files_are_read_with_threads_and_without(
    table: underlay.Table, folder: Path, monkeypatch: pytest.MonkeyPatch, waiting_seconds: float
):
    monkeypatch.setattr(module, "_MANY", 5)
    monkeypatch.setattr(module, "_WAITING_SECONDS", waiting_seconds)
    put(folder, *"abcdefgh")
    seen: list[tuple[int, int]] = []
    assert table.register(str(folder), progress=lambda *told: seen.append(told)).file_count == 8
    assert seen == [(number, 8) for number in range(1, 9)]


def test_footers_are_parsed_some_at_a_time_and_problems_name_their_files(
    table: underlay.Table, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "_FOOTERS_AT_ONCE", 3)
    put(folder, *"abcdefgh")
    pq.write_table(pa.table({"id": ["x"]}), folder / "f-wrong.parquet")
    with pytest.raises(SchemaMismatch, match="1 of 9 files") as raised:
        table.register(str(folder))
    assert "f-wrong.parquet" in str(raised.value)
    (folder / "f-wrong.parquet").unlink()
    assert table.register(str(folder)).file_count == 8
    assert [Path(one.location).stem for one in table.snapshot().files()] == [*"abcdefgh"]


def test_files_of_several_writers_stay_in_order(store: CountingStore, table: underlay.Table, folder: Path):
    put(folder, *(f"{number:03}" for number in range(0, 90, 2)))
    for number in range(1, 90, 2):
        data = pq.read_table(folder / "000.parquet")
        pq.write_table(data, folder / f"{number:03}.parquet", compression="none", write_statistics=["id"])
    table.register(str(folder))
    (segment,) = table.snapshot().segments
    locations = segment.locations.to_pylist()
    assert locations == sorted(locations)
    assert len(locations) == 90
    Checker(store).check()


def test_files_of_tables_are_not_registered(store: CountingStore, table: underlay.Table):
    """Their rows would be there twice."""
    table.append(rows([1]))
    other = quick(store).create_table("some.other", SCHEMA)
    for target in (table, other):
        with pytest.raises(InvalidRequest, match="belong to tables"):
            target.register(f"{store.inner.root}/some/**/*.parquet")
    assert ids(table) == [1]
    assert other.count() == 0


def test_files_of_a_dropped_table_are_not_registered(store: CountingStore, table: underlay.Table):
    """They go with the next sweep."""
    table.append(rows([1]))
    lake = quick(store)
    lake.drop_table(NAME)
    other = lake.create_table("some.other", SCHEMA)
    with pytest.raises(InvalidRequest, match="belong to tables"):
        other.register(f"{store.inner.root}/some/table")
