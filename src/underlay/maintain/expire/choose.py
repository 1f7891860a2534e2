"""Chooses which versions of a revision to keep: by age and number, and by what holds them. Finds ages by bisection."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from underlay.errors import SnapshotExpired
from underlay.index.root import Retention, Root
from underlay.maintain.expire.holders import Holders
from underlay.table.versions.environment import to_us
from underlay.table.versions.revision import Revision

_CLOCK_GRAIN_US = 1_000_000
"""A store's timestamps may be whole seconds."""


def choose(
    revision: Revision, head: Root, holders: Holders, *, older_than: timedelta, keep: int, buried: int
) -> Retention:
    """The versions to keep, of those that `head` says are left. O(log versions) requests.

    A version expires when its successor is older than `older_than` (R6) and it is not among the newest `keep`.
    """
    before = head.retention
    cutoff_us = to_us(holders.now - older_than)
    first = before.begin + 1
    end = head.version + 1
    young = _first(first, end, lambda version: revision.committed_us(version) > cutoff_us)
    bounds = [young - 1, head.version + 1 - keep]
    since_us = holders.jobs_since_us
    if since_us is not None:
        bounds.append(_first(first, end, lambda version: _stored_us(revision, version) >= since_us) - 1)
    if holders.unreadable:
        bounds.append(before.begin)
    begin = max(min(bounds), before.begin)
    also = set(before.also) if holders.unreadable else set[int]()
    also |= {version for version in holders.versions if version < begin and _is_there(revision, before, version)}
    # Versions that were held one by one, and no longer are: their roots were not replaced yet.
    let_go = set(before.also) - also
    return Retention(begin=begin, also=tuple(sorted(also)), buried=min((buried, *let_go)))


def _first(begin: int, end: int, is_late: Callable[[int], bool]) -> int:
    """The first version from `begin` on for which `is_late` holds; `end` when there is none."""
    while begin < end:
        middle = (begin + end) // 2
        if is_late(middle):
            end = middle
        else:
            begin = middle + 1
    return begin


def _stored_us(revision: Revision, version: int) -> int:
    """The latest time at which a root can have been put: the store's clock, plus the clock's grain."""
    found = revision.store.head(revision.keys.root(version))
    return 0 if found is None else to_us(found.modified) + _CLOCK_GRAIN_US


def _is_there(revision: Revision, before: Retention, version: int) -> bool:
    """Whether a held version can be kept: it did not expire, or its root still exists."""
    if before.has(version):
        return True
    try:
        revision.decode(revision.chain.get(version), version)
    except SnapshotExpired:
        return False
    return True
