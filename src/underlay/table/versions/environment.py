"""A process's environment: clocks, randomness, a name. All of it is an argument, so that tests choose it."""

from __future__ import annotations

import atexit
import os
import random
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from underlay.index.root import Root
    from underlay.table.versions.registry_protocol import RegistryPort

_EXIT_WAIT_SECONDS = 0.5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_running: WeakSet[Thread] = WeakSet()


def now_us() -> int:
    """Microseconds since 1970 by the machine's clock."""
    return time.time_ns() // 1000


def to_us(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def uuid7(now_ms: int | None = None) -> str:
    """A UUID that begins with the time, for people who sort names; nothing here relies on that order."""
    moment = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    chance = int.from_bytes(os.urandom(10), "big")
    number = (moment & (1 << 48) - 1) << 80 | chance
    number = number & ~(0xF << 76) | 7 << 76
    number = number & ~(0x3 << 62) | 2 << 62
    return str(uuid.UUID(int=number))


def new_commit_id() -> str:
    """128 random bits."""
    return os.urandom(16).hex()


def run_in_background(work: Callable[[], None]) -> None:
    """Run `work` in the background. The process may end before it is done, after waiting for half a second."""
    thread = Thread(target=work, daemon=True, name="underlay-background")
    thread.start()
    _running.add(thread)  # once it runs: who waits for all of them, a fork in between among them, can join only such


def wait_for_background(timeout_seconds: float | None = None) -> None:
    """Wait until background work is done."""
    for thread in list(_running):
        thread.join(timeout_seconds)


atexit.register(wait_for_background, _EXIT_WAIT_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Clocks, randomness, limits on retries, the writer's name, and where to report what was seen."""

    now_us: Callable[[], int] = now_us
    """Wall clock, in microseconds."""
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random
    """A number in [0, 1)."""
    new_commit_id: Callable[[], str] = new_commit_id
    in_background: Callable[[Callable[[], None]], None] = run_in_background
    """Starts work in the background."""
    writer: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")
    put_attempts: int = 10
    """How often we try to create an object before its outcome counts as unknown."""
    rebase_attempts: int = 1000
    """How many races a commit may lose."""
    registry: RegistryPort | None = None
    """The lake's metadata database, if it has one."""
    after_commit: Callable[[str, Root], object] | None = None
    """Called with the id of a revision and the version that this process committed in it. Must neither make a request
    nor raise."""

    def back_off(self, attempt: int, *, most_seconds: float = 2.0) -> None:
        """Wait before attempt number `attempt`: up to 10 ms at first, doubling, up to `most_seconds` or 2 s."""
        self.sleep(self.chance() * min(0.01 * 2 ** min(attempt, 8), most_seconds, 2.0))
