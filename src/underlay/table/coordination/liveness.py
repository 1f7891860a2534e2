"""Objects that a process renews to show that it is alive: intents of jobs, leases of readers.

Their age is measured by the clock of the store, which also stamped them, so the machines' clocks do not matter. A store
may stamp whole seconds, so an object counts as alive for one second longer.

These objects decide nothing. An unreadable one counts as alive for UNREADABLE_TTL: its owner may be alive, and would
then renew it. The next owner replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

from underlay.errors import Damaged, Inconsistent, InvalidRequest, NotFound, UnderlayError, Unsupported
from underlay.runtime.threads import side_by_side
from underlay.store.store import Store

FORMAT = 1
UNREADABLE_TTL = timedelta(seconds=600)
"""No default time to live is longer."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_MAX_NAME = 100
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_LEAST_TTL_SECONDS = 1
_MOST_TTL_SECONDS = 7 * 86_400
_CLOCK_GRAIN = timedelta(seconds=1)


class KeptAlive(Protocol):
    """The content of such an object."""

    @property
    def name(self) -> str:
        """The last part of its key."""

    @property
    def owner(self) -> str:
        """The process that puts it, and for which piece of its work."""

    @property
    def ttl_us(self) -> int:
        """How long the owner counts as alive after it put the object."""


T = TypeVar("T", bound=KeptAlive)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beacon(Generic[T]):
    """Such an object."""

    name: str
    """The last part of its key."""
    record: T | None
    problem: UnderlayError | None
    """Why there is no record."""
    modified: datetime
    """When it was put."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBeacon(Generic[T]):
    """Such an object, as seen when the store's clock was at `now`."""

    found: Beacon[T]
    now: datetime

    @property
    def record(self) -> T | None:
        """Its content; None when it cannot be read."""
        return self.found.record

    @property
    def modified(self) -> datetime:
        """When it was put."""
        return self.found.modified

    @property
    def ttl(self) -> timedelta:
        """How long the owner counts as alive after it put the object."""
        record = self.record
        return UNREADABLE_TTL if record is None else timedelta(microseconds=record.ttl_us)

    @property
    def left(self) -> timedelta:
        """How long its owner still counts as alive; negative when it has expired."""
        return self.modified + self.ttl + _CLOCK_GRAIN - self.now

    @property
    def is_alive(self) -> bool:
        """Whether its owner counts as alive."""
        return self.left > timedelta(0)


def find_kept(store: Store, key: str, decode: Callable[[memoryview], T]) -> Beacon[T] | None:
    """The object as it is, readable or not; None when it is absent. One request."""
    try:
        data, stored = store.get(key)
    except NotFound:
        return None
    name = key.rpartition("/")[2]
    try:
        record = decode(data)
        if record.name != name:
            raise Inconsistent("the object has a different name than its key", expected=name, found=record.name)
    except (Damaged, Unsupported) as error:
        return Beacon(name=name, record=None, problem=error.at(store.place_of(key)), modified=stored.modified)
    return Beacon(name=name, record=record, problem=None, modified=stored.modified)


def list_kept(store: Store, folder: str, decode: Callable[[memoryview], T]) -> list[SeenBeacon[T]]:
    """All such objects in a folder, by key, readable or not. One request when there are none; else also one for each,
    in parallel, and those of the clock."""
    keys = [found.key for found in store.list_objects(folder)]
    if not keys:
        return []
    found = side_by_side(lambda key: find_kept(store, key, decode), keys, store.parallel_requests)
    # The clock is read last, so that no object is younger than now.
    now = store.now()
    return [SeenBeacon(found=one, now=now) for one in found if one is not None]


def check_name(name: str, what: str) -> str:
    """`name`, when it may be the last part of a key. Raises InvalidRequest."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise InvalidRequest(
            f"not a name for a {what}",
            found=repr(name),
            hint=f"Use ASCII letters, digits, - _ and ., beginning with a letter or digit; {_MAX_NAME} at most.",
        )
    return name


def name_of(text: str) -> str:
    """Any text, turned into part of a name."""
    return _NOT_IN_NAMES.sub("-", text).strip("-_.")[: _MAX_NAME // 2] or "x"


def read_ttl(seconds: float) -> int:
    """The time to live in microseconds. Raises InvalidRequest."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidRequest("the time to live must be a number of seconds", found=repr(seconds))
    if not _LEAST_TTL_SECONDS <= seconds <= _MOST_TTL_SECONDS:
        raise InvalidRequest(
            "the time to live is out of range",
            expected=f"{_LEAST_TTL_SECONDS} to {_MOST_TTL_SECONDS} seconds",
            found=seconds,
        )
    return round(seconds * 1_000_000)
