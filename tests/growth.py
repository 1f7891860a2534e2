"""How the work of a piece of code grows with what it is given: a ratio of CPU times, never a time.

A ratio of CPU times says nothing of the machine and little of its load: twice the columns cost twice the CPU time, or
four times. The least of several rounds is taken on both sides, and more are run while the ratio looks too large: a busy
machine makes single rounds long, and never short.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import process_time

ROUNDS = 2
MOST_ROUNDS = 12


def growth(prepare: Callable[[int], Callable[[], object]], small: int, large: int, *, most: float) -> float:
    """How many times as much CPU the work takes at the size `large` as at `small`; `most` is what it may be. `prepare`
    makes the work of a size, and is not measured."""
    prepare(small)()  # what is loaded once
    least = {small: inf, large: inf}
    for number in range(MOST_ROUNDS):
        for size in least:
            least[size] = min(least[size], _cpu_seconds(prepare(size)))
        if number + 1 >= ROUNDS and least[large] < most * least[small]:
            break
    return least[large] / least[small]


def _cpu_seconds(work: Callable[[], object]) -> float:
    begun = process_time()
    work()
    return process_time() - begun
