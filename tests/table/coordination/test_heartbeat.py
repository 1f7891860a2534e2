"""The thread that renews: when it does so, when it gives up, when there is none."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.table.coordination.owners import JOB, opened, take
from tests.table.entries import new_table
from underlay.errors import Inconsistent, Unavailable, UnderlayError
from underlay.store.local import LocalStore
from underlay.store.testing.faulty import Fault, FaultyStore
from underlay.table.coordination.heartbeat import HEARTBEAT, Heartbeat
from underlay.table.coordination.intent import decode_intent, list_intents

TTL = 60.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Thing:
    """Something held, which counts its renewals."""

    ttl_seconds = TTL

    def __init__(self, answer: Callable[[], bool] = lambda: True) -> None:
        self.answer = answer
        self.renewal_count = 0
        self.is_lost = False
        self.renewed = Event()

    def renew(self) -> bool:
        self.renewal_count += 1
        self.renewed.set()
        return self.answer()

    def lose(self) -> None:
        self.is_lost = True


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def heartbeat(clock: Clock) -> Heartbeat:
    return Heartbeat(clock, start=lambda run: None)


def pass_time(clock: Clock, heartbeat: Heartbeat, seconds: float) -> None:
    end = clock.now + seconds
    while clock.now < end:
        clock.now += 1
        heartbeat.beat()


def raising(error: UnderlayError) -> Callable[[], bool]:
    def answer() -> bool:
        raise error

    return answer


def test_each_is_renewed_three_times_in_its_time_to_live(clock: Clock, heartbeat: Heartbeat):
    thing, other = Thing(), Thing()
    other.ttl_seconds = 600.0
    heartbeat.keep(thing)
    heartbeat.keep(other)
    pass_time(clock, heartbeat, 19)
    assert thing.renewal_count == 0
    pass_time(clock, heartbeat, 581)
    assert (thing.renewal_count, other.renewal_count) == (30, 3)


def test_what_is_dropped_is_renewed_no_more(clock: Clock, heartbeat: Heartbeat):
    thing = Thing()
    heartbeat.keep(thing)
    heartbeat.drop(thing)
    heartbeat.drop(thing)
    pass_time(clock, heartbeat, 100)
    assert (thing.renewal_count, thing.is_lost) == (0, False)


def test_what_is_held_no_more_is_lost_and_dropped(clock: Clock, heartbeat: Heartbeat):
    thing = Thing(lambda: False)
    heartbeat.keep(thing)
    pass_time(clock, heartbeat, 100)
    assert (thing.renewal_count, thing.is_lost) == (1, True)


def test_a_store_that_does_not_answer_is_asked_until_the_time_to_live_is_over(clock: Clock, heartbeat: Heartbeat):
    thing = Thing(raising(Unavailable("down")))
    heartbeat.keep(thing)
    pass_time(clock, heartbeat, TTL - 1)
    assert not thing.is_lost
    pass_time(clock, heartbeat, 10)
    assert thing.is_lost
    assert thing.renewal_count == 9  # after 20 seconds, then every 5


def test_a_store_that_answers_again_in_time_is_forgiven(clock: Clock, heartbeat: Heartbeat):
    thing = Thing(raising(Unavailable("down")))
    heartbeat.keep(thing)
    pass_time(clock, heartbeat, TTL - 6)
    thing.answer = lambda: True
    pass_time(clock, heartbeat, 6)
    thing.answer = raising(Unavailable("down"))
    pass_time(clock, heartbeat, TTL - 10)
    assert not thing.is_lost


def test_another_error_ends_it_at_once_and_nothing_else(clock: Clock, heartbeat: Heartbeat):
    broken, sound = Thing(raising(Inconsistent("another lake"))), Thing()
    heartbeat.keep(broken)
    heartbeat.keep(sound)
    pass_time(clock, heartbeat, 100)
    assert (broken.renewal_count, broken.is_lost) == (1, True)
    assert (sound.renewal_count, sound.is_lost) == (5, False)


def test_a_process_that_slept_past_its_time_to_live_asks_before_it_gives_up(clock: Clock, heartbeat: Heartbeat):
    thing = Thing()
    heartbeat.keep(thing)
    clock.now += 100 * TTL
    heartbeat.beat()
    assert (thing.renewal_count, thing.is_lost) == (1, False)


def test_the_thread_renews_and_is_gone_when_nothing_is_held():
    started: list[Thread] = []

    def start(run: Callable[[], None]) -> Thread:
        started.append(Thread(target=run, daemon=True))
        started[-1].start()
        return started[-1]

    heartbeat = Heartbeat(start=start)
    thing = Thing()
    thing.ttl_seconds = 0.003
    assert started == []
    heartbeat.keep(thing)
    assert thing.renewed.wait(120)
    heartbeat.drop(thing)
    started[0].join(120)
    assert not started[0].is_alive()
    heartbeat.keep(thing)
    assert len(started) == 2
    heartbeat.drop(thing)
    started[1].join(120)
    assert not started[1].is_alive()


def test_a_process_that_holds_nothing_has_no_thread():
    store = new_table()[1].store
    with take(opened(store), heartbeat=HEARTBEAT):
        [thread] = [thread for thread in threading.enumerate() if thread.name == "underlay-heartbeat"]
        assert thread.daemon
    thread.join(120)
    assert not thread.is_alive()


def test_a_renewal_by_the_heartbeat_puts_the_intent(clock: Clock, heartbeat: Heartbeat):
    store = new_table()[1].store
    held = take(opened(store), heartbeat=heartbeat)
    key = held.table.head().revision.keys.intent(JOB)
    store.delete([key])
    pass_time(clock, heartbeat, 20)
    assert decode_intent(store.get(key)[0]).owner == held.intent.owner


def test_a_job_is_lost_when_the_store_is_away_for_its_time_to_live(clock: Clock, heartbeat: Heartbeat):
    is_down = False
    store = FaultyStore(new_table()[1].store, lambda number, request: Fault.LOST_REQUEST if is_down else None)
    held = take(opened(store), heartbeat=heartbeat)
    is_down = True
    pass_time(clock, heartbeat, TTL - 1)
    assert not held.is_lost
    pass_time(clock, heartbeat, 6)
    assert held.is_lost


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_renews_and_releases_nothing(tmp_path: Path):
    store = LocalStore(tmp_path)
    new_table(store)
    held = take(opened(store), heartbeat=HEARTBEAT)
    child = os.fork()
    if child == 0:
        held.release()
        os._exit(1 if HEARTBEAT._kept or held.renew() else 0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list_intents(store, held.table.head().revision.keys)) == 1
    assert held.renew()
    held.release()
