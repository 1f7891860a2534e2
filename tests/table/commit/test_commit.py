from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Event
from typing import TypeVar

import pytest
from msgspec.structs import replace

from tests.table.checker import Checker
from tests.table.entries import (
    DEFINITION,
    LAYOUT,
    append,
    appending,
    deleting,
    entry,
    key_of,
    memory,
    name,
    new_table,
    other_client,
    replacing,
    source,
)
from underlay.errors import (
    CommitConflict,
    CommitUnknown,
    Inconsistent,
    InvalidRequest,
    JobTakenOver,
    NotFound,
    Unavailable,
)
from underlay.index import deletion_vectors as bitmaps
from underlay.index.operation import Operation
from underlay.index.partition_specs import with_spec
from underlay.index.root import Definition, PartitionFieldRecord, Root, encode_root
from underlay.schema.record import FieldRecord, SchemaRecord
from underlay.store.local import LocalStore
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.faulty import Fault, FaultyStore, on
from underlay.store.testing.wrapper import Request, StoreMethod, StoreWrapper
from underlay.table.commit import tidy
from underlay.table.commit.commit import commit, put_all
from underlay.table.commit.conflicts import ReadSet
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import Snapshot

T = TypeVar("T")


def locations(revision: Revision, root: Root | None = None) -> set[str]:
    snapshot = Snapshot(revision.store, revision.keys, root or revision.head())
    return {file.location for file in snapshot.files()}


def check(revision: Revision) -> None:
    Checker(revision.store).check()


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
    monkeypatch.setattr(tidy, "TAIL_BYTES", 0)
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
    monkeypatch.setattr(tidy, "TAIL_BYTES", 0)
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


def test_updates_of_the_same_rows_conflict_and_both_are_named():
    _, revision = new_table()
    append(revision, "a")
    transactions = [deleting(client, "a", [1, 2], Operation.UPDATE) for client in (revision, other_client(revision))]
    for number, transaction in enumerate(transactions):
        transaction.add_file(entry(f"new{number}"))
        transaction.objects[f"{revision.keys.folder}/new{number}"] = b"new0"
    won = commit(transactions[0])
    with pytest.raises(CommitConflict, match="same row") as raised:
        commit(transactions[1])
    assert raised.value.theirs == won.commit_id
    assert raised.value.mine not in (None, won.commit_id)
    assert won.commit_id in str(raised.value)
    check(revision)


def test_rows_that_came_meanwhile_are_matched_again():
    _, revision = new_table()
    append(revision, "a")

    def work(base: Root) -> Transaction:
        transaction = Transaction(revision, base, Operation.DELETE)
        for file in Snapshot(revision.store, revision.keys, base).files():
            transaction.delete_rows(file.location, [0])
        transaction.rely_on(ReadSet(may_match=lambda file: True))
        return transaction

    mine = work(revision.head())
    append(other_client(revision), "b")
    root = commit(mine, work)
    assert root.row_count == 198
    assert set(root.delta.deletes) == {"a", "b"}
    check(revision)


def test_rows_that_came_meanwhile_and_cannot_match_do_not_matter():
    _, revision = new_table()
    append(revision, "a")
    mine = deleting(revision, "a", [0])
    mine.rely_on(ReadSet(may_match=lambda file: file.location == "z"))
    append(other_client(revision), "b")
    assert commit(mine).version == 3


def test_a_compaction_that_lost_a_file_is_done_again():
    _, revision = new_table()
    append(revision, "a", "b")
    mine = replacing(revision, ["a", "b"], "ab")
    commit(replacing(other_client(revision), ["b"], "b2"))
    with pytest.raises(CommitConflict, match="same file"):
        commit(mine)
    check(revision)


def test_a_compaction_does_not_bring_deleted_rows_back():
    _, revision = new_table()
    append(revision, "a")
    mine = replacing(revision, ["a"], "a2")
    commit(deleting(other_client(revision), "a", [5]))
    with pytest.raises(CommitConflict):
        commit(mine)


def test_two_changes_of_the_definition_conflict():
    _, revision = new_table()
    transactions = [
        Transaction(client, client.head(), Operation.EVOLVE) for client in (revision, other_client(revision))
    ]
    for transaction in transactions:
        transaction.set_definition(DEFINITION)
    commit(transactions[0])
    # The first one changed nothing in fact, so the second may follow.
    commit(transactions[1])
    changed = [Transaction(client, client.head(), Operation.EVOLVE) for client in (revision, other_client(revision))]
    for number, transaction in enumerate(changed):
        transaction.set_definition(with_column(f"c{number}"))
    commit(changed[0])
    with pytest.raises(CommitConflict, match="definition"):
        commit(changed[1])


def with_column(column: str, *, required: bool = False) -> Definition:
    fields = (*DEFINITION.schema.fields, FieldRecord(id=2, name=column, type="int64", required=required))
    return with_schema(SchemaRecord(fields=fields, last_id=2))


def with_schema(schema: SchemaRecord) -> Definition:
    return Definition(schema=schema, key=DEFINITION.key)


def test_a_new_column_does_not_disturb_an_append():
    _, revision = new_table()
    mine = appending(revision, "a")
    evolve = Transaction(other_client(revision), revision.head(), Operation.EVOLVE)
    evolve.set_definition(with_column("c"))
    commit(evolve)
    assert commit(mine).definition == with_column("c")


@pytest.mark.parametrize("is_append_first", [True, False])
def test_a_stricter_definition_conflicts_with_an_append(is_append_first: bool):
    _, revision = new_table()
    mine = appending(revision, "a")
    evolve = Transaction(other_client(revision), revision.head(), Operation.EVOLVE)
    evolve.set_definition(with_column("c", required=True))
    first, second = (mine, evolve) if is_append_first else (evolve, mine)
    commit(first)
    with pytest.raises(CommitConflict, match="not-null"):
        commit(second)


def test_a_change_of_a_type_leaves_no_tail_behind():
    _, revision = new_table()
    append(revision, "a")
    evolve = Transaction(revision, revision.head(), Operation.EVOLVE)
    wider = FieldRecord(id=1, name="id", type="decimal(38, 0)")
    evolve.set_definition(with_schema(SchemaRecord(fields=(wider,), last_id=1)))
    root = commit(evolve)
    assert root.tail == ()
    assert locations(revision) == {"a"}
    check(revision)


def test_a_taken_over_job_cannot_commit():
    _, revision = new_table()
    mine = appending(revision, "a")
    mine.hold("ingest", 0)
    takeover = Transaction(other_client(revision), revision.head(), Operation.JOB)
    assert takeover.take_over("ingest") == 1
    commit(takeover)
    with pytest.raises(JobTakenOver, match="took over the job ingest"):
        commit(mine)
    new = appending(revision, "b")
    new.hold("ingest", 1)
    assert commit(new).fences == {"ingest": 1}
    check(revision)


def test_two_takeovers_of_one_job_are_not_both_committed():
    _, revision = new_table()
    transactions = [Transaction(client, client.head(), Operation.JOB) for client in (revision, other_client(revision))]
    for transaction in transactions:
        transaction.take_over("ingest")
    commit(transactions[0])
    with pytest.raises(CommitConflict, match="same job"):
        commit(transactions[1])


def test_a_long_tail_is_flushed_and_small_segments_are_merged(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tidy, "TAIL_BYTES", 1000)
    _, revision = new_table()
    for number in range(60):
        append(revision, f"f{number:02}")
        if number % 3 == 0:
            commit(deleting(revision, f"f{number // 2:02}", [number]))
    root = revision.head()
    assert len(root.segments) < 20
    assert len(root.tail) < 6
    assert locations(revision) == {f"f{number:02}" for number in range(60)}
    check(revision)


def test_removed_files_leave_with_a_merge(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tidy, "TAIL_BYTES", 0)
    _, revision = new_table()
    for number in range(5):
        append(revision, f"f{number}")
    commit(replacing(revision, ["f0", "f1"], "f01"))
    assert revision.head().removed == ("f0", "f1")
    for number in range(5, 12):
        append(revision, f"f{number}")
    assert revision.head().removed == ()
    check(revision)


def test_a_long_overlay_is_folded_into_its_segment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tidy, "TAIL_BYTES", 0)
    monkeypatch.setattr(tidy, "OVERLAY_BYTES", 20)
    _, revision = new_table()
    append(revision, "a", "b")
    append(revision, "c")
    commit(replacing(revision, ["b"], "b2"))
    commit(deleting(revision, "a", range(0, 100, 7)))
    before = revision.head()
    assert (before.removed, set(before.deletes)) == (("b",), {"a"})
    root = append(revision, "d")
    assert (root.removed, root.deletes, root.row_count) == ((), {}, before.row_count + 100)
    check(revision)


def test_parts_show_what_changed_since_a_segment_was_written(monkeypatch: pytest.MonkeyPatch):
    _, revision = new_table()
    append(revision, "a", "b", "c")
    monkeypatch.setattr(tidy, "TAIL_BYTES", 0)
    append(revision, "d")
    commit(replacing(revision, ["b"], "b2"))
    commit(deleting(revision, "c", [7]))
    append(revision, "e")
    snapshot = Snapshot(revision.store, revision.keys, revision.head())
    first, *_, last = snapshot.parts()
    assert first.is_removed is not None
    assert first.is_removed.tolist() == [False, True, False]
    assert (first.deletes_of(0), first.deletes_of(2)) == (None, bitmaps.pack([7]))
    assert last.segment.locations.to_pylist() == ["e"]
    assert [part.segment.file_count for part in snapshot.parts([0])] == [3, 1]


SPEC = (PartitionFieldRecord(field=1, transform="bucket", width=4, hash="murmur3"),)


def test_another_partitioning_has_an_id_of_its_own():
    _, revision = new_table()
    append(revision, "a")
    evolve = Transaction(revision, revision.head(), Operation.EVOLVE)
    evolve.set_definition(replace(DEFINITION, partition_by=SPEC))
    with pytest.raises(InvalidRequest, match="id of a known one"):
        commit(evolve)


def test_old_files_keep_their_spec_in_segments_of_their_own(monkeypatch: pytest.MonkeyPatch):
    _, revision = new_table()
    append(revision, "a")
    assert revision.head().format == 1
    evolve = Transaction(revision, revision.head(), Operation.EVOLVE)
    evolve.set_definition(with_spec(DEFINITION, SPEC))
    root = commit(evolve)
    assert (root.format, root.definition.spec, [ref.spec for ref in root.segments], root.tail) == (3, 1, [0], ())
    with pytest.raises(InvalidRequest, match="another partition spec"):
        append(revision, "b")
    monkeypatch.setattr(tidy, "TAIL_BYTES", 0)
    names = "cdefghijklmnopqrstuv"
    for one in names:
        add = Transaction(revision, revision.head(), Operation.APPEND)
        add.add_file(replace(entry(one), spec=1, partition=(None,)), LAYOUT)
        add.objects[key_of(revision.keys, one)] = one.encode()
        root = commit(add)
    assert {ref.spec for ref in root.segments} == {0, 1}
    assert len(root.segments) < 10
    snapshot = Snapshot(revision.store, revision.keys, root)
    assert {file.location: file.spec for file in snapshot.files()} == {"a": 0, **dict.fromkeys(names, 1)}
    check(revision)


def test_a_rollback_knows_the_specs_since():
    _, revision = new_table()
    append(revision, "a")
    evolve = Transaction(revision, revision.head(), Operation.EVOLVE)
    evolve.set_definition(with_spec(DEFINITION, SPEC))
    commit(evolve)
    back = Transaction(revision, revision.head(), Operation.ROLLBACK)
    back.restore(revision.root(1))
    definition = commit(back).definition
    assert (definition.spec, definition.partition_by) == (0, ())
    assert with_spec(definition, SPEC[:1]).spec == 2


def test_two_writers_flush_one_tail(monkeypatch: pytest.MonkeyPatch):
    _, revision = new_table()
    append(revision, "a")
    append(revision, "b")
    monkeypatch.setattr(tidy, "TAIL_BYTES", 0)
    mine, theirs = appending(revision, "mine"), appending(other_client(revision), "theirs")
    commit(theirs)
    root = commit(mine)
    assert len(root.segments) == 1
    assert [file.location for file in root.tail] == ["theirs", "mine"]
    check(revision)


def test_a_flush_of_files_that_changed_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch):
    _, revision = new_table()
    append(revision, "a")
    theirs = deleting(other_client(revision), "a", [1])
    mine = appending(revision, "b")
    commit(theirs)
    monkeypatch.setattr(tidy, "TAIL_BYTES", 0)
    root = commit(mine)
    assert (len(root.segments), len(root.tail)) == (0, 2)
    check(revision)


def test_a_file_that_is_there_cannot_be_added():
    _, revision = new_table()
    append(revision, "a", "./raw/x.parquet")
    for location in ("a", "./raw/x.parquet"):
        with pytest.raises(InvalidRequest, match=r"in the table|part of the table"):
            append(revision, location)


def test_a_registered_file_in_a_segment_cannot_be_added_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tidy, "TAIL_BYTES", 0)
    _, revision = new_table()
    append(revision, "./raw/x.parquet")
    append(revision, "a")
    with pytest.raises(InvalidRequest, match="part of the table"):
        append(revision, "./raw/x.parquet")


def test_two_registrations_of_one_file_are_not_both_committed():
    _, revision = new_table()
    mine, theirs = appending(revision, "./raw/x"), appending(other_client(revision), "./raw/x")
    commit(theirs)
    with pytest.raises(CommitConflict, match="same location"):
        commit(mine)


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


def test_a_writer_that_keeps_losing_waits_no_longer_than_some_attempts_take():
    _, quick = new_table()
    clock, waited = itertools.count(), list[float]()
    slow = other_client(
        quick, Overtaking(quick, 12), monotonic=lambda: 0.001 * next(clock), sleep=waited.append, chance=lambda: 1.0
    )
    commit(appending(slow, name()))
    assert waited[0] == pytest.approx(0.01)
    assert waited[1:] == pytest.approx([16 * 0.001] * 11)
    check(quick)


class Overtaking(StoreWrapper):
    """A store on which another client commits just before each of the first roots is created."""

    def __init__(self, other: Revision, times: int) -> None:
        super().__init__(other.store)
        self._other, self._left = other, times

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        if request.op is StoreMethod.CREATE and request.keys[0].endswith(".root") and self._left:
            self._left -= 1
            append(self._other, name())
        return call()


def test_a_writer_that_lost_reads_the_head_after_it_waited():
    """Others commit while it waits, and never while it tries: it wins at its second attempt."""
    _, quick = new_table()
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        append(quick, name())

    losing = appending(other_client(quick, sleep=sleep), name())
    append(quick, name())
    assert commit(losing).version == quick.head().version == 3
    assert len(waited) == 1
    check(quick)
