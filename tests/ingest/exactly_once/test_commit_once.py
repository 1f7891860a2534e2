"""A source's rows come once: known, changed, failed and claimed sources; crashes; commits of unknown fate."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace

from tests.ingest.worlds import (
    begin,
    ids_in,
    ingest,
    memory,
    new_table,
    opened,
    raw_of,
    read,
    rows_in,
    work,
    write_source,
)
from tests.table.coordination.owners import LaterStore
from underlay.change.rows.append import append
from underlay.change.rows.staged import stage, staging_for
from underlay.errors import ClaimLost, CommitConflict, CommitUnknown, InvalidRequest
from underlay.index.operation import Operation
from underlay.index.root import SourceRecord
from underlay.ingest.exactly_once.claim import claim
from underlay.ingest.exactly_once.commit_claimed import SourceOutcome, commit_claimed, run_of
from underlay.ingest.exactly_once.ledger import SourceChoice, classify, sort_out
from underlay.ingest.exactly_once.rejected_table import commit_rejected, open_rejected, recorded, reject
from underlay.ingest.source.find import find_sources
from underlay.ingest.source.source import Source
from underlay.store.store import Store
from underlay.store.testing.faulty import Crashed, Fault, FaultyStore, on
from underlay.store.testing.wrapper import Request, StoreMethod
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.open_table import Head, OpenTable
from underlay.table.time_travel import rollback


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three sources with two rows each, one of which is no number in the second."""
    place = tmp_path / "in"
    place.mkdir()
    for number, lines in enumerate([[1, 2], [3, "bad 4"], [5, 6]]):
        write_source(place, number, lines)
    return place


def rejected(store: Store) -> list[tuple[str, object, object]]:
    rows = rows_in(opened(store, "taxi.trips_rejected"))
    return sorted((Path(str(row["source"])).name, row["line"], raw_of(row)) for row in rows)


def test_a_second_run_adds_nothing_and_commits_nothing(folder: Path):
    table = new_table(memory())
    (done,) = ingest(table, [f"{folder}/*.txt"])
    assert (done.row_count, done.is_repeat, ids_in(table)) == (5, False, [1, 2, 3, 5, 6])
    root = table.head().root
    assert (root.operation, run_of(root) is not None) == ("ingest", True)
    counts = {"sources": 3, "sources_failed": 0, "rows_rejected": 1, "source_bytes": 16, "rows_added": 5}
    assert counts.items() <= root.counts.items()
    write_source(folder, 3, [7])
    other = opened(table.lake.store)
    assert [one.row_count for one in ingest(other, [f"{folder}/"])] == [1]
    version = other.head().root.version
    assert ingest(other, [f"{folder}/"]) == []
    assert (ids_in(other), other.head().root.version) == ([1, 2, 3, 5, 6, 7], version)
    assert rejected(table.lake.store) == [("0001.txt", 2, b"bad 4")]
    assert list(table.lake.store.list_objects(table.head().revision.keys.intents)) == []


def test_a_changed_source_is_refused_skipped_or_replaced(folder: Path):
    table = new_table(memory())
    ingest(table, [f"{folder}/*"])
    write_source(folder, 1, ["bad 30", 31, 32])
    assert ingest(table, [f"{folder}/*"]) == []
    assert ingest(table, [f"{folder}/*"], policy="skip") == []
    (done,) = ingest(table, [f"{folder}/*"], policy="replace")
    assert (done.row_count, ids_in(table)) == (2, [1, 2, 5, 6, 31, 32])
    assert table.head().root.counts["sources_replaced"] == 1
    assert rejected(table.lake.store) == [("0001.txt", 1, b"bad 30")]
    write_source(folder, 1, [33])
    ingest(table, [f"{folder}/*"], policy="replace")
    assert (ids_in(table), rejected(table.lake.store)) == ([1, 2, 5, 6, 33], [])


def test_rows_are_not_replaced_in_a_table_that_does_not_say_where_they_came_from(folder: Path):
    table = new_table(memory(), "id bigint not null")
    ingest(table, [f"{folder}/*"])
    write_source(folder, 1, [31])
    with pytest.raises(InvalidRequest, match="_source"):
        ingest(table, [f"{folder}/*"], policy="replace")
    assert ids_in(table) == [1, 2, 3, 5, 6]


def test_a_replacement_that_was_given_up_is_made_later_and_loses_no_row(folder: Path):
    """The claim of the run that died must not make the table forget the old rows."""
    store = memory()
    ingest(new_table(store), [f"{folder}/*"])
    write_source(folder, 0, [10])
    found = find_sources([f"{folder}/*"])
    dead = claim(begin(opened(store)), found, SourceChoice(policy="replace"))
    assert [one.found.uri for one in dead.replaced] == [found[0].uri]
    later = opened(LaterStore(store))
    assert [one.found.uri for one in sort_out(later, later.head(), found).changed] == [found[0].uri]
    ingest(later, [f"{folder}/*"], policy="replace")
    assert ids_in(later) == [3, 5, 6, 10]


def test_a_source_that_cannot_be_read_is_remembered_and_tried_again_when_asked(folder: Path):
    table = new_table(memory())
    found = find_sources([f"{folder}/*"])
    run = begin(table)
    claims = claim(run, found)
    staged, outcomes = work(claims)
    with pytest.raises(InvalidRequest, match="number of staged rows differs from that of the sources"):
        commit_claimed(claims, staged, outcomes[1:])
    for one in claims.found[:2]:  # one version for each, and the third is never settled
        commit_claimed(claims, [], [SourceOutcome(uri=one.uri, error="no header")])
    run.release()
    ledger = sort_out(table, table.head(), found)
    assert [one.record and (one.record.status, one.record.error) for one in ledger.failed] == [
        ("failed", "no header")
    ] * 2
    assert [one.found for one in ledger.takeable] == [found[2]]
    assert [one.found for one in ledger.wanted(SourceChoice(retry_failed=True))] == [found[2], found[0], found[1]]
    write_source(folder, 0, [10])
    ingest(table, [f"{folder}/*"])
    assert ids_in(table) == [5, 6, 10]


def test_whoever_is_at_work_is_waited_for_until_it_is_heard_of_no_more(folder: Path):
    store = memory()
    new_table(store)
    found = find_sources([f"{folder}/*"])
    first = claim(begin(opened(store)), found[:2])
    second = opened(store)
    ledger = sort_out(second, second.head(), found)
    assert ([one.found for one in ledger.claimed], [one.found for one in ledger.new]) == (found[:2], found[2:])
    assert [len(claim(begin(second), found).entries), len(claim(begin(second), found).entries)] == [1, 0]
    later = opened(LaterStore(store))
    taken = claim(begin(later), found)
    assert taken.found == found
    outcomes = [SourceOutcome(uri=one.uri) for one in first.found]
    with pytest.raises(ClaimLost) as lost:
        commit_claimed(first, [], outcomes)
    assert lost.value.uris == tuple(one.uri for one in found[:2])
    with pytest.raises(ClaimLost):  # by the rejected rows
        work(first)
    commit_claimed(taken, *work(taken))
    with pytest.raises(ClaimLost):
        commit_claimed(first, [], outcomes)
    assert ids_in(later) == [1, 2, 3, 5, 6]


def test_a_claim_that_is_taken_over_between_the_look_and_the_commit_is_lost(folder: Path):
    store = memory()
    new_table(store)
    found = find_sources([f"{folder}/*"])
    table = opened(store)
    claims = claim(begin(table), found)
    staged, outcomes = work(claims)
    claims.run.table = Overtaken(table, lambda: claim(begin(opened(LaterStore(store))), found[:1]))
    with pytest.raises(ClaimLost) as lost:
        commit_claimed(claims, staged, outcomes)
    assert (lost.value.uris, ids_in(table)) == ((found[0].uri,), [])


class Overtaken(OpenTable):
    """A table that another process changes just after this one looked at it to commit its sources."""

    def __init__(self, table: OpenTable, overtake: Callable[[], object]) -> None:
        super().__init__(table.lake, table.name)
        self._overtake: Callable[[], object] | None = overtake

    def begin(self, head: Head, operation: Operation) -> Transaction:
        overtake, self._overtake = self._overtake, None
        if overtake is not None:
            overtake()
        return super().begin(head, operation)


def test_old_rows_that_come_between_the_look_and_the_commit_are_replaced_too(folder: Path):
    store = memory()
    table = new_table(store)
    ingest(table, [f"{folder}/*"])
    write_source(folder, 0, [10])
    claims = claim(begin(table), find_sources([f"{folder}/*"]), SourceChoice(policy="replace"))
    staged, outcomes = work(claims)
    late = pa.table({"id": [77, 78], "_source": [claims.found[0].uri, "another"]})
    claims.run.table = Overtaken(table, lambda: append(opened(store), late))
    commit_claimed(claims, staged, outcomes)
    assert ids_in(table) == [3, 5, 6, 10, 78]


def test_a_rollback_takes_claims_and_rows_back_together(folder: Path):
    table = new_table(memory())
    claims = claim(begin(table), find_sources([f"{folder}/*"]))
    staged, outcomes = work(claims)
    rollback(table.head().revision, 0)
    with pytest.raises(ClaimLost):
        commit_claimed(claims, staged, outcomes)
    ingest(table, [f"{folder}/*"])
    rollback(table.head().revision, 0)
    ingest(table, [f"{folder}/*"])
    assert ids_in(table) == [1, 2, 3, 5, 6]


def test_a_commit_of_unknown_fate_can_be_repeated(folder: Path):
    for fault in (Fault.LATE, Fault.LOST_REQUEST):
        store = memory()
        new_table(store)
        claims = claim(begin(opened(store)), find_sources([f"{folder}/*"]))
        staged, outcomes = work(claims)
        faulty = FaultyStore(store, on(StoreMethod.CREATE, fault, key=".root", times=100))
        claims.run.table = opened(faulty)
        with pytest.raises(CommitUnknown):
            commit_claimed(claims, staged, outcomes)
        claims.run.table = opened(store)
        faulty.release()
        again = commit_claimed(claims, staged, outcomes)
        assert again.is_repeat == (fault is Fault.LATE)
        assert commit_claimed(claims, staged, outcomes).is_repeat
        assert ids_in(opened(store)) == [1, 2, 3, 5, 6]


def test_a_crash_at_any_write_leaves_what_the_next_run_completes(folder: Path):
    for crashes in count():
        store = memory()
        new_table(store)
        faulty = FaultyStore(store, crash_after_write(crashes))
        with suppress(Crashed):
            ingest(opened(faulty), [f"{folder}/*"])
        later = opened(LaterStore(store))
        ingest(later, [f"{folder}/*"])
        assert ids_in(later) == [1, 2, 3, 5, 6]
        assert rejected(store) == [("0001.txt", 2, b"bad 4")]
        if not faulty.is_crashed:
            break
    assert crashes > 10


def crash_after_write(number: int) -> Callable[[int, Request], Fault | None]:
    """Death after so many writes and one more."""
    seen = count()

    def plan(_: int, request: Request) -> Fault | None:
        is_write = request.op in (StoreMethod.CREATE, StoreMethod.PUT, StoreMethod.DELETE)
        return Fault.CRASH_AFTER if is_write and next(seen) == number else None

    return plan


def test_the_claims_of_a_run_that_died_are_known_by_its_rows_where_it_had_some():
    found = Source("file:///a", "new", 1)
    rows = SourceRecord("file:///a", "new", 3, "claimed", "gone", 5)
    cases = {
        "known": rows,
        "changed": SourceRecord("file:///a", "old", 3, "claimed", "gone", 5),
        "takeable": SourceRecord("file:///a", "old", 3, "claimed", "gone"),
        "claimed": SourceRecord("file:///a", "new", 3, "claimed", "here", 5),
        "failed": SourceRecord("file:///a", "new", 3, "failed", "gone", 5, "why"),
        "new": SourceRecord("file:///a", "old", 3, "failed", "gone", 0, "why"),
    }
    for kind, record in cases.items():
        ledger = classify([found], {found.uri: record}, {"here"})
        assert [name for name in cases if getattr(ledger, name)] == [kind]


def test_rows_that_do_not_fit_the_table_any_more_are_refused(folder: Path):
    for changes, is_refused in (({"comment": "trips"}, False), ({"key": (1,)}, True)):
        table = new_table(memory())
        claims = claim(begin(table), find_sources([f"{folder}/*"]))
        staged, outcomes = work(claims)
        head = table.head()
        transaction = table.begin(head, Operation.EVOLVE)
        transaction.set_definition(replace(head.root.definition, **changes))
        commit(transaction)
        with pytest.raises(CommitConflict, match="changes key") if is_refused else nullcontext():
            commit_claimed(claims, staged, outcomes)
        assert ids_in(table) == ([] if is_refused else [1, 2, 3, 5, 6])


def test_rejected_rows_that_were_recorded_are_not_added_with_others(folder: Path):
    table = new_table(memory())
    claims = claim(begin(table), find_sources([f"{folder}/*"]))
    tables = [read(found, claims.run.id)[1] for found in claims.found]
    rejects = open_rejected(table)
    before = rejects.head()
    bad = claims.found[1]
    assert recorded(rejects, before, claims.run.id, {bad: 1}) == set()
    assert reject(claims, pa.concat_tables(tables)) is not None
    assert recorded(rejects, rejects.head(), claims.run.id, {bad: 1}) == {bad.uri}
    assert recorded(rejects, rejects.head(), "another run", {bad: 1}) == set()
    staged = [stage(staging_for(before), table.lake.store, lambda: [tables[1]])]
    again = commit_rejected(rejects, before, claims.run.id, {bad: 1}, staged)
    assert again.is_repeat
    twice = [*staged, stage(staging_for(before), table.lake.store, lambda: [tables[1]])]
    with pytest.raises(CommitConflict, match="recorded already"):
        commit_rejected(rejects, before, claims.run.id, {bad: 1, claims.found[0]: 1}, twice)
    with pytest.raises(InvalidRequest, match="number of staged rows differs"):
        commit_rejected(rejects, before, claims.run.id, {bad: 2}, staged)
    assert rejected(table.lake.store) == [("0001.txt", 2, b"bad 4")]
