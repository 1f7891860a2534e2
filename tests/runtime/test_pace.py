from __future__ import annotations

from threading import Thread

import pytest

from underlay.runtime.pace import ITEMS_A_TURN, in_turns, paced


def test_a_thread_that_is_not_paced_has_all_items_at_once():
    items = list(range(10 * ITEMS_A_TURN))
    assert list(in_turns(items)) == [items]


@pytest.mark.parametrize("count", [0, 1, ITEMS_A_TURN, ITEMS_A_TURN + 1, 3 * ITEMS_A_TURN])
def test_a_paced_thread_has_all_items_in_order_and_rests_after_each_turn(count: int):
    rests: list[float] = []
    items = list(range(count))
    with paced(rests.append):
        parts = list(in_turns(items))
    assert [item for part in parts for item in part] == items
    assert max(map(len, parts)) <= ITEMS_A_TURN
    assert len(rests) == (len(parts) if count > ITEMS_A_TURN else 0)
    assert all(0 <= seconds <= 0.01 for seconds in rests)


def test_other_threads_and_later_work_are_not_paced():
    items = list(range(2 * ITEMS_A_TURN))
    found: list[int] = []
    with paced(lambda _: None):
        thread = Thread(target=lambda: found.extend(len(part) for part in in_turns(items)))
        thread.start()
        thread.join()
    assert found == [len(items)]
    assert [len(part) for part in in_turns(items)] == [len(items)]
