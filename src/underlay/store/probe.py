"""Refuse a store on which a commit would not be safe.

A commit rests on conditional creation. Some servers that speak S3's protocol ignore the condition and overwrite,
some check it and write in two steps, and some proxies drop the header: each would let two writers commit the same
version. `probe_store` finds out before the first table is made.
"""

from __future__ import annotations

import os

from underlay.errors import Unavailable, Unsupported
from underlay.runtime.threads import side_by_side
from underlay.store.store import Outcome, Store

FOLDER = "_probe"
"""Where the probe's objects lie while it runs."""

_ATTEMPTS = 3
_RACERS = 8


def probe_store(store: Store) -> None:
    """Return when conditional creation works; raise Unsupported with what failed and what to do.

    Costs about fifteen small requests, and leaves nothing behind unless the store fails while it runs.
    """
    keys: list[str] = []
    try:
        key = _created(store, keys)
        _check_refusal(store, key)
        _check_listing(store, key)
        _check_race(store, keys)
    finally:
        store.delete(keys)
    if any(store.head(key) is not None for key in keys):
        raise _unsupported(store, "an object that was deleted is still there")


def _created(store: Store, keys: list[str]) -> str:
    """A key that we certainly created. A repeated request can make a success look like a refusal, so try a few."""
    outcomes = []
    for _ in range(_ATTEMPTS):
        keys.append(f"{FOLDER}/{os.urandom(8).hex()}")
        outcomes.append(store.create(keys[-1], b"first"))
        if outcomes[-1] is Outcome.DONE:
            return keys[-1]
    if Outcome.REFUSED in outcomes:
        raise _unsupported(store, "a key that does not exist cannot be created")
    raise Unavailable("the store did not answer", place=store.url, hint="Try again when it is healthy.")


def _check_refusal(store: Store, key: str) -> None:
    again = store.create(key, b"second")
    data, _ = store.get(key)
    if bytes(data) != b"first":
        raise _unsupported(store, "a conditional create overwrote an object")
    if again is Outcome.DONE:
        raise _unsupported(store, "a conditional create of a key that exists was reported as done")
    if again is Outcome.UNKNOWN:
        raise _unsupported(store, "a conditional create of a key that exists was not refused")


def _check_listing(store: Store, key: str) -> None:
    if key not in {found.key for found in store.list_objects(FOLDER)}:
        raise _unsupported(store, "an object that was created is not listed")


def _check_race(store: Store, keys: list[str]) -> None:
    """Many threads create one key at once: at most one is told that it succeeded, and its bytes stay."""
    keys.append(f"{FOLDER}/{os.urandom(8).hex()}")
    contents = [f"racer {number}".encode() for number in range(_RACERS)]
    outcomes = side_by_side(lambda content: store.create(keys[-1], content), contents, _RACERS)
    winners = [content for content, outcome in zip(contents, outcomes, strict=True) if outcome is Outcome.DONE]
    if len(winners) > 1:
        raise _unsupported(store, f"{len(winners)} of {_RACERS} creates of one key at once were reported as done")
    if winners and bytes(store.get(keys[-1])[0]) != winners[0]:
        raise _unsupported(store, "a create that lost replaced the object of the one that won")


def _unsupported(store: Store, problem: str) -> Unsupported:
    return Unsupported(
        problem,
        place=store.url,
        hint="Two writers could commit the same version here. Use a store with conditional writes (If-None-Match), or "
        "update the server and any proxy in between.",
    )
