from __future__ import annotations

import multiprocessing
from pathlib import Path
from threading import Barrier, Event

import pytest
from msgspec.structs import replace

from tests.table.commit.checks import check, locations
from tests.table.entries import (
    append,
    appending,
    deleting,
    memory,
    name,
    new_table,
    other_client,
    source,
)
from underlay.errors import (
    CommitConflict,
    CommitUnknown,
    Inconsistent,
    InvalidRequest,
    NotFound,
    Unavailable,
)
from underlay.index import deletion_vectors as bitmaps
from underlay.index.root import encode_root
from underlay.store.local import LocalStore
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.faulty import Fault, FaultyStore, on
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.commit import flush_and_merge
from underlay.table.commit.commit import commit, put_all
from underlay.table.versions.snapshot import Snapshot


def test_an_append_is_the_next_version():
    _, revision = new_table()
    root = append(revision, "a", "b")
    assert (root.version, root.operation, root.row_count, root.file_count) == (1, "append", 200, 2)
    assert root.counts == {"files_added": 2, "rows_added": 200}
    assert locations(revision) == {"a", "b"}
    check(revision)


def test_a_small_append_waits_for_two_puts():
    class Together(CountingStore):
        """No put ends before three have begun."""

        def put(self, key: str, data: bytes) -> None:
            together.wait()
            super().put(key, data)

    _, revision = new_table()
    together = Barrier(3, timeout=120)
    store = CountingStore(Together(revision.store))
    transaction = appending(other_client(revision, store), "a", "b", "c")
    store.reset()
    commit(transaction)
    assert store.longest_chain() == 2
    assert store.request_count() == 5  # one of them sees that the base is still there


def test_when_a_put_fails_the_others_have_ended():
    ended: list[str] = []

    class Failing(CountingStore):
        """The put of `a` fails at once; the others end only after that."""

        def put(self, key: str, data: bytes) -> None:
            if key.endswith("a"):
                failed.set()
                raise Unavailable("no", place=key)
            assert failed.wait(120)
            ended.append(key)

    failed = Event()
    for keys in (["a", "b", "c"], ["b", "c", "a"]):
        failed.clear()
        ended.clear()
        with pytest.raises(Unavailable):
            put_all(Failing(memory()), dict.fromkeys(keys, b""))
        assert sorted(ended) == ["b", "c"]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_puts_with_threads_of_its_own(tmp_path: Path):
    store = LocalStore(tmp_path)
    objects = {name: name.encode() for name in ("a", "b", "c")}
    put_all(store, objects)
    child = multiprocessing.get_context("fork").Process(
        target=put_all, args=(store, {f"child/{name}": data for name, data in objects.items()})
    )
    child.start()
    child.join(120)
    assert child.exitcode == 0
    assert {key: bytes(store.get(f"child/{key}")[0]) for key in objects} == objects


def test_appends_that_race_are_both_committed():
    _, revision = new_table()
    other = other_client(revision)
    mine, theirs = appending(revision, "mine"), appending(other, "theirs")
    assert commit(theirs).version == 1
    assert commit(mine).version == 2
    assert locations(revision) == locations(other) == {"mine", "theirs"}
    check(revision)


def test_an_own_success_that_is_reported_as_a_refusal_is_a_success():
    inner = memory()
    _, revision = new_table(inner)
    mine = other_client(revision, FaultyStore(inner, on(StoreMethod.CREATE, Fault.OWN_REFUSAL, key=".root")))
    assert append(mine, "a").version == 1
    assert revision.head().version == 1
    check(revision)


def test_a_conflict_that_wrote_nothing_is_tried_again():
    inner = memory()
    _, revision = new_table(inner)
    mine = other_client(revision, FaultyStore(inner, on(StoreMethod.CREATE, Fault.LOST_REQUEST, key=".root", times=3)))
    assert append(mine, "a").version == 1
    check(revision)


def test_a_put_that_lands_late_changes_nothing():
    inner = memory()
    _, revision = new_table(inner)
    faulty = FaultyStore(inner, on(StoreMethod.CREATE, Fault.LATE, key=".root", times=2))
    append(other_client(revision, faulty), "a")
    append(other_client(revision), "b")
    faulty.release()
    assert locations(revision) == {"a", "b"}
    check(revision)


def test_a_put_whose_fate_stays_unknown_names_its_commit_and_deletes_nothing():
    inner = memory()
    _, revision = new_table(inner)
    faulty = FaultyStore(inner, on(StoreMethod.CREATE, Fault.LATE, key=".root", times=1000))
    with pytest.raises(CommitUnknown) as raised:
        append(other_client(revision, faulty), "a", token="t")
    assert revision.head().version == 0
    faulty.release()
    assert revision.head().commit_id == raised.value.commit_id
    check(revision)


def test_a_transaction_is_committed_once():
    _, revision = new_table()
    mine = appending(revision, "a")
    commit(mine)
    with pytest.raises(InvalidRequest, match="once"):
        commit(mine)


def test_a_refusal_of_access_is_not_an_unknown_commit():
    class Denied(CountingStore):
        def create(self, key: str, data: object) -> object:
            raise Unavailable("access denied")

    _, revision = new_table()
    with pytest.raises(Unavailable, match="denied"):
        append(other_client(revision, Denied(revision.store)), "a")


def test_a_token_is_committed_once():
    _, revision = new_table()
    append(revision, "a", token="t")
    late = appending(other_client(revision), "b", token="t", base=revision.root(0))
    assert commit(late).version == 1
    assert locations(revision) == {"a"}
    check(revision)


def test_a_token_is_found_before_the_work():
    _, revision = new_table()
    append(revision, "a", token="t")
    snapshot = Snapshot(revision.store, revision.keys, revision.head())
    assert snapshot.find_sources(["token:t", "token:u"])["token:t"].version == 1


def test_sources_overflow_into_pages():
    _, revision = new_table()
    for number in range(3):
        transaction = appending(revision, f"f{number}")
        for source_number in range(150):
            transaction.add_source(source(f"s3://in/{number}/{source_number:03}"))
        commit(transaction)
    root = revision.head()
    assert root.sources.tree is not None
    snapshot = Snapshot(revision.store, revision.keys, root)
    assert snapshot.find_sources(["s3://in/0/007"])["s3://in/0/007"].version == 1
    check(revision)


def test_two_ingests_of_one_source_are_not_both_committed():
    _, revision = new_table()
    first, second = appending(revision, "a"), appending(other_client(revision), "b")
    for transaction in (first, second):
        transaction.add_source(source("s3://in/1.csv"))
    commit(first)
    with pytest.raises(CommitConflict, match="same source"):
        commit(second)


def test_deleted_rows_of_a_file_in_the_tail():
    _, revision = new_table()
    append(revision, "a")
    root = commit(deleting(revision, "a", [1, 2, 3]))
    assert (root.row_count, root.deletes, root.tail[0].deleted_rows) == (97, {}, 3)
    check(revision)


def test_deleted_rows_of_a_file_in_a_segment(monkeypatch: pytest.MonkeyPatch):
    _, revision = new_table()
    append(revision, "a")
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 0)
    append(revision, "b")
    commit(deleting(revision, "a", [1, 2, 3]))
    root = commit(deleting(revision, "a", [3, 4]))
    assert set(root.deletes) == {"a"}
    assert root.row_count == 196
    check(revision)


def test_deletes_of_the_same_rows_are_both_committed():
    _, revision = new_table()
    append(revision, "a")
    first, second = deleting(revision, "a", [1, 2]), deleting(other_client(revision), "a", [2, 3])
    commit(first)
    assert commit(second).row_count == 97
    check(revision)


def test_deletes_of_the_same_rows_of_a_file_in_a_segment_are_counted_once(monkeypatch: pytest.MonkeyPatch):
    _, revision = new_table()
    append(revision, "a")
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 0)
    append(revision, "b")
    first, second = deleting(revision, "a", [1, 2]), deleting(other_client(revision), "a", [2, 3])
    commit(first)
    root = commit(second)
    assert (root.row_count, root.deletes) == (197, {"a": bitmaps.pack([1, 2, 3])})
    check(revision)


@pytest.mark.parametrize("version", [1, 2])
def test_a_root_of_another_history_is_refused(version: int):
    _, revision = new_table()
    mine = appending(revision, "mine")
    append(other_client(revision), "a")
    append(other_client(revision), "b")
    strange = replace(other_client(revision).root(version), parent_id="another")
    revision.store.put(revision.keys.root(version), encode_root(strange))
    with pytest.raises(Inconsistent, match="does not follow"):
        commit(mine)


def test_a_file_that_is_there_cannot_be_added():
    _, revision = new_table()
    append(revision, "a", "./raw/x.parquet")
    for location in ("a", "./raw/x.parquet"):
        with pytest.raises(InvalidRequest, match=r"in the table|part of the table"):
            append(revision, location)


def test_a_registered_file_in_a_segment_cannot_be_added_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 0)
    _, revision = new_table()
    append(revision, "./raw/x.parquet")
    append(revision, "a")
    with pytest.raises(InvalidRequest, match="part of the table"):
        append(revision, "./raw/x.parquet")


def test_a_file_that_is_not_there_cannot_be_changed():
    _, revision = new_table()
    with pytest.raises(NotFound, match="no such file"):
        commit(deleting(revision, "a", [1]))


def test_rows_past_the_end_of_a_file_cannot_be_deleted():
    _, revision = new_table()
    append(revision, "a")
    with pytest.raises(InvalidRequest, match="past the end"):
        commit(deleting(revision, "a", [100]))


def test_commit_times_increase_whatever_the_clock_says():
    _, revision = new_table()
    backward = other_client(revision, now_us=lambda: 5)
    before = revision.head().committed_us
    assert append(backward, name()).committed_us == before + 1
    check(revision)
