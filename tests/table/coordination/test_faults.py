"""Every fault at each request of taking, renewing and releasing: nothing stays stuck, and no two holders commit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.table.checker import Checker
from tests.table.coordination.owners import (
    JOB,
    AheadStore,
    LaterStore,
    check_writers,
    expired,
    files,
    forgetful,
    free,
    opened,
    take,
    write,
)
from underlay.errors import JobTakenOver, LeaseHeld, Unavailable, UnderlayError
from underlay.store.store import Store
from underlay.store.testing.faulty import Crashed, Fault, FaultyStore, at_every_request
from underlay.table.coordination.intent import list_intents
from underlay.table.coordination.job import Job


def work(store: Store, taken: list[Job]) -> None:
    """Take the job, write, renew, release."""
    held = take(opened(AheadStore(store), "a"))
    taken.append(held)
    write(held, f"a-{held.intent.epoch}-x")
    held.renew()
    held.release()


@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name)
@pytest.mark.parametrize("make", [free, expired], ids=lambda make: make.__name__)
def test_a_fault_at_any_request(make: Callable[[], Store], fault: Fault):
    for store in at_every_request(make, [fault]):
        taken: list[Job] = []
        outcome = attempt(store, taken)
        inner = store.inner
        Checker(inner).check()
        later = LaterStore(AheadStore(inner))
        next_one = take(opened(later, "b"))
        write(next_one, f"b-{next_one.intent.epoch}-x")
        store.release()
        if taken and not store.is_crashed:
            with pytest.raises((JobTakenOver, Unavailable, Crashed)):
                write(forgetful(taken[0]), f"a-{taken[0].intent.epoch}-late")
            with suppress(Unavailable, Crashed):
                assert not taken[0].renew()
        assert next_one.renew()
        write(next_one, f"b-{next_one.intent.epoch}-y")
        next_one.release()
        assert list_intents(inner, opened(inner).head().revision.keys) == []
        check_writers(inner)
        Checker(inner).check()
        if outcome is None:
            assert any(name.startswith("a-") for name in files(inner)), "acknowledged and not there"


@pytest.mark.parametrize("make", [free, expired], ids=lambda make: make.__name__)
@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE, Fault.OWN_REFUSAL])
def test_a_taking_that_failed_can_be_tried_again_at_once(make: Callable[[], Store], fault: Fault):
    for store in at_every_request(make, [fault]):
        table = opened(AheadStore(store), "a")
        try:
            held = take(table)
        except LeaseHeld:
            pytest.fail("its own intent stood in its way")
        except UnderlayError:
            held = take(table)
        assert opened(store.inner).head().root.fences == {JOB: held.intent.epoch}


def test_a_release_that_fails_is_no_failure_of_the_job():
    store = FaultyStore(free(), lambda number, request: Fault.LOST_REQUEST if is_down else None)
    is_down = False
    with take(opened(store)) as held:
        write(held, "a-1-x")
        is_down = True
    is_down = False
    assert [seen.record.job for seen in list_intents(store, opened(store).head().revision.keys)] == [JOB]


def attempt(store: FaultyStore, taken: list[Job]) -> BaseException | None:
    """What ended the work early."""
    try:
        work(store, taken)
    except (UnderlayError, Crashed) as error:
        return error
    return None
