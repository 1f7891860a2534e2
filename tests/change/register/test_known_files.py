"""Registered files that were touched, changed, lost, or are to be no part of the table any more."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, ids, memory, quick, rows
from tests.maintain.healthy import active, run
from tests.scan.changes.test_appended import end_of
from tests.scan.changes.test_appended import ids as streamed
from underlay.errors import CommitConflict, InvalidRequest, NotFound, Replaced, SchemaMismatch, Unsupported
from underlay.index.keys import again, plain_location
from underlay.scan.changes.appended import after
from underlay.store import Store
from underlay.store.local import LocalStore
from underlay.store.testing.counting import CountingStore


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(LocalStore(tmp_path / "lake"))


@pytest.fixture
def table(store: CountingStore) -> underlay.Table:
    return quick(store).create_table(NAME, SCHEMA)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "in"
    path.mkdir()
    for at in range(3):
        pq.write_table(rows(range(10 * at, 10 * at + 10)), path / f"{at}.parquet")
    return path


def change(path: Path, numbers: range) -> None:
    pq.write_table(rows(numbers), path)


def test_a_file_with_the_same_bytes_is_the_same_file(table: underlay.Table, folder: Path):
    table.register(folder)
    os.utime(folder / "0.parquet", ns=(1, 1))
    shutil.copy(folder / "1.parquet", folder / "copy")
    os.replace(folder / "copy", folder / "1.parquet")
    assert ids(table) == list(range(30))
    assert ids(table, "id >= 5 and id < 15") == list(range(5, 15))
    assert not run(table.stores.lake, NAME, deep=True).findings


def test_a_file_that_is_gone_is_named_once_with_what_to_do(table: underlay.Table, folder: Path):
    table.register(folder)
    (folder / "1.parquet").unlink()
    with pytest.raises(NotFound) as raised:
        ids(table)
    assert str(raised.value) == (
        f'{folder / "1.parquet"}: no such object. Bring the file back, or leave it out with "underlay unregister".'
    )


def test_a_file_that_was_touched_is_looked_at_once(store: CountingStore, table: underlay.Table):
    place = store.inner.root / "in.parquet"
    pq.write_table(rows(range(5)), place)
    table.register(place)
    os.utime(place, ns=(1, 1))
    ids(table)
    store.reset()
    ids(table)
    assert [served.request.op.value for served in store.log if "in.parquet" in served.request.keys] == ["get_ranges"]


def test_an_object_that_was_put_again_is_the_same_file():
    store = memory()
    table = quick(store).create_table(NAME, SCHEMA)
    sink = pa.BufferOutputStream()
    pq.write_table(rows(range(5)), sink)
    store.put("in/a.parquet", sink.getvalue().to_pybytes())
    table.register(f"{store.url}/in/")
    before = store.head("in/a.parquet")
    store.put("in/a.parquet", sink.getvalue().to_pybytes())
    after = store.head("in/a.parquet")
    assert before is not None
    assert after is not None
    assert before.etag != after.etag
    assert ids(table) == list(range(5))


@pytest.mark.parametrize("server", ["moto", "seaweedfs"])
def test_an_object_of_s3_that_was_put_in_parts_is_the_same_file(server: str, request: pytest.FixtureRequest):
    store = request.getfixturevalue(server).open()
    table = quick(store).create_table(NAME, SCHEMA)
    sink = pa.BufferOutputStream()
    pq.write_table(rows(range(5)), sink)
    whole = sink.getvalue().to_pybytes()
    store.put("in/year=2024/a.parquet", whole)
    table.register(f"{store.url}/in/year=2024/a.parquet", hive=False)
    obstore.put(store._client(), "in/year=2024/a.parquet", whole, use_multipart=True)
    assert ids(table) == list(range(5))
    store.put("in/year=2024/a.parquet", whole[:-12] + bytes([whole[-12] ^ 1]) + whole[-11:])
    with pytest.raises(Replaced, match="--refresh"):
        ids(table)


def test_a_file_with_other_bytes_is_an_error_that_says_what_to_do(table: underlay.Table, folder: Path):
    table.register(folder)
    change(folder / "1.parquet", range(100, 110))
    with pytest.raises(Replaced, match="--refresh") as raised:
        ids(table)
    assert "1.parquet" in str(raised.value)
    assert ids(table, "id < 10") == list(range(10))


def test_a_file_that_changes_while_it_is_read_is_noticed(table: underlay.Table, folder: Path, store: CountingStore):
    class Changing(LocalStore):
        def get_tail(self, key: str, size_bytes: int):  # type: ignore[no-untyped-def]
            found = super().get_tail(key, size_bytes)
            change(folder / "0.parquet", range(100, 110))
            return found

    table.register(folder / "0.parquet")
    os.utime(folder / "0.parquet", ns=(1, 1))
    table.stores._opened["file:///"] = Changing("/")
    with pytest.raises(Replaced):
        ids(table)


def test_known_files_can_be_skipped(table: underlay.Table, folder: Path):
    table.register(folder / "0.parquet")
    with pytest.raises(InvalidRequest, match="skip-known"):
        table.register(folder)
    done = table.register(folder, skip_known=True)
    assert (done.version, done.file_count, done.row_count, done.known_count) == (2, 2, 20, 1)
    again_done = table.register(folder, skip_known=True)
    assert (again_done.version, again_done.file_count, again_done.known_count) == (2, 0, 3)
    assert ids(table) == list(range(30))


def test_a_file_by_another_path_is_known(table: underlay.Table, folder: Path):
    (folder.parent / "link").symlink_to(folder)
    table.register(folder / "0.parquet")
    done = table.register(folder.parent / "link", f"{folder}/../in/*.parquet", skip_known=True)
    assert (done.file_count, done.known_count) == (2, 1)
    assert ids(table) == list(range(30))


def test_changed_files_are_replaced_in_one_commit(table: underlay.Table, folder: Path):
    table.register(folder)
    change(folder / "1.parquet", range(100, 105))
    os.utime(folder / "2.parquet", ns=(1, 1))
    pq.write_table(rows(range(30, 33)), folder / "3.parquet")
    done = table.register(folder, refresh=True)
    assert (done.version, done.file_count, done.row_count) == (2, 2, 8)
    assert (done.known_count, done.replaced_count) == (2, 1)
    assert ids(table) == [*range(10), *range(20, 33), *range(100, 105)]
    assert table.register(folder, refresh=True).version == 2


def test_a_refreshed_file_that_does_not_fit_changes_nothing(table: underlay.Table, folder: Path):
    table.register(folder)
    pq.write_table(pa.table({"id": ["x"]}), folder / "1.parquet")
    with pytest.raises(SchemaMismatch):
        table.register(folder, refresh=True)
    assert table.snapshot().version == 1


def test_files_can_be_refreshed_and_registered_again_whatever_is_stored_of_them(table: underlay.Table, folder: Path):
    for at in range(3, 70):
        pq.write_table(rows(range(10 * at, 10 * at + 1)), folder / f"{at}.parquet")
    table.register(folder)
    assert table.snapshot().root.segments
    for turn in range(3):
        change(folder / "0.parquet", range(5000 + turn, 5001 + turn))
        table.register(folder / "0.parquet", refresh=True)
        assert ids(table, "id >= 5000") == [5000 + turn]
    table.unregister(folder)
    assert ids(table) == []
    table.register(folder)
    assert len(ids(table)) == 20 + 67 + 1
    assert active(run(table.stores.lake, NAME, deep=True), NAME).newest_intact == table.snapshot().version
    with pytest.raises(InvalidRequest, match="already part"):
        table.register(folder / "0.parquet")


def test_registered_files_can_be_removed(table: underlay.Table, folder: Path):
    table.register(folder)
    done = table.unregister(folder / "0.parquet", f"{folder}/[2-9].parquet")
    assert (done.version, done.file_count, done.row_count) == (2, 2, 20)
    assert ids(table) == list(range(10, 20))
    assert sorted(path.name for path in folder.iterdir()) == ["0.parquet", "1.parquet", "2.parquet"]
    assert next(iter(table.history())).operation == "unregister"
    assert underlay.connect(table.stores.lake).table(NAME, version=1).count() == 30


def test_a_file_that_is_gone_can_be_removed(table: underlay.Table, folder: Path):
    table.register(folder)
    (folder / "0.parquet").unlink()
    with pytest.raises(NotFound):
        ids(table)
    table.unregister(folder / "0.parquet")
    assert ids(table) == list(range(10, 30))
    shutil.rmtree(folder)
    table.unregister(folder)
    assert ids(table) == []


@pytest.mark.parametrize("name", ["9.parquet", "*.csv", "deeper/"])
def test_what_matches_no_registered_file_is_refused(table: underlay.Table, folder: Path, name: str):
    table.register(folder)
    with pytest.raises(NotFound, match="no registered file"):
        table.unregister(f"{folder}/{name}", folder)
    assert table.snapshot().version == 1


def test_files_of_the_table_itself_are_not_unregistered(table: underlay.Table, store: CountingStore):
    table.append(rows(range(3)))
    with pytest.raises(InvalidRequest, match="written by Underlay"):
        table.unregister(store.inner.root)
    assert ids(table) == [0, 1, 2]


def test_files_within_the_lake_and_behind_links_are_found(table: underlay.Table, store: CountingStore, folder: Path):
    inside = store.inner.root / "in"
    shutil.copytree(folder, inside)
    (folder.parent / "link").symlink_to(inside)
    table.register(inside)
    table.unregister(folder.parent / "link" / "0.parquet")
    assert ids(table) == list(range(10, 30))
    table.unregister(f"{folder.parent}/link/*.parquet")
    assert ids(table) == []


def test_objects_of_a_remote_store_are_unregistered_by_their_urls(folder: Path):
    store: Store = memory()
    table = quick(store).create_table(NAME, SCHEMA)
    for path in folder.iterdir():
        store.put(f"in/{path.name}", path.read_bytes())
    table.register(f"{store.url}/in/")
    table.unregister(f"{store.url}/in/0.parquet", f"{store.url}/in/[12].parquet")
    assert ids(table) == []


def test_two_that_remove_one_file_do_not_both_succeed(table: underlay.Table, folder: Path, store: CountingStore):
    table.register(folder)
    other = quick(store).table(NAME)
    other.snapshot()
    table.unregister(folder / "0.parquet")
    with pytest.raises((NotFound, CommitConflict)):
        other.unregister(folder / "0.parquet")
    assert ids(other) == list(range(10, 30))


@pytest.mark.parametrize(
    "location", ["./in/a.parquet", "file:///data/a%20b.parquet", "s3://bucket/in/a.parquet", "s3://bucket/5/a.parquet"]
)
def test_a_location_that_comes_again_is_the_same_place(location: str):
    name = again(location, 12)
    assert name != location
    assert plain_location(name) == location
    assert plain_location(location) == location
    assert again(name, 13) == again(location, 13)


def test_a_stream_of_appends_passes_over_what_was_unregistered_and_reads_what_was_refreshed(
    table: underlay.Table, folder: Path
):
    head = table.read_head()
    begin = after(head.revision, head.root)
    table.register(folder)
    table.unregister(folder / "0.parquet")
    end = end_of(table)
    with pytest.raises(Unsupported, match="skipChanges"):
        streamed(table, begin, end)
    assert streamed(table, begin, end, skips_changes=True) == list(range(30))
    change(folder / "1.parquet", range(100, 103))
    table.register(folder / "1.parquet", refresh=True)
    with pytest.raises(Unsupported, match="skipChanges"):
        streamed(table, end, end_of(table))
    assert streamed(table, end, end_of(table), skips_changes=True) == [100, 101, 102]
