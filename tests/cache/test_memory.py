"""The memory cache holds what it may, loads once, and forgets what it should."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underlay.cache.memory import MemoryCache
from underlay.errors import Unavailable


def of(text: str) -> Callable[[], str]:
    return lambda: text


def ask(cache: MemoryCache, name: str, size: int = 10) -> str:
    return cache.get((name,), of(name * size), len)


def holds(cache: MemoryCache, name: str) -> bool:
    """Whether the value is there; asking makes it the most recent."""
    before = cache.stats().hits
    ask(cache, name)
    return cache.stats().hits > before


def wait_until_missed(cache: MemoryCache, count: int) -> None:
    """Returns when `count` askers are past the look-up."""
    while cache.stats().misses < count:
        os.sched_yield()


def test_second_asker_gets_the_first_ones_value() -> None:
    cache = MemoryCache(100)
    first = cache.get(("a",), lambda: ["value"], len)
    assert cache.get(("a",), lambda: ["another"], len) is first
    stats = cache.stats()
    assert (stats.hits, stats.misses, stats.loads, stats.size_bytes, stats.entry_count) == (1, 1, 1, 1, 1)


def test_least_recently_used_goes_first() -> None:
    cache = MemoryCache(30)
    for name in ("a", "b", "c", "a", "d"):
        ask(cache, name)
    assert cache.stats().evictions == 1
    assert [holds(cache, name) for name in ("a", "c", "d", "b")] == [True, True, True, False]


def test_a_value_above_the_bound_is_returned_and_not_kept() -> None:
    cache = MemoryCache(30)
    ask(cache, "a")
    assert len(ask(cache, "b", 31)) == 31
    assert cache.stats().entry_count == 1
    assert holds(cache, "a")


def test_a_value_that_grew_pushes_others_out() -> None:
    cache = MemoryCache(30)
    ask(cache, "a")
    ask(cache, "b")
    cache.reweigh(("b",), 25)
    assert (cache.stats().size_bytes, cache.stats().entry_count) == (25, 1)
    cache.reweigh(("b",), 31)
    assert (cache.stats().size_bytes, cache.stats().entry_count) == (0, 0)
    cache.reweigh(("never seen",), 5)
    assert cache.stats().size_bytes == 0


def test_a_lower_bound_evicts_at_once() -> None:
    cache = MemoryCache(30)
    for name in ("a", "b", "c"):
        ask(cache, name)
    cache.set_bound(10)
    assert (cache.stats().size_bytes, cache.stats().bound_bytes) == (10, 10)
    assert holds(cache, "c")


def test_a_failed_load_is_not_kept() -> None:
    cache = MemoryCache(30)

    def fail() -> str:
        raise Unavailable("no network")

    with pytest.raises(Unavailable):
        cache.get(("a",), fail, len)
    assert cache.get(("a",), of("value"), len) == "value"


def test_many_who_ask_at_once_wait_for_one_load() -> None:
    cache, askers = MemoryCache(100), 8
    loads = []

    def load() -> list[int]:
        wait_until_missed(cache, askers)
        loads.append(1)
        return [1]

    barrier = Barrier(askers)

    def asker() -> list[int]:
        barrier.wait()
        return cache.get(("a",), load, len)

    with ThreadPoolExecutor(askers) as pool:
        found = [future.result() for future in [pool.submit(asker) for _ in range(askers)]]
    assert len(loads) == 1
    assert all(value is found[0] for value in found)
    assert (cache.stats().misses, cache.stats().loads) == (askers, 1)


def test_a_failed_load_is_raised_to_all_who_wait_and_the_next_loads_again() -> None:
    cache, askers = MemoryCache(100), 4

    def fail() -> str:
        wait_until_missed(cache, askers)
        raise Unavailable("no network")

    with ThreadPoolExecutor(askers) as pool:
        futures = [pool.submit(cache.get, ("a",), fail, len) for _ in range(askers)]
        assert all(isinstance(future.exception(), Unavailable) for future in futures)
    assert cache.stats().loads == 1
    assert ask(cache, "a")


def test_those_who_wait_for_an_interrupted_load_load_for_themselves() -> None:
    cache = MemoryCache(100)

    def interrupted() -> str:
        wait_until_missed(cache, 2)
        raise KeyboardInterrupt

    started = Event()

    def first() -> str:
        started.set()
        return cache.get(("a",), interrupted, len)

    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(first)
        started.wait()
        wait_until_missed(cache, 1)
        follower = pool.submit(cache.get, ("a",), of("value"), len)
        assert isinstance(leader.exception(), KeyboardInterrupt)
        assert follower.result() == "value"


def test_loads_of_different_keys_do_not_wait_for_each_other() -> None:
    cache = MemoryCache(100)
    barrier = Barrier(2, timeout=240)

    def load() -> str:
        barrier.wait()
        return "value"

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(cache.get, (name,), load, len) for name in ("a", "b")]
        assert [future.result() for future in futures] == ["value", "value"]


def test_a_load_may_ask_for_another_key() -> None:
    cache = MemoryCache(100)
    assert cache.get(("a",), lambda: ask(cache, "b"), len) == "b" * 10
    assert cache.stats().entry_count == 2


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 40)), max_size=40))
def test_the_bound_holds_and_sizes_add_up(asked: list[tuple[str, int]]) -> None:
    cache = MemoryCache(60)
    kept: dict[str, int] = {}
    for name, size in asked:
        value = cache.get((name,), of("x" * size), len)
        kept[name] = len(value)
        stats = cache.stats()
        assert stats.size_bytes <= 60
    found = [name for name in kept if holds_silently(cache, name)]
    assert cache.stats().size_bytes == sum(kept[name] for name in found)


def holds_silently(cache: MemoryCache, name: str) -> bool:
    """Whether the value is there, without keeping it when it is not."""
    try:
        cache.get((name,), refuse, len)
    except Unavailable:
        return False
    return True


def refuse() -> str:
    raise Unavailable("must not be loaded")


def test_many_threads_keep_the_bound() -> None:
    cache = MemoryCache(100)

    def work(seed: int) -> bool:
        names = [chr(97 + (seed * 7 + i * i) % 20) for i in range(300)]
        return all(ask(cache, name) == name * 10 and cache.stats().size_bytes <= 100 for name in names)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
    stats = cache.stats()
    assert stats.hits + stats.misses == 2400
    assert stats.size_bytes == 10 * stats.entry_count


def test_a_forked_child_starts_empty_even_when_a_lock_was_held() -> None:
    cache = MemoryCache(100)
    ask(cache, "a")
    with cache._lock, warnings.catch_warnings():
        # Python 3.12 warns of a fork beside threads, which is what this is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if child == 0:
            is_fresh = cache.stats().entry_count == 0 and ask(cache, "b") == "b" * 10
            os._exit(0 if is_fresh else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert holds(cache, "a")


def test_values_of_an_owner_that_is_forgotten_are_dropped_with_the_next_load():
    cache = MemoryCache(1000)
    first, second = object(), object()
    cache.get(("kind", first, "a"), lambda: "a", lambda _: 100)
    cache.get(("kind", second, "a"), lambda: "b", lambda _: 10)
    cache.forget(first)
    cache.get(("kind", second, "b"), lambda: "c", lambda _: 1)
    assert (cache.stats().entry_count, cache.stats().size_bytes) == (2, 11)
    cache.forget(second)
    cache.drop_forgotten()
    assert (cache.stats().entry_count, cache.stats().size_bytes) == (0, 0)
    assert cache.get(("kind", second, "a"), lambda: "again", lambda _: 10) == "again"
