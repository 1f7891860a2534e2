"""What a run of the tests is: the gate of every push (`make test`), or all (`make test-all`).

Both run the same ideas, `all` those at full size too. A part of a long list that the gate runs is chosen by a seed,
which is another one each day and is printed; `UNDERLAY_TEST_SEED` repeats it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

IS_ALL = os.environ.get("UNDERLAY_TESTS") == "all"
# Into the environment: all processes of a run choose alike, or xdist refuses to go on.
SEED = int(os.environ.setdefault("UNDERLAY_TEST_SEED", str(datetime.now(UTC).toordinal())))

# No deadline: machines are noisy, and no test asserts on time.
settings.register_profile("push", max_examples=30, deadline=None, print_blob=True)
settings.register_profile("all", max_examples=300, deadline=None, print_blob=True)
settings.load_profile("all" if IS_ALL else "push")

costly = settings(max_examples=60 if IS_ALL else 10)
"""Decorates a property whose every example writes files or asks a database."""


def sized(push: T, whole: T) -> T:
    """The size of a storm: how many processes, appends or rounds."""
    return whole if IS_ALL else push


def some(every: Sequence[T], one_in: int = 5) -> list[T]:
    """One in so many, at least one, in their order; every one in `make test-all`."""
    if IS_ALL:
        return list(every)
    chosen = random.Random(SEED).sample(range(len(every)), max(1, len(every) // one_in))
    return [every[at] for at in sorted(chosen)]


def part(every: Sequence[T], number: int, of: int = 3) -> list[T]:
    """One of several parts that together are all, so that tests that ask the same share the list. On the next day each
    gets another part; `make test-all` gives every one the whole."""
    return list(every) if IS_ALL else list(every[(SEED + number) % of :: of])


def every_third() -> dict[str, int]:
    """Which requests get a fault, or are a process's last: a third of them, all in `make test-all`."""
    return {"begin": 0, "step": 1} if IS_ALL else {"begin": SEED % 3, "step": 3}


def described() -> str:
    """A line for the header of a run."""
    return f"gate: {'all' if IS_ALL else 'push'}; UNDERLAY_TEST_SEED={SEED} chooses the same parts again"
