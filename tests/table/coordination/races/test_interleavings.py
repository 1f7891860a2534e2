"""Two owners of one job, whose requests to the store come in many orders.

One is stopped after each of its requests until the other made some; then it goes on to its end. Other orders by chance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table.checker import Checker
from tests.table.coordination.owners import (
    AheadStore,
    LaterStore,
    check_writers,
    expired,
    free,
    opened,
    take,
    write,
)
from tests.table.coordination.races.turns import Turns, TurnStore
from underlay.errors import JobTakenOver, LeaseHeld
from underlay.store.store import Store
from underlay.table.coordination.intent import list_intents
from underlay.table.coordination.job import Job
from underlay.table.open_table import OpenTable

REQUESTS = range(1, 14)
"""As many as an owner makes when it is alone."""
MEANWHILE = (2, 3, 4, 5, 7, 13)
"""Where the other is stopped: in the middle of taking the job, after it, after writing, at its end."""


_BEFORE_PUT = 3
"""Requests of one who finds an expired job, before it puts its own intent: the head, the intent, the clock."""
START = {"free": (free, False), "expired": (expired, False), "taken over": (free, True)}
"""What there is at first, and whether the second owner takes the job over in any case."""


def work(table: OpenTable, writer: str, take_over: bool, taken: list[Job]) -> str:
    """Take the job, write, renew, release; how far that went."""
    try:
        held = take(table, take_over=take_over)
    except LeaseHeld:
        return "refused"
    taken.append(held)
    try:
        write(held, f"{writer}-{held.intent.epoch}-x")
        held.renew()
    except JobTakenOver:
        return "taken over"
    finally:
        held.release()
    return "done"


def run(start: str, first: int, counts: tuple[int, ...]) -> list[object]:
    """Both owners at work; how far they went."""
    make, second_takes_over = START[start]
    store = make()
    turns = Turns(first, counts)
    taken: list[Job] = []
    programs: list[Callable[[], str]] = []
    for owner, writer in enumerate("ab"):
        table = opened(AheadStore(TurnStore(store, turns, owner)), writer)
        table.head()
        is_over = second_takes_over and owner == 1
        programs.append(lambda table=table, writer=writer, is_over=is_over: work(table, writer, is_over, taken))
    results = turns.run(programs)
    assert set(results) <= {"done", "refused", "taken over"}, results
    assert "done" in results
    if not second_takes_over:
        assert "taken over" not in results
    epochs = [held.intent.epoch for held in taken]
    assert len(set(epochs)) == len(epochs)
    check_writers(store)
    Checker(store).check()
    after = take(opened(LaterStore(AheadStore(store)), "later"))
    write(after, f"later-{after.intent.epoch}-z")
    check_writers(store)
    return results


@pytest.mark.parametrize(("start", "first"), [("free", 0), ("expired", 0), ("taken over", 0), ("taken over", 1)])
def test_wherever_an_owner_is_stopped_no_two_holders_commit(start: str, first: int):
    results = [run(start, first, counts) for counts in itertools.product(REQUESTS, MEANWHILE)]
    assert ["done", "done"] in results
    assert any("refused" in result or "taken over" in result for result in results)


def both_take(counts: tuple[int, ...]) -> tuple[Store, list[object]]:
    """Two who find an expired job and take it; what each got."""
    store = expired()
    turns = Turns(0, counts)
    tables = [opened(AheadStore(TurnStore(store, turns, owner)), "ab"[owner]) for owner in range(2)]
    for table in tables:
        table.head()
    return store, turns.run([lambda table=table: take(table) for table in tables])


def test_who_took_a_job_puts_its_intent_again_after_another_replaced_it():
    store, (winner, loser) = both_take((_BEFORE_PUT, _BEFORE_PUT, 1, 1))
    assert isinstance(winner, Job)
    assert isinstance(loser, LeaseHeld)
    [seen] = list_intents(store, opened(store).head().revision.keys)
    assert seen.record.owner == winner.intent.owner


def test_who_replaced_the_intent_of_a_holder_leaves_its_own_so_that_the_job_does_not_look_free():
    store, (loser, winner) = both_take((_BEFORE_PUT, 100))
    assert isinstance(winner, Job)
    assert isinstance(loser, LeaseHeld)
    with pytest.raises(LeaseHeld):
        take(opened(AheadStore(store), "c"))
    write(winner, f"b-{winner.intent.epoch}-x")


@given(
    start=st.sampled_from(list(START)),
    first=st.integers(0, 1),
    counts=st.lists(st.integers(1, 6), max_size=12).map(tuple),
)
def test_no_order_lets_two_holders_commit(start: str, first: int, counts: tuple[int, ...]):
    run(start, first, counts)
