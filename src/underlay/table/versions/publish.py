"""Creates an object of a chain, and finds out whether that succeeded: R1 (docs/commit-rules.md).

DONE is believed. REFUSED may be our own success whose response was lost, so the object is read and its commit id
compared. UNKNOWN proves nothing, not even if the object is absent now, so the same bytes are created again; on a local
disk this also repeats a sync that failed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from underlay.errors import CommitUnknown, NotFound, Unavailable, UnderlayError
from underlay.store.store import Outcome, Store
from underlay.table.versions.environment import Surroundings


@dataclass(frozen=True, slots=True)
class Published:
    """The object exists with our bytes."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Another writer's object exists."""

    winner: memoryview


def publish(
    store: Store,
    key: str,
    data: bytes,
    commit_id: str,
    read_id: Callable[[memoryview], str],
    surroundings: Surroundings,
) -> Published | Lost:
    """Create `key`, and find out which writer did. One request unless something goes wrong.

    Raises CommitUnknown when all attempts leave the outcome unclear, what `create` raises when certainly nothing was
    written, Damaged when the existing object cannot be read.
    """
    for attempt in range(surroundings.put_attempts):
        if attempt:
            surroundings.back_off(attempt)
        try:
            outcome = store.create(key, data)
        except UnderlayError as error:
            # The store rejected this request, but an earlier one may still land.
            if attempt:
                raise _unknown(key, commit_id) from error
            raise
        if outcome is Outcome.DONE:
            return Published()
        if outcome is Outcome.REFUSED:
            found = _read(store, key)
            # Refused, and yet absent: another create was in flight and failed. Only a retry can tell.
            if found is not None:
                return Published() if read_id(found) == commit_id else Lost(found)
    raise _unknown(key, commit_id)


def _read(store: Store, key: str) -> memoryview | None:
    """The object; None when it is absent, or when the store does not answer."""
    try:
        return store.get(key)[0]
    except (NotFound, Unavailable):
        return None


def _unknown(key: str, commit_id: str) -> CommitUnknown:
    return CommitUnknown(
        "the store did not say whether the commit happened",
        place=key,
        hint=f"It happened if the history has commit {commit_id}. Nothing was deleted. If the write had a token, retry "
        "it as it is.",
    ).of(commit_id)
