"""Splits a background thread's long work into short turns, with rests that leave the interpreter to other threads.

A thread that computes in Python holds the interpreter for milliseconds at a time, while others need it for much less.
Work that can pause goes through `in_turns`; it rests only in a thread that is `paced`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import local
from time import thread_time
from typing import TypeVar

T = TypeVar("T")
ITEMS_A_TURN = 50
"""A few tenths of a millisecond of work."""
_RESTS = 8.0
"""A rest is this many times as long as the turn: others wait for at most a ninth of their time."""
_LONGEST_REST_SECONDS = 0.02

_thread = local()


@contextmanager
def paced(rest: Callable[[float], object]) -> Iterator[None]:
    """Have this thread rest between turns. `rest` is given seconds, and returns at once when somebody waits."""
    _thread.rest = rest
    try:
        yield
    finally:
        _thread.rest = None


def in_turns(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """All items at once; in a paced thread some at a time, with a rest after each."""
    rest: Callable[[float], object] | None = getattr(_thread, "rest", None)
    if rest is None or len(items) <= ITEMS_A_TURN:
        yield items
        return
    for begin in range(0, len(items), ITEMS_A_TURN):
        began = thread_time()
        yield items[begin : begin + ITEMS_A_TURN]
        rest(min(_RESTS * (thread_time() - began), _LONGEST_REST_SECONDS))
