"""Commits that race: which of them are rebased, done again or refused."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.table.commit.checks import check, locations, with_column, with_schema
from tests.table.entries import (
    DEFINITION,
    append,
    appending,
    deleting,
    entry,
    name,
    new_table,
    other_client,
    replacing,
)
from underlay.errors import (
    CommitConflict,
    JobTakenOver,
)
from underlay.index.operation import Operation
from underlay.index.root import Root, decode_root
from underlay.schema.record import FieldRecord, SchemaRecord
from underlay.store.testing.wrapper import Request, StoreMethod, StoreWrapper
from underlay.table.commit.commit import commit
from underlay.table.commit.conflicts import ReadSet
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import Snapshot

T = TypeVar("T")


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


def test_a_commit_that_lost_to_many_holds_one_of_their_roots_at_a_time():
    """A root has a whole tail, and a compaction may take so long that thousands of commits come first."""
    _, revision = new_table()
    slow = appending(other_client(revision), "slow")
    for number in range(200):
        append(revision, f"file{number}")
    stored = bytes(revision.store.get(revision.keys.root(60))[0])
    tracemalloc.start()
    try:
        held = decode_root(stored)
        root_bytes = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        commit(slow)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(held.tail) > 10
    assert peak_bytes < 30 * root_bytes
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


def test_two_registrations_of_one_file_are_not_both_committed():
    _, revision = new_table()
    mine, theirs = appending(revision, "./raw/x"), appending(other_client(revision), "./raw/x")
    commit(theirs)
    with pytest.raises(CommitConflict, match="same location"):
        commit(mine)


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
