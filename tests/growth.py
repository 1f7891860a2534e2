"""How the work of a piece of code grows with what it is given: a ratio of CPU times, never a time.

A ratio of CPU times says nothing of the machine and little of its load: twice the columns cost twice the CPU time, or
four times. The least of several rounds is taken on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

ROUNDS = 2


def growth(prepare: Callable[[int], Callable[[], object]], small: int, large: int) -> float:
    """How many times as much CPU the work takes at the size `large` as at `small`. `prepare` makes the work of a size,
    and is not measured."""
    prepare(small)()  # what is loaded once
    return _least(prepare, large) / _least(prepare, small)


def _least(prepare: Callable[[int], Callable[[], object]], size: int) -> float:
    times = []
    for _ in range(ROUNDS):
        work = prepare(size)
        begun = process_time()
        work()
        times.append(process_time() - begun)
    return min(times)
