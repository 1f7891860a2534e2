"""Makes it safe to fork a process with threads: what a fork waits for, and what a child must not inherit.

A fork copies the memory of all threads, but only the forking thread continues in the child. Locks that other threads
held stay locked there, and what they were changing stays half changed. So a fork waits briefly until no thread is
importing a module or is in an `undivided` block, and a child resets every object that registered for it.
"""

from __future__ import annotations

import _imp
import concurrent.futures.thread  # noqa: F401  # see the end of this module
import logging  # noqa: F401
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import _bootstrap
from threading import Condition, get_ident
from typing import Protocol
from weakref import WeakSet

FORK_SECONDS = 2.0
"""How long a fork waits for `undivided` blocks of other threads."""
_IMPORT_SECONDS = 60.0
"""How long a fork waits for imports of other threads, which can be slow on a busy machine."""
_IN_IMPORT_SECONDS = 2.0
"""The same for a fork in the middle of an import, which others may wait for."""
_LOOK_SECONDS = 0.001


class StartsAfresh(Protocol):
    """An object that is as good as new in a forked child."""

    def start_afresh(self) -> None:
        """Reset everything, locks included. No other thread exists."""


class ClosesBeforeFork(Protocol):
    """An object that the parent closes before it forks. Its next user opens it again."""

    def close_before_fork(self) -> None:
        """Close what is not in use. No `undivided` block is running, unless one takes too long."""


_afresh: WeakSet[StartsAfresh] = WeakSet()
_closed: WeakSet[ClosesBeforeFork] = WeakSet()


def start_afresh_after_fork(one: StartsAfresh) -> None:
    """Have `one` start afresh in every child that this process forks."""
    _afresh.add(one)


def close_before_fork(one: ClosesBeforeFork) -> None:
    """Have `one` closed before this process forks."""
    _closed.add(one)


@contextmanager
def undivided() -> Iterator[None]:
    """A block that a fork in another thread waits for, up to `FORK_SECONDS`. It does not start during a fork."""
    with _gate.changed:
        _gate.begin()
    try:
        yield
    finally:
        with _gate.changed:
            _gate.end()


def leave_to_parent(one: object) -> None:
    """Keep an inherited object alive in a child, even when the interpreter exits: only the parent may close it."""
    from ctypes import py_object, pythonapi  # only here, since few children need it

    pythonapi.Py_IncRef(py_object(one))


class _Gate:
    """Counts the `undivided` blocks of each thread. `changed` is held while the process forks."""

    def __init__(self) -> None:
        self.open()

    def open(self) -> None:
        """No block runs."""
        self.changed = Condition()
        self._depths: dict[int, int] = {}

    def begin(self) -> None:
        """A block of this thread begins. The lock is held."""
        self._depths[get_ident()] = self._depths.get(get_ident(), 0) + 1

    def end(self) -> None:
        """A block of this thread ends. The lock is held."""
        depth = self._depths.pop(get_ident(), 1) - 1
        if depth:
            self._depths[get_ident()] = depth
        self.changed.notify_all()

    def wait(self) -> None:
        """Wait until no other thread is in a block. The lock is held."""
        end = time.monotonic() + FORK_SECONDS
        while self._depths.keys() - {get_ident()} and (left := end - time.monotonic()) > 0:
            self.changed.wait(left)


_gate = _Gate()


def _before() -> None:
    _gate.changed.acquire()
    _gate.wait()
    for one in list(_closed):
        one.close_before_fork()
    _stop_imports()


def _stop_imports() -> None:
    """Wait until no other thread is importing a module, then hold the lock that an import needs to start.

    Python frees this lock in a child, but not the lock of each module.
    """
    this = get_ident()
    end = time.monotonic() + (_IN_IMPORT_SECONDS if this in _importing() else _IMPORT_SECONDS)
    _imp.acquire_lock()
    while _importing() - {this} and time.monotonic() < end:
        _imp.release_lock()
        time.sleep(_LOOK_SECONDS)
        _imp.acquire_lock()


def _importing() -> set[int]:
    """The threads that import a module."""
    locks = [made() for made in list(getattr(_bootstrap, "_module_locks", {}).values())]
    return {owner for lock in locks if (owner := getattr(lock, "owner", None)) is not None}


def _after_in_parent() -> None:
    _imp.release_lock()
    _gate.changed.release()


def _after_in_child() -> None:
    _imp.release_lock()
    _gate.open()
    for one in list(_afresh):
        one.start_afresh()


# Before a fork, what was registered last runs first. So these waits are over before `logging` and `concurrent.futures`
# take their locks, which the threads that we wait for may need.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
