"""Taking, holding and leaving a job."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from msgspec.structs import replace

from tests.table.checker import Checker
from tests.table.coordination.owners import (
    GONE,
    JOB,
    TTL,
    AheadStore,
    LaterStore,
    StoppedStore,
    check_writers,
    files,
    forgetful,
    no_thread,
    opened,
    take,
    write,
)
from tests.table.entries import DEFINITION, memory
from underlay.errors import InvalidRequest, JobTakenOver, LeaseHeld, RevisionClosed, UnderlayError
from underlay.index.keys import RevisionKeys
from underlay.index.operation import Operation
from underlay.store.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.table.catalog.lifecycle import activate, drop, prepare_successor
from underlay.table.coordination.intent import Intent, decode_intent, encode_intent, list_intents
from underlay.table.coordination.job import Job
from underlay.table.time_travel import rollback


def keys(store: Store) -> RevisionKeys:
    return opened(store).head().revision.keys


def standing(store: Store, lock: str = JOB) -> Intent:
    return decode_intent(store.get(keys(store).intent(lock))[0])


def test_who_takes_a_job_stands_in_the_store_and_in_the_root(store: Store):
    held = take(opened(store, "host:7"), note="all of May")
    intent = standing(store)
    assert (intent.job, intent.epoch, intent.note, intent.is_exclusive) == (JOB, 1, "all of May", False)
    assert intent.owner.startswith("host:7:")
    root = opened(store).head().root
    assert (root.fences, root.operation, root.version) == ({JOB: 1}, "job", 1)
    assert held.table.held == (JOB, 1)
    assert not held.is_lost


def test_a_job_that_is_held_is_refused_with_its_holder_and_the_time_to_wait(store: Store):
    take(opened(store, "host:7"))
    with pytest.raises(LeaseHeld, match=r"host:7:\w{16} holds the job nightly.* free in \d+ s; take_over=True") as held:
        take(opened(store, "host:8"))
    seconds = int(re.findall(r"free in (\d+) s", str(held.value))[0])
    assert 0 < seconds <= TTL + 1
    assert standing(store).owner.startswith("host:7:")


def test_two_takings_of_one_process_are_two_owners(store: Store):
    table = opened(store)
    take(table)
    with pytest.raises(LeaseHeld):
        take(table)


def test_a_released_job_is_free_at_once(store: Store):
    with take(opened(store, "a")) as first:
        write(first, "a-1-x")
    assert list_intents(store, keys(store)) == []
    second = take(opened(store, "b"))
    assert second.intent.epoch == 2
    write(second, "b-2-x")
    with pytest.raises(JobTakenOver):
        write(forgetful(first), "a-1-y")
    check_writers(store)


def test_an_expired_job_is_taken_over_and_its_holder_can_commit_no_more(store: Store):
    first = take(opened(store, "a"))
    write(first, "a-1-x")
    second = take(opened(LaterStore(store), "b"))
    write(second, "b-2-x")
    with pytest.raises(JobTakenOver, match="expected epoch 1, found epoch 2"):
        write(first, "a-1-y")
    assert not first.renew()
    assert first.is_lost
    assert not second.is_lost
    assert sorted(files(store)) == ["a-1-x", "b-2-x"]
    assert standing(store).owner == second.intent.owner


def test_a_living_job_is_taken_over_when_asked_for(store: Store):
    first = take(opened(store, "a"))
    second = take(opened(store, "b"), take_over=True)
    assert second.intent.epoch == 2
    first.release()
    assert standing(store).owner == second.intent.owner


def test_a_free_job_is_taken_over_too(store: Store):
    assert take(opened(store), take_over=True).intent.epoch == 1


def test_the_clock_of_the_machine_does_not_matter(store: Store):
    take(opened(store, "a", now_us=lambda: 0))
    with pytest.raises(LeaseHeld):
        take(opened(store, "b", now_us=lambda: 10**18))


@pytest.mark.parametrize(("late_seconds", "is_free"), [(TTL - 2, False), (TTL + 2, True)])
def test_a_job_is_free_when_its_time_to_live_is_over(store: Store, late_seconds: float, is_free: bool):
    take(opened(store, "a"))
    put = store.get(keys(store).intent(JOB))[1].modified
    later = opened(StoppedStore(store, put + timedelta(seconds=late_seconds)), "b")
    if is_free:
        assert take(later).intent.epoch == 2
    else:
        with pytest.raises(LeaseHeld):
            take(later)


def test_a_renewal_makes_it_live_on(store: Store):
    held = take(opened(store, "a"))
    key = keys(store).intent(JOB)
    before = store.get(key)[1].modified
    assert held.renew()
    assert store.get(key)[1].modified >= before
    assert standing(store).renewed_us > standing(store).epoch
    assert standing(store).started_us == held.intent.started_us


def test_the_start_of_a_job_is_by_the_clock_of_the_store(store: Store):
    before = store.now()
    held = take(opened(store, now_us=lambda: 5))
    held.renew()
    [seen] = list_intents(store, keys(store))
    assert seen.record.started_us is not None
    assert before.timestamp() - 1 <= seen.record.started_us / 1e6 <= seen.modified.timestamp()


def test_what_a_job_costs(store: Store):
    counting = CountingStore(store)
    table = opened(counting)
    table.head()
    counting.reset()
    held = take(table)
    assert counting.request_count() == 6  # one of them sees that the base of its commit is still there
    counting.reset()
    held.renew()
    assert counting.request_count() == 2
    counting.reset()
    held.release()
    assert counting.request_count() == 2


def test_another_ones_late_intent_does_not_end_a_job(store: Store):
    held = take(opened(store, "a"))
    key = keys(store).intent(JOB)
    store.put(key, encode_intent(replace(held.intent, owner="late")))
    assert held.renew()
    assert standing(store).owner == held.intent.owner
    store.delete([key])
    assert held.renew()
    assert standing(store).owner == held.intent.owner
    store.put(key, encode_intent(replace(held.intent, owner="late")))
    held.release()
    assert list_intents(store, keys(store)) == []


def test_release_leaves_the_intent_of_who_is_about_to_take_over(store: Store):
    held = take(opened(store, "a"))
    store.put(keys(store).intent(JOB), encode_intent(replace(held.intent, owner="next", epoch=2)))
    held.release()
    assert standing(store).owner == "next"


def test_of_sixteen_threads_one_gets_the_job(store: Store):
    at_once = Barrier(16)

    def try_it(number: int) -> Job | None:
        table = opened(store, f"t{number}")
        at_once.wait()
        try:
            return take(table)
        except LeaseHeld:
            return None

    with ThreadPoolExecutor(16) as pool:
        [held] = [held for held in pool.map(try_it, range(16)) if held is not None]
    assert standing(store).owner == held.intent.owner
    write(held, "x-1-x")
    Checker(store).check()


def test_of_sixteen_threads_one_gets_an_expired_job(store: Store):
    take(opened(store, GONE))
    at_once = Barrier(16)

    def try_it(number: int) -> Job | None:
        table = opened(AheadStore(store), f"t{number}")
        at_once.wait()
        try:
            return take(table)
        except LeaseHeld:
            return None

    with ThreadPoolExecutor(16) as pool:
        [held] = [held for held in pool.map(try_it, range(16)) if held is not None]
    assert held.intent.epoch == 2
    assert held.renew()
    assert standing(store).owner == held.intent.owner


def test_exclusive_jobs_wait_for_each_other_whatever_they_are_called(store: Store):
    first = take(opened(store, "a"), "ingest", exclusive=True)
    assert (standing(store, "revision").job, opened(store).head().root.fences) == ("ingest", {"revision": 1})
    with pytest.raises(LeaseHeld, match="holds the exclusive job ingest"):
        take(opened(store, "b"), "compact", exclusive=True)
    second = take(opened(LaterStore(store), "b"), "compact", exclusive=True)
    write(second, "b")
    with pytest.raises(JobTakenOver):
        write(first, "a")


def test_jobs_that_are_not_exclusive_do_not_wait_for_other_jobs(store: Store):
    write(take(opened(store, "a"), "ingest", exclusive=True), "a")
    write(take(opened(store, "b"), "ingest"), "b")
    write(take(opened(store, "c"), "compact"), "c")
    assert sorted(files(store)) == ["a", "b", "c"]


@pytest.mark.parametrize("job", ["", "a/b", ".", "..", ".tmp-x", "ä", "x" * 101, "a b", "-a", "revision"])
def test_a_name_that_is_no_key_is_refused(store: Store, job: str):
    with pytest.raises(InvalidRequest):
        take(opened(store), job)


@pytest.mark.parametrize("seconds", [0, -1, 0.5, float("inf"), float("nan"), True, "60", 10**9])
def test_a_time_to_live_has_bounds(store: Store, seconds: object):
    with pytest.raises(InvalidRequest):
        take(opened(store), ttl_seconds=seconds)


def test_a_job_is_not_taken_under_another_job(store: Store):
    held = take(opened(store))
    with pytest.raises(InvalidRequest, match="already holds a job"):
        take(held.table, "another")


def test_a_released_job_begins_nothing_more(store: Store):
    held = take(opened(store))
    head = held.table.head()
    held.release()
    with pytest.raises(InvalidRequest, match="the job nightly was released"):
        held.table.begin(head, Operation.APPEND)
    assert opened(store).head().root.version == head.root.version


def test_a_lost_job_commits_until_it_is_taken_over_or_released(store: Store):
    held = take(opened(store))
    held.lose()
    write(held, "a-1-x")  # nobody took it
    held.release()
    with pytest.raises(InvalidRequest, match="was released"):
        held.table.begin(held.table.head(), Operation.APPEND)


def test_epochs_never_decrease_over_takeovers_and_rollbacks(store: Store):
    first = take(opened(store, "a"))
    write(first, "a-1-x")
    second = take(opened(LaterStore(store), "b"))
    write(second, "b-2-x")
    revision = opened(store).head().revision
    assert rollback(revision, 1).fences == {JOB: 2}
    assert rollback(revision, 0, second.table.held).fences == {JOB: 2}
    with pytest.raises(JobTakenOver):
        rollback(revision, 1, first.table.held)
    with pytest.raises(JobTakenOver):
        write(first, "a-1-y")
    write(second, "b-2-y")
    assert take(opened(LaterStore(store), "c")).intent.epoch == 3
    Checker(store).check()


@pytest.mark.parametrize("end", ["activate", "drop"])
def test_a_held_table_does_not_follow_to_another_revision(store: Store, end: str):
    held = take(opened(store))
    lake = opened(store).lake
    old = opened(store).head().revision
    if end == "drop":
        drop(lake, "taxi.trips")
    else:
        activate(lake, "taxi.trips", old, old.head(), prepare_successor(lake, "taxi.trips", DEFINITION))
    with pytest.raises(RevisionClosed, match="under the job nightly"):
        write(held, "x")
    assert not held.renew()
    assert held.is_lost
    assert list_intents(store, old.keys) == []


def test_a_job_begun_while_the_revision_is_replaced_is_taken_in_the_new_one(store: Store):
    table = opened(store, "a")
    table.head()
    lake = opened(store).lake
    old = opened(store).head().revision
    activate(lake, "taxi.trips", old, old.head(), prepare_successor(lake, "taxi.trips", DEFINITION))
    held = take(table)
    write(held, "x")
    assert files(store) == ["x"]
    assert list_intents(store, old.keys) == []


def test_intents_are_alive_within_their_time_to_live(store: Store):
    take(opened(store, "a"), "one", ttl_seconds=60)
    take(opened(store, "b"), "two", ttl_seconds=600)
    assert list_intents(memory(), keys(store)) == []
    later = list_intents(LaterStore(store, 100), keys(store))
    assert [(seen.found.name, seen.is_alive) for seen in later] == [("one", False), ("two", True)]


def test_the_key_of_an_intent_is_taken_apart_again(store: Store):
    where = keys(store)
    assert where.job_of(where.intent("a.b")) == "a.b"
    assert where.job_of(where.lease("a.b")) is None
    assert where.reader_of(where.lease("a.b")) == "a.b"
    assert where.job_of(f"{where.intents}/a/b") is None


class Mirror:
    """A registry that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given, **named: None

    def saw_job(self, keys: RevisionKeys, revision: str, job: str) -> None:
        assert keys.folder.endswith(revision)
        self.told.append(job)


def test_the_registry_is_told_of_taking_renewing_and_releasing(store: Store):
    mirror = Mirror()
    held = take(opened(store, registry=mirror))
    held.renew()
    held.release()
    held.release()
    assert mirror.told == [JOB] * 3


def test_the_registry_is_not_told_that_a_job_is_gone_which_another_has(store: Store):
    mirror = Mirror()
    held = take(opened(store, registry=mirror))
    take(opened(store, "b"), take_over=True)
    held.release()
    assert mirror.told == [JOB]


def test_a_job_that_is_over_is_renewed_no_more(store: Store):
    heartbeat = no_thread()
    held = take(opened(store), heartbeat=heartbeat)
    held.release()
    assert not held.renew()
    assert not held.is_lost
    with pytest.raises(UnderlayError):
        store.get(keys(store).intent(JOB))
