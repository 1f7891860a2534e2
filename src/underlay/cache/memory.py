"""A memory cache bounded by bytes; evicts the least recently used entry first.

A thread that asks for a key that another thread is loading waits for that load. Keys name immutable things (store, key,
checksum or etag), so nothing is ever stale.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar, cast

from underlay.runtime.fork import start_afresh_after_fork

T = TypeVar("T")

Key = tuple[Hashable, ...]
"""Which thing: its kind, the store's URL, the object's key, and its etag or checksum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStats:
    """What a cache has done so far, and what it holds."""

    hits: int = 0
    misses: int = 0
    """Calls that did not find the value, including those that waited for another thread's load."""
    loads: int = 0
    evictions: int = 0
    entry_count: int = 0
    size_bytes: int = 0
    bound_bytes: int = 0


@dataclass(slots=True)
class _Entry:
    value: object
    weight: int


class _Abandoned(BaseException):
    """A load was interrupted for a reason of its own thread only, so waiting threads load for themselves."""


class MemoryCache:
    """At most `bound_bytes` of values. Safe for many threads; a forked child starts with an empty one."""

    def __init__(self, bound_bytes: int) -> None:
        self._bound_bytes = bound_bytes
        self.start_afresh()
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Hold nothing and count from zero, as after a fork. No other thread may use the cache meanwhile."""
        self._lock = Lock()
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._flights: dict[Key, Future[object]] = {}
        self._forgotten: deque[object] = deque()
        self._size_bytes = self._hits = self._misses = self._loads = self._evictions = 0

    def get(self, key: Key, load: Callable[[], T], weigh: Callable[[T], int]) -> T:
        """The value of `key`, from `load` unless it is here.

        The error of a load is raised in all threads that wait for it, and the next call loads again. A value that
        weighs more than the bound is returned and not kept. A `load` may ask for other keys, not for its own.
        """
        while True:
            with self._lock:
                entry = self._entries.get(key)
                if entry is not None:
                    self._entries.move_to_end(key)
                    self._hits += 1
                    return cast("T", entry.value)
                self._misses += 1
                flight = self._flights.get(key)
                is_mine = flight is None
                if flight is None:
                    flight = self._flights[key] = Future()
                    self._loads += 1
            if is_mine:
                return self._load(key, flight, load, weigh)
            try:
                return cast("T", flight.result())
            except _Abandoned:
                continue

    def reweigh(self, key: Key, weight: int) -> None:
        """Count `key`, if it is here, with this weight from now on: its value has grown since it was loaded."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.weight != weight:
                self._size_bytes += weight - entry.weight
                entry.weight = weight
                self._make_room(key)

    def forget(self, owner: object) -> None:
        """Drop every value whose key has `owner` in second place, at the next load or `drop_forgotten`.

        Takes no lock: it is called when an object is garbage-collected, in any thread, at any time."""
        self._forgotten.append(owner)

    def drop_forgotten(self) -> None:
        """Drop forgotten values now."""
        with self._lock:
            self._drop_forgotten()

    def set_bound(self, bound_bytes: int) -> None:
        """Hold at most this much from now on."""
        with self._lock:
            self._bound_bytes = bound_bytes
            self._evict()

    def stats(self) -> CacheStats:
        """What it has done, and what it holds now."""
        with self._lock:
            return CacheStats(
                hits=self._hits,
                misses=self._misses,
                loads=self._loads,
                evictions=self._evictions,
                entry_count=len(self._entries),
                size_bytes=self._size_bytes,
                bound_bytes=self._bound_bytes,
            )

    def _load(self, key: Key, flight: Future[object], load: Callable[[], T], weigh: Callable[[T], int]) -> T:
        try:
            value = load()
            weight = weigh(value)
        except BaseException as error:
            self._land(key, flight)
            flight.set_exception(error if isinstance(error, Exception) else _Abandoned())
            raise
        self._land(key, flight, _Entry(value, weight))
        flight.set_result(value)
        return value

    def _land(self, key: Key, flight: Future[object], entry: _Entry | None = None) -> None:
        """End a flight, and keep its value unless the cache started afresh meanwhile."""
        with self._lock:
            if self._flights.get(key) is not flight:
                return
            del self._flights[key]
            if entry is not None:
                self._entries[key] = entry
                self._size_bytes += entry.weight
                self._make_room(key)
            if self._forgotten:
                self._drop_forgotten()

    def _drop_forgotten(self) -> None:
        owners = [self._forgotten.popleft() for _ in range(len(self._forgotten))]
        ids = set(map(id, owners))
        for key in [key for key in self._entries if id(key[1]) in ids]:
            self._drop(key)

    def _make_room(self, key: Key) -> None:
        """Evict entries to make room for `key`, or drop `key` itself when nothing else would be left."""
        if self._entries[key].weight > self._bound_bytes:
            self._drop(key)
        self._evict()

    def _evict(self) -> None:
        while self._size_bytes > self._bound_bytes:
            _, entry = self._entries.popitem(last=False)
            self._size_bytes -= entry.weight
            self._evictions += 1

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size_bytes -= entry.weight
