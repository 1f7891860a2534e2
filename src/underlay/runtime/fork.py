"""What a forked child must not inherit: locks that another thread held, and what they guard."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class StartsAfresh(Protocol):
    """Something that a forked child starts with as if it had just been made."""

    def start_afresh(self) -> None:
        """Forget everything, the locks included. Only this thread lives."""


_registered: WeakSet[StartsAfresh] = WeakSet()


def start_afresh_after_fork(one: StartsAfresh) -> None:
    """Have `one` start afresh in every child that this process forks."""
    _registered.add(one)


def _start_all_afresh() -> None:
    for one in list(_registered):
        one.start_afresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_all_afresh)
